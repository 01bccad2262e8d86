//! Many clients of which only one behaves.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::{Binary, HTTP2, Running, ask, client_config, connect, http2, is_closed, post, send, within};

/// Connections that a small server has room for, in handshake and after it.
const ROOM: usize = 8;

async fn small_server() -> Running {
    Running::start(|settings| {
        settings.limits.connections = ROOM;
        settings.limits.handshakes = ROOM;
    })
    .await
}

#[tokio::test]
async fn strangers_that_do_not_shake_hands_lock_nobody_out() {
    let server = small_server().await;
    let mut strangers = Vec::new();
    for _ in 0..ROOM * 3 {
        strangers.push(TcpStream::connect(server.addr).await.unwrap());
    }
    server.until_metric("podgate_handshake_failures_total{reason=\"evicted\"}", 16.0).await;
    for _ in 0..ROOM * 2 {
        assert_eq!(ask(&mut server.connect().await, post("/mutate", "{}")).await.status, 200);
    }
    assert!(is_closed(&mut strangers[0]).await);
}

#[tokio::test]
async fn strangers_that_say_nothing_lock_nobody_out() {
    let server = small_server().await;
    let mut known = server.connect().await;
    assert_eq!(ask(&mut known, post("/mutate", "{}")).await.status, 200);
    let mut strangers = Vec::new();
    for _ in 0..ROOM * 3 {
        strangers.push(server.connect().await);
    }
    server.until_metric("podgate_handshakes", 0.0).await;
    server.until_metric("podgate_connections_evicted_total{port=\"webhooks\"}", 17.0).await;
    // Neither a newcomer nor the one that has been served before is affected.
    assert_eq!(ask(&mut server.connect().await, post("/mutate", "{}")).await.status, 200);
    assert_eq!(ask(&mut known, post("/mutate", "{}")).await.status, 200);
    assert!(is_closed(&mut strangers[0]).await);
}

#[tokio::test]
async fn strangers_that_begin_a_request_lock_nobody_out() {
    let server = small_server().await;
    let mut known = server.connect().await;
    assert_eq!(ask(&mut known, post("/mutate", "{}")).await.status, 200);
    let mut strangers = Vec::new();
    for _ in 0..ROOM * 3 {
        let mut stranger = server.connect().await;
        // The oldest may be gone by now, but not this one.
        send(&mut stranger, "POST /mutate HTTP/1.1\r\nhost:").await;
        strangers.push(stranger);
    }
    server.until_metric("podgate_handshakes", 0.0).await;
    assert_eq!(ask(&mut server.connect().await, post("/mutate", "{}")).await.status, 200);
    assert_eq!(ask(&mut known, post("/mutate", "{}")).await.status, 200);
    assert!(is_closed(&mut strangers[0]).await);
}

#[tokio::test]
async fn strangers_that_speak_http2_lock_nobody_out() {
    let server = small_server().await;
    let mut known = server.connect().await;
    assert_eq!(ask(&mut known, post("/mutate", "{}")).await.status, 200);
    let mut strangers = Vec::new();
    for _ in 0..ROOM * 3 {
        let config = client_config(server.certificate.chain()[0].clone(), &[HTTP2]);
        strangers.push(http2(connect(server.addr, config).await).await);
    }
    server.until_metric("podgate_handshakes", 0.0).await;
    assert_eq!(ask(&mut server.connect().await, post("/mutate", "{}")).await.status, 200);
    assert_eq!(ask(&mut known, post("/mutate", "{}")).await.status, 200);
}

/// The clients that send a byte a second.
const SLOW: usize = 500;

/// The real binary with its real limits: it has to close them after 10 s, and meanwhile to answer.
#[tokio::test]
async fn clients_that_send_a_byte_a_second_slow_nobody() {
    let server = Binary::serve(&[]).await;
    let mut slow = JoinSet::new();
    for _ in 0..SLOW {
        // One after the other: the point is not how many handshakes there can be.
        let mut stream = server.connect().await;
        slow.spawn(async move {
            for byte in "POST /mutate HTTP/1.1\r\ncontent-type: application/json\r\nhost: podgate".bytes() {
                // An error is the server's way of saying that it is enough.
                if stream.write_all(&[byte]).await.is_err() || stream.flush().await.is_err() {
                    return true;
                }
                sleep(Duration::from_secs(1)).await;
            }
            is_closed(&mut stream).await
        });
    }
    let mut stream = server.connect().await;
    let review = include_str!("../reviews/mutate/deployments-create-dep.json");
    let mut answered = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) || answered < 100 {
        assert_eq!(ask(&mut stream, post("/mutate", review)).await.status, 200);
        answered += 1;
    }
    assert!(answered >= 100);
    within(async {
        while let Some(closed) = slow.join_next().await {
            assert!(closed.unwrap(), "no answer to half a request");
        }
    })
    .await;
    assert_eq!(ask(&mut stream, post("/mutate", review)).await.status, 200);
}
