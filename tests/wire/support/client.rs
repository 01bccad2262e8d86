//! Clients: TLS, and HTTP/2 on it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::within;

pub(crate) const HTTP1: &[u8] = b"http/1.1";
pub(crate) const HTTP2: &[u8] = b"h2";

pub(crate) type Tls = tokio_rustls::client::TlsStream<TcpStream>;

/// A client that trusts `root`, and offers `protocols`.
pub(crate) fn client_config(root: CertificateDer<'static>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(root).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has both")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

pub(crate) async fn connect(addr: SocketAddr, config: Arc<ClientConfig>) -> Tls {
    try_connect(addr, config, "localhost").await.expect("a TLS connection")
}

pub(crate) async fn try_connect(addr: SocketAddr, config: Arc<ClientConfig>, name: &str) -> io::Result<Tls> {
    within(async {
        let stream = TcpStream::connect(addr).await?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        TlsConnector::from(config).connect(name, stream).await
    })
    .await
}

/// HTTP/2 on a connection: where to send requests, and how the connection ended.
pub(crate) async fn http2(stream: Tls) -> (SendRequest<Full<Bytes>>, JoinHandle<hyper::Result<()>>) {
    let (requests, connection) =
        within(hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)))
            .await
            .expect("HTTP/2");
    (requests, tokio::spawn(connection))
}
