//! Which clients get their reviews answered: those with a certificate that proves who they are.
//!
//! TLS asks every client for a certificate and takes those that have none, because probes have none.
//! One that does not hold ends the handshake. The routes of the webhooks do the rest.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use hyper::http::Extensions;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use tracing::warn;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

use super::refusal::{Refusal, echo};
use crate::certs::ClientAuthority;

/// What a client has to prove before its reviews are answered.
#[derive(Debug, Clone)]
pub struct ClientAuthentication {
    /// Who has to have signed its certificate.
    pub authority: ClientAuthority,
    /// The names of which its certificate has to have one, letter for letter: a common name of its
    /// subject, or a DNS name among its subject alternative names. Without any, every certificate of
    /// the authority will do.
    pub names: Vec<String>,
}

/// The authority that new handshakes are checked against.
#[derive(Debug)]
pub(super) struct Trusted {
    authority: ArcSwap<ClientAuthority>,
    reported: Reported,
}

impl Trusted {
    pub(super) fn new(authority: ClientAuthority) -> Self {
        Self { authority: ArcSwap::from_pointee(authority), reported: Reported::default() }
    }

    /// Checks against another one from here on; connections that are open keep what they proved.
    pub(super) fn replace(&self, authority: ClientAuthority) {
        self.authority.store(Arc::new(authority));
    }
}

impl ClientCertVerifier for Trusted {
    fn client_auth_mandatory(&self) -> bool {
        self.authority.load().verifier().client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // See `ClientAuthority`.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.authority.load().verifier().verify_client_cert(end_entity, intermediates, now).inspect_err(|error| {
            if self.reported.is_due() {
                log(end_entity, error);
            }
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.load().verifier().verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.load().verifier().verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.load().verifier().supported_verify_schemes()
    }
}

/// How often a refused certificate is worth a line in the log: anybody can show one, time after time.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// When the last one was reported.
#[derive(Debug, Default)]
struct Reported(Mutex<Option<Instant>>);

impl Reported {
    /// Whether this one is to be reported, too.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= REPORT_EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Says whose certificate was not taken, and why. The client is told no more than TLS has words for.
fn log(certificate: &CertificateDer<'_>, error: &Error) {
    let (subject, issuer) = match x509_parser::parse_x509_certificate(certificate) {
        Ok((_, certificate)) => (echo(&certificate.subject().to_string()), echo(&certificate.issuer().to_string())),
        Err(_) => Default::default(),
    };
    warn!(subject, issuer, %error, "a client certificate was refused: compare it with --client-ca");
}

/// The names in the certificate that a client showed, and that was verified.
#[derive(Debug, Clone)]
pub(super) struct ClientNames(Arc<[String]>);

impl ClientNames {
    /// Reads the names of a verified chain; nothing where the client showed none.
    pub(super) fn of(chain: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        Some(Self(match x509_parser::parse_x509_certificate(chain?.first()?) {
            Ok((_, certificate)) => names(&certificate).map(str::to_owned).collect(),
            // What verified it could read it.
            Err(_) => Arc::default(),
        }))
    }
}

/// The common names of the subject, and then the DNS names.
fn names<'c>(certificate: &'c X509Certificate<'_>) -> impl Iterator<Item = &'c str> {
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let dns = alternative.into_iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    });
    common.chain(dns)
}

/// The clients that may ask for reviews.
#[derive(Debug, Clone)]
pub(super) enum Allowed {
    /// All that reach the server.
    Anyone,
    /// Those with a verified certificate that has one of these names; with any, where there are none.
    Named(Arc<[String]>),
}

impl Allowed {
    /// Refuses a request whose connection has not proved that its client may ask.
    pub(super) fn check(&self, request: &Extensions) -> Result<(), Refusal> {
        let Self::Named(allowed) = self else { return Ok(()) };
        let ClientNames(found) = request.get().ok_or(Refusal::NoClientCertificate)?;
        if allowed.is_empty() || found.iter().any(|name| allowed.contains(name)) {
            return Ok(());
        }
        Err(Refusal::ClientName { found: listed(found), allowed: listed(allowed) })
    }
}

/// `"a", "b"`, short enough to tell a client.
fn listed(names: &[String]) -> String {
    match names {
        [] => "no name".to_owned(),
        names => echo(&names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")),
    }
}
