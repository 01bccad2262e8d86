//! TLS as kube-apiserver speaks it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::crypto::aws_lc_rs;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoClientAuth, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};

use super::clients::Trusted;
use crate::certs::ServerCertificate;

/// HTTP/2's name in ALPN (RFC 9113, section 3.1).
pub(super) const HTTP2: &[u8] = b"h2";
/// HTTP/1.1's name in ALPN (RFC 7301, section 6).
const HTTP1: &[u8] = b"http/1.1";

/// The certificate that new handshakes are shown; without one, they fail.
#[derive(Debug)]
pub(super) struct Shown(ArcSwapOption<CertifiedKey>);

impl Shown {
    pub(super) fn new(certificate: Option<&ServerCertificate>) -> Self {
        Self(ArcSwapOption::new(certificate.map(ServerCertificate::certified)))
    }

    /// Shows another one from here on; connections that are open keep theirs.
    pub(super) fn replace(&self, certificate: &ServerCertificate) {
        self.0.store(Some(certificate.certified()));
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

/// The most of an answer that a connection encrypts before its client takes it: one record
/// (RFC 8446, section 5.1).
const UNSENT_MAX: usize = 16 << 10;

/// Keeps what a connection holds for a client that does not read small.
pub(super) fn limit_buffers(connection: &mut ServerConnection) {
    connection.set_buffer_limit(Some(UNSENT_MAX));
}

/// TLS 1.2 and 1.3 with the certificate that is shown, and HTTP/2 on offer unless `http1_only`. Clients are
/// asked for a certificate where there is someone `trusted` to have signed it.
///
/// # Errors
///
/// Where rustls does not take the configuration.
pub(super) fn configure(
    shown: Arc<Shown>,
    trusted: Option<Arc<Trusted>>,
    http1_only: bool,
) -> Result<ServerConfig, rustls::Error> {
    let verifier: Arc<dyn ClientCertVerifier> = match trusted {
        Some(trusted) => trusted,
        None => Arc::new(NoClientAuth),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(shown);
    // kube-apiserver never resumes a session: tickets would be bytes for nobody, and a store memory.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = if http1_only { vec![HTTP1.to_vec()] } else { vec![HTTP2.to_vec(), HTTP1.to_vec()] };
    Ok(config)
}
