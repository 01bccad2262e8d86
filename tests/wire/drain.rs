//! The end of a server: whoever was let in is answered.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::support::{
    Binary, HTTP2, LONG, Running, ask, client_config, connect, head, http2, is_closed, post, read_reply, send, until,
    within,
};

const READY: &str = "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn a_draining_server_still_serves_and_says_that_it_goes() {
    let mut server = Running::start(|settings| settings.drain_delay = LONG).await;
    let mut idle = server.connect().await;
    assert_eq!(ask(&mut idle, post("/mutate", "{}")).await.header("connection"), None);
    let mut half = server.connect().await;
    send(&mut half, head(4)).await;
    send(&mut half, "ab").await;
    server.until_metric("podgate_requests_in_flight", 1.0).await;

    server.stop();
    until("not ready", async || ask(&mut server.connect().await, READY).await.status == 503).await;
    let not_ready = ask(&mut server.connect().await, READY).await;
    assert_eq!(
        not_ready.refusal(503, "ServiceUnavailable"),
        "the server is not ready, for it is draining: use another replica"
    );
    let mut admin = TcpStream::connect(server.admin_addr).await.unwrap();
    assert_eq!(ask(&mut admin, READY).await.status, 503);
    let mut admin = TcpStream::connect(server.admin_addr).await.unwrap();
    assert_eq!(ask(&mut admin, READY.replace("readyz", "livez")).await.status, 200);

    // A new connection, one that was idle, and one in the middle of a request.
    let mut new = server.connect().await;
    send(&mut half, "cd").await;
    send(&mut new, post("/mutate", "{}")).await;
    send(&mut idle, post("/mutate", "{}")).await;
    for stream in [&mut new, &mut idle, &mut half] {
        let reply = read_reply(stream).await;
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
        assert!(is_closed(stream).await);
    }
}

#[tokio::test]
async fn requests_in_flight_outlive_the_listener() {
    let mut server = Running::start(|_| {}).await;
    let mut body = server.connect().await;
    send(&mut body, head(4)).await;
    send(&mut body, "ab").await;
    let mut half_head = server.connect().await;
    send(&mut half_head, "POST /mutate HTTP/1.1\r\nhost: a\r\n").await;
    let mut idle = server.connect().await;
    assert_eq!(ask(&mut idle, post("/mutate", "{}")).await.status, 200);
    server.until_metric("podgate_requests_in_flight", 1.0).await;

    server.stop();
    until("refused", async || TcpStream::connect(server.addr).await.is_err()).await;
    // Longer than idle connections get to say goodbye.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    send(&mut half_head, "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}").await;
    let reply = read_reply(&mut half_head).await;
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    send(&mut body, "cd").await;
    let reply = read_reply(&mut body).await;
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert!(is_closed(&mut idle).await);
    server.ended().await;
}

#[tokio::test]
async fn nobody_keeps_a_draining_server_for_ever() {
    let mut server = Running::start(|settings| settings.limits.drain = Duration::from_millis(100)).await;
    let mut body = server.connect().await;
    send(&mut body, head(4)).await;
    server.until_metric("podgate_requests_in_flight", 1.0).await;
    server.stop();
    server.ended().await;
    assert!(is_closed(&mut body).await);
}

#[tokio::test]
async fn http2_clients_are_told_at_once() {
    let mut server = Running::start(|settings| settings.drain_delay = LONG).await;
    let config = client_config(server.certificate.chain()[0].clone(), &[HTTP2]);
    let (mut requests, connection) = http2(connect(server.addr, config).await).await;
    let request = Request::post("https://localhost/mutate")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(b"{}")))
        .unwrap();
    assert_eq!(within(requests.send_request(request)).await.unwrap().status(), 200);
    server.stop();
    // GOAWAY ends a connection without requests, long before the drain delay does.
    within(connection).await.unwrap().unwrap();
    assert!(requests.is_closed());
}

#[tokio::test]
async fn sigterm_finishes_the_request_in_flight_and_exits_with_0() {
    let mut server = Binary::serve(&["--drain-delay", "0s"]).await;
    let mut stream = server.connect().await;
    send(&mut stream, head(4)).await;
    send(&mut stream, "ab").await;
    until("in flight", async || in_flight(&server).await).await;
    server.signal("TERM").await;
    server.until_logged("closing").await;
    send(&mut stream, "cd").await;
    let reply = read_reply(&mut stream).await;
    assert_eq!((reply.status, reply.header("connection")), (400, Some("close")));
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("every request was answered"), "{log}");
}

#[tokio::test]
async fn a_second_signal_does_not_wait() {
    let mut server = Binary::serve(&["--drain-delay", "10m"]).await;
    let began = Instant::now();
    server.signal("INT").await;
    server.until_logged("draining").await;
    server.signal("TERM").await;
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(began.elapsed() < LONG);
}

async fn in_flight(server: &Binary) -> bool {
    let mut admin = TcpStream::connect(server.admin_addr).await.unwrap();
    let reply = ask(&mut admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await;
    reply.text().contains("podgate_requests_in_flight 1\n")
}
