//! TLS as it is offered.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, HandshakeKind, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{HTTP1, HTTP2, Running, ask, client_config, connect, is_closed, post, within};

#[tokio::test]
async fn a_client_chooses_its_http() {
    let server = Running::start(|_| {}).await;
    let root = server.certificate.chain()[0].clone();
    for (offered, chosen) in [
        (vec![HTTP2, HTTP1], Some(HTTP2)),
        (vec![HTTP1, HTTP2], Some(HTTP2)),
        (vec![HTTP1], Some(HTTP1)),
        (vec![], None),
    ] {
        let stream = connect(server.addr, client_config(root.clone(), &offered)).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen);
    }
    // Without ALPN it is HTTP/1.1.
    let mut stream = connect(server.addr, client_config(root, &[])).await;
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
}

#[tokio::test]
async fn http1_only_does_not_offer_http2() {
    let server = Running::start(|settings| settings.http1_only = true).await;
    let config = client_config(server.certificate.chain()[0].clone(), &[HTTP2, HTTP1]);
    let mut stream = connect(server.addr, config).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(HTTP1));
    assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
}

#[tokio::test]
async fn sessions_are_not_resumed() {
    let server = Running::start(|_| {}).await;
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let mut roots = RootCertStore::empty();
        roots.add(server.certificate.chain()[0].clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let config = Arc::new(config);
        for _ in 0..2 {
            let mut stream = connect(server.addr, Arc::clone(&config)).await;
            // A ticket would come with the answer.
            assert_eq!(ask(&mut stream, post("/mutate", "{}")).await.status, 200);
            let session = stream.get_ref().1;
            assert_eq!(session.protocol_version(), Some(version.version));
            assert_ne!(session.handshake_kind(), Some(HandshakeKind::Resumed));
            assert_eq!(session.tls13_tickets_received(), 0);
        }
    }
}

#[tokio::test]
async fn a_handshake_that_is_none_is_counted() {
    let server = Running::start(|_| {}).await;
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut alert = Vec::new();
    let _ = within(stream.read_to_end(&mut alert)).await;
    assert!(!alert.starts_with(b"HTTP"));
    server.until_metric("podgate_handshake_failures_total{reason=\"tls\"}", 1.0).await;
    drop(TcpStream::connect(server.addr).await.unwrap());
    server.until_metric("podgate_handshake_failures_total{reason=\"closed\"}", 1.0).await;
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_dropped() {
    let server = Running::start(|settings| settings.limits.handshake = crate::support::SHORT).await;
    let mut silent = TcpStream::connect(server.addr).await.unwrap();
    assert!(is_closed(&mut silent).await);
    let mut half = TcpStream::connect(server.addr).await.unwrap();
    // The beginning of a ClientHello.
    half.write_all(&[22, 3, 1, 2, 0, 1, 0]).await.unwrap();
    assert!(is_closed(&mut half).await);
    server.until_metric("podgate_handshake_failures_total{reason=\"timeout\"}", 2.0).await;
}
