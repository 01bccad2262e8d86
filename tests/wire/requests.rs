//! What is answered to which request.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use tokio::net::TcpStream;

use crate::support::{HTTP1, HTTP2, Running, ask, client_config, connect, head, http2, post, read_reply, send, within};

#[tokio::test]
async fn both_webhooks_answer_on_one_connection() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    for (path, webhook) in
        [("/mutate", "Mutate"), ("/validate?timeout=10s", "Validate"), ("/mutate?timeout=10s", "Mutate")]
    {
        let reply = ask(&mut stream, post(path, "{}")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json(), serde_json::json!({"webhook": webhook, "bytes": 2}));
        assert_eq!(reply.header("connection"), None);
    }
}

#[tokio::test]
async fn http2_answers_too() {
    let server = Running::start(|_| {}).await;
    let config = client_config(server.certificate.chain()[0].clone(), &[HTTP2, HTTP1]);
    let stream = connect(server.addr, config).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(HTTP2));
    let (mut requests, _connection) = http2(stream).await;
    for bytes in [2, 100_000] {
        let request = Request::post("https://localhost/mutate?timeout=10s")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(vec![b' '; bytes])))
            .expect("a request");
        let response = within(requests.send_request(request)).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let body = within(response.into_body().collect()).await.expect("a body").to_bytes();
        assert_eq!(body, format!("{{\"webhook\":\"Mutate\",\"bytes\":{bytes}}}"));
    }
    let request = Request::head("https://localhost/healthz").body(Full::default()).expect("a request");
    assert_eq!(within(requests.send_request(request)).await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn probes_are_answered() {
    let server = Running::start(|_| {}).await;
    let mut https = server.connect().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let reply = ask(&mut https, format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "ok\n"), "{path}");
    }
    let mut admin = TcpStream::connect(server.admin_addr).await.unwrap();
    for path in ["/livez", "/readyz"] {
        let reply = ask(&mut admin, format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "ok\n"), "{path}");
    }
}

#[tokio::test]
async fn head_is_answered_without_a_body() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    send(&mut stream, "HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    // The next answer follows at once.
    send(&mut stream, post("/mutate", "{}")).await;
    let mut both = Vec::new();
    within(async {
        use tokio::io::AsyncReadExt;
        while !both.ends_with(b"}") {
            both.push(stream.read_u8().await.expect("an answer"));
        }
    })
    .await;
    let both = String::from_utf8(both).unwrap();
    assert!(both.starts_with("HTTP/1.1 200 OK\r\n") && both.contains("content-length: 3\r\n"), "{both}");
    assert!(both.contains("\r\n\r\nHTTP/1.1 200 OK\r\n"), "{both}");
}

#[tokio::test]
async fn the_admin_port_has_nothing_else() {
    let server = Running::start(|_| {}).await;
    let mut admin = TcpStream::connect(server.admin_addr).await.unwrap();
    let reply = ask(&mut admin, post("/mutate", "{}")).await;
    assert_eq!(reply.refusal(404, "NotFound"), "there is nothing at \"/mutate\": get /metrics, /livez or /readyz");
    let reply = ask(&mut admin, post("/metrics", "{}")).await;
    assert_eq!(reply.refusal(405, "MethodNotAllowed"), "POST is not allowed on /metrics: send GET, HEAD");
    assert_eq!(reply.header("allow"), Some("GET, HEAD"));
}

/// What is refused: the head of the request, and the status, reason and message of the answer.
const REFUSED: [(&str, u16, &str, &str); 12] = [
    (
        "POST /mutate HTTP/1.1\r\ncontent-type: text/plain",
        415,
        "UnsupportedMediaType",
        "the Content-Type is \"text/plain\": send an AdmissionReview as application/json",
    ),
    (
        "POST /validate HTTP/1.1\r\ncontent-type: application/yaml",
        415,
        "UnsupportedMediaType",
        "the Content-Type is \"application/yaml\": send an AdmissionReview as application/json",
    ),
    (
        "POST /mutate HTTP/1.1",
        415,
        "UnsupportedMediaType",
        "the request has no Content-Type: send an AdmissionReview as application/json",
    ),
    (
        "POST /mutate HTTP/1.1\r\ncontent-type: application/json\r\ncontent-encoding: gzip",
        415,
        "UnsupportedMediaType",
        "the Content-Encoding is \"gzip\": send the body uncompressed, without Content-Encoding",
    ),
    ("GET /mutate HTTP/1.1", 405, "MethodNotAllowed", "GET is not allowed on /mutate: send POST"),
    ("GET /validate HTTP/1.1", 405, "MethodNotAllowed", "GET is not allowed on /validate: send POST"),
    (
        "PUT /mutate HTTP/1.1\r\ncontent-type: application/json",
        405,
        "MethodNotAllowed",
        "PUT is not allowed on /mutate: send POST",
    ),
    ("DELETE /healthz HTTP/1.1", 405, "MethodNotAllowed", "DELETE is not allowed on /healthz: send GET, HEAD"),
    (
        "POST / HTTP/1.1\r\ncontent-type: application/json",
        404,
        "NotFound",
        "there is nothing at \"/\": post AdmissionReviews to /mutate and /validate, probe /healthz, /readyz and /livez",
    ),
    (
        "GET /mutate/ HTTP/1.1",
        404,
        "NotFound",
        "there is nothing at \"/mutate/\": post AdmissionReviews to /mutate and /validate, probe /healthz, /readyz and /livez",
    ),
    (
        "GET /metrics HTTP/1.1",
        404,
        "NotFound",
        "there is nothing at \"/metrics\": post AdmissionReviews to /mutate and /validate, probe /healthz, /readyz and /livez",
    ),
    (
        "POST /mutate HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 8388609\r\nexpect: 100-continue",
        413,
        "RequestEntityTooLarge",
        "the body is larger than 8388608 bytes: send a smaller one, or raise the server's --max-body-bytes",
    ),
];

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let server = Running::start(|_| {}).await;
    for (request, status, reason, message) in REFUSED {
        let mut stream = server.connect().await;
        let reply = ask(&mut stream, format!("{request}\r\nhost: a\r\n\r\n")).await;
        assert_eq!(reply.refusal(status, reason), message, "{request}");
        assert_eq!(reply.header("retry-after"), None);
    }
}

#[tokio::test]
async fn a_refused_request_leaves_the_connection_usable() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    let body = " ".repeat(1 << 20);
    let reply = ask(&mut stream, post("/nowhere", &body)).await;
    assert_eq!(reply.status, 404);
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
}

#[tokio::test]
async fn json_may_be_written_in_any_case_and_with_parameters() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    for content_type in ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"] {
        let request = post("/mutate", "{}").replace("application/json", content_type);
        assert_eq!(ask(&mut stream, request).await.status, 200, "{content_type}");
    }
    let request = post("/mutate", "{}").replace("host: a", "host: a\r\ncontent-encoding: identity");
    assert_eq!(ask(&mut stream, request).await.status, 200);
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    let reply = ask(&mut stream, post("/mutate", &" ".repeat(8 << 20))).await;
    assert_eq!(reply.json()["bytes"], 8 << 20);
    let reply = ask(&mut stream, post("/mutate", &" ".repeat((8 << 20) + 1))).await;
    reply.refusal(413, "RequestEntityTooLarge");
    // All of it has been read, so the connection goes on.
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
}

#[tokio::test]
async fn a_client_that_sends_far_too_much_reads_why() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    let reply = ask(&mut stream, post("/mutate", &" ".repeat(64 << 20))).await;
    let message = reply.refusal(413, "RequestEntityTooLarge");
    assert_eq!(
        message,
        "the body is larger than 8388608 bytes: send a smaller one, or raise the server's --max-body-bytes"
    );
}

#[tokio::test]
async fn a_chunked_body_is_a_body() {
    let server = Running::start(|settings| settings.limits.body_bytes = 10).await;
    let mut stream = server.connect().await;
    let chunked = head(0).replace("content-length: 0", "transfer-encoding: chunked");
    let reply = ask(&mut stream, format!("{chunked}5\r\n12345\r\n5\r\n67890\r\n0\r\n\r\n")).await;
    assert_eq!(reply.json()["bytes"], 10);
    let reply = ask(&mut stream, format!("{chunked}5\r\n12345\r\n6\r\n678901\r\n0\r\n\r\n")).await;
    reply.refusal(413, "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_body_in_many_pieces_arrives_whole() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    send(&mut stream, head(30)).await;
    for _ in 0..30 {
        send(&mut stream, "x").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(read_reply(&mut stream).await.json()["bytes"], 30);
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let server = Running::start(|_| {}).await;
    let mut stream = server.connect().await;
    let reply = ask(&mut stream, "what is this\r\n\r\n").await;
    assert_eq!(reply.status, 400);
    let mut stream = server.connect().await;
    let long = "x".repeat(100_000);
    let reply = ask(&mut stream, format!("GET /healthz HTTP/1.1\r\nhost: a\r\nlong: {long}")).await;
    assert_eq!(reply.status, 431);
}
