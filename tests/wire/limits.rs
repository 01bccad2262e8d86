//! Time and memory: what a client gets, and what happens when it takes more.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::support::{
    HTTP2, Running, SHORT, ask, client_config, connect, head, http2, is_closed, post, read_reply, send, until, within,
};

#[tokio::test]
async fn an_idle_connection_outlives_the_limit_of_a_head() {
    let server = Running::start(|settings| settings.limits.head = SHORT).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        sleep(SHORT * 2).await;
        assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_the_end() {
    let server = Running::start(|settings| settings.limits.idle = SHORT).await;
    let started = Instant::now();
    let mut silent = server.connect().await;
    assert!(is_closed(&mut silent).await);
    assert!(started.elapsed() >= SHORT);
    server.until_metric("podgate_connections{port=\"webhooks\"}", 0.0).await;
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed_in_the_end() {
    let server = Running::start(|settings| settings.limits.idle = SHORT).await;
    let config = client_config(server.certificate.chain()[0].clone(), &[HTTP2]);
    let (_requests, connection) = http2(connect(server.addr, config).await).await;
    within(connection).await.unwrap().unwrap();
}

#[tokio::test]
async fn http2_frames_are_not_a_request_that_has_begun() {
    let server = Running::start(|settings| settings.limits.head = SHORT).await;
    let config = client_config(server.certificate.chain()[0].clone(), &[HTTP2]);
    // The preface, the settings and their acknowledgement arrive before any request.
    let (_requests, connection) = http2(connect(server.addr, config).await).await;
    sleep(SHORT * 4).await;
    assert!(!connection.is_finished());
}

#[tokio::test]
async fn a_head_that_does_not_end_is_not_waited_for() {
    let server = Running::start(|settings| settings.limits.head = SHORT).await;
    let mut first = server.connect().await;
    send(&mut first, "POST /mut").await;
    assert!(is_closed(&mut first).await);
    let mut second = server.connect().await;
    assert_eq!(ask(&mut second, post("/mutate", "{}")).await.status, 200);
    send(&mut second, "P").await;
    assert!(is_closed(&mut second).await);
    server.until_metric("podgate_rejected_requests_total{reason=\"head_timeout\"}", 2.0).await;
}

#[tokio::test]
async fn the_admin_port_has_limits_too() {
    let server = Running::start(|settings| settings.limits.head = SHORT).await;
    let mut stream = TcpStream::connect(server.admin_addr).await.unwrap();
    send(&mut stream, "GET /met").await;
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn a_body_that_does_not_end_is_not_waited_for() {
    let server = Running::start(|settings| {
        settings.limits.body = SHORT;
        settings.limits.discard = SHORT;
    })
    .await;
    let mut stream = server.connect().await;
    send(&mut stream, head(10)).await;
    send(&mut stream, "12345").await;
    let reply = read_reply(&mut stream).await;
    assert_eq!(reply.refusal(408, "Timeout"), "the body was not complete 200 ms after its head: send it faster");
    assert!(is_closed(&mut stream).await);
    assert!(server.metric("podgate_rejected_requests_total{reason=\"timeout\"}").await > 0.0);
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up() {
    let server = Running::start(|settings| settings.limits.write = SHORT).await;
    let mut stream = server.connect().await;
    send(&mut stream, post("/mutate", "big")).await;
    server.until_metric("podgate_rejected_requests_total{reason=\"write_timeout\"}", 1.0).await;
    server.until_metric("podgate_connections{port=\"webhooks\"}", 0.0).await;
    let mut taken = Vec::new();
    let _ = within(stream.read_to_end(&mut taken)).await;
    assert!(taken.len() < 32 << 20);
}

#[tokio::test]
async fn bodies_share_the_memory_there_is() {
    let server = Running::start(|settings| settings.limits.bodies_bytes = 64 << 10).await;
    let mut first = server.connect().await;
    send(&mut first, head(60_000)).await;
    send(&mut first, " ".repeat(59_999)).await;
    let body = " ".repeat(60_000);
    until("the first body takes its share", async || {
        let reply = ask(&mut server.connect().await, post("/mutate", &body)).await;
        if reply.status == 503 {
            assert_eq!(
                reply.refusal(503, "ServiceUnavailable"),
                "large reviews and their answers fill the memory that the server has for them: try again in a second"
            );
            assert_eq!(reply.header("retry-after"), Some("1"));
        }
        reply.status == 503
    })
    .await;
    // What fits is not refused.
    assert_eq!(ask(&mut server.connect().await, post("/mutate", &" ".repeat(30_000))).await.status, 200);
    send(&mut first, " ").await;
    assert_eq!(read_reply(&mut first).await.json()["bytes"], 60_000);
    assert_eq!(ask(&mut server.connect().await, post("/mutate", &body)).await.status, 200);
}

#[tokio::test]
async fn there_is_always_room_for_a_small_review() {
    let server = Running::start(|settings| {
        settings.limits.bodies_bytes = 0;
        settings.limits.body = std::time::Duration::from_hours(1);
    })
    .await;
    let mut slow = server.connect().await;
    send(&mut slow, head(16 << 10)).await;
    send(&mut slow, " ".repeat((16 << 10) - 1)).await;
    let ask_with = async |length: usize| ask(&mut server.connect().await, post("/mutate", &" ".repeat(length))).await;
    assert_eq!(ask_with(16 << 10).await.status, 200);
    assert_eq!(ask_with((16 << 10) + 1).await.status, 503);
    send(&mut slow, " ").await;
    assert_eq!(read_reply(&mut slow).await.status, 200);
}

#[tokio::test]
async fn an_answer_counts_until_it_is_taken() {
    let server = Running::start(|_| {}).await;
    let mut first = server.connect().await;
    send(&mut first, post("/mutate", "big")).await;
    let mut status_line = [0; 12];
    within(first.read_exact(&mut status_line)).await.expect("the answer has begun");
    assert_eq!(&status_line, b"HTTP/1.1 200");
    let status = async || ask(&mut server.connect().await, post("/mutate", "big")).await.status;
    assert_eq!(status().await, 503, "no second answer of that size fits");
    assert_eq!(ask(&mut server.connect().await, post("/mutate", "{}")).await.status, 200);
    drop(first);
    until("there is room again", async || status().await == 200).await;
}

#[tokio::test]
async fn a_client_that_vanishes_leaves_nothing_behind() {
    let server = Running::start(|settings| settings.limits.bodies_bytes = 64 << 10).await;
    let mut first = server.connect().await;
    send(&mut first, head(60_000)).await;
    send(&mut first, " ".repeat(59_999)).await;
    let body = " ".repeat(60_000);
    let status = async || ask(&mut server.connect().await, post("/mutate", &body)).await.status;
    until("the body takes its share", async || status().await == 503).await;
    assert!((server.metric("podgate_requests_in_flight").await - 1.0).abs() < 0.1);
    drop(first);
    until("the share is free again", async || status().await == 200).await;
    server.until_metric("podgate_requests_in_flight", 0.0).await;
    server.until_metric("podgate_connections{port=\"webhooks\"}", 0.0).await;
}

#[tokio::test]
async fn a_body_that_is_only_announced_takes_nothing() {
    let server = Running::start(|settings| {
        settings.limits.bodies_bytes = 64 << 10;
        settings.limits.body_bytes = 64 << 10;
    })
    .await;
    let mut announcers = Vec::new();
    for _ in 0..4 {
        let mut stream = server.connect().await;
        send(&mut stream, head(64 << 10)).await;
        announcers.push(stream);
    }
    server.until_metric("podgate_requests_in_flight", 4.0).await;
    assert_eq!(ask(&mut server.connect().await, post("/mutate", &" ".repeat(60_000))).await.status, 200);
}

#[tokio::test]
async fn the_refused_are_read_for_a_while_only() {
    let server = Running::start(|settings| {
        settings.limits.body_bytes = 10;
        settings.limits.discard = SHORT;
    })
    .await;
    let mut stream = server.connect().await;
    // It announces more than it ever sends, and still gets its answer.
    send(&mut stream, head(1_000)).await;
    send(&mut stream, "12345").await;
    assert_eq!(read_reply(&mut stream).await.status, 413);
    assert!(is_closed(&mut stream).await);
}
