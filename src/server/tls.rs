//! TLS as kube-apiserver speaks it.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;

use crate::certs::ServerCertificate;

/// HTTP/2's name in ALPN (RFC 9113, section 3.1).
pub(super) const HTTP2: &[u8] = b"h2";
/// HTTP/1.1's name in ALPN (RFC 7301, section 6).
const HTTP1: &[u8] = b"http/1.1";

/// TLS 1.2 and 1.3 with this certificate, and HTTP/2 on offer unless `http1_only`.
///
/// # Errors
///
/// Where rustls does not take the configuration.
pub(super) fn configure(certificate: &ServerCertificate, http1_only: bool) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certificate.certified())));
    // kube-apiserver never resumes a session: tickets would be bytes for nobody, and a store memory.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = if http1_only { vec![HTTP1.to_vec()] } else { vec![HTTP2.to_vec(), HTTP1.to_vec()] };
    Ok(config)
}
