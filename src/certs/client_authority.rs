//! The authorities whose client certificates the server takes.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::certificate::X509Certificate;
use x509_parser::x509::X509Version;

use super::load::{CertificateError, certificates, read};

/// One certificate authority or several, any of which may have signed a client's certificate.
#[derive(Debug, Clone)]
pub struct ClientAuthority {
    verifier: Arc<dyn ClientCertVerifier>,
    count: usize,
}

impl ClientAuthority {
    /// Reads the PEM certificates of the authorities.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, holds no certificate, or one that is not of an authority.
    pub fn from_file(file: &Path) -> Result<Self, CertificateError> {
        let certificates = certificates(&read(file)?, file)?;
        let count = certificates.len();
        let mut roots = RootCertStore::empty();
        for (index, certificate) in certificates.into_iter().enumerate() {
            add(&mut roots, certificate).map_err(|problem| CertificateError::Authority {
                file: file.to_owned(),
                number: index + 1,
                problem,
            })?;
        }
        // Without hints a client shows what it has, and is told what is wrong with it. With them, one
        // that has a certificate of another authority would show nothing.
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(aws_lc_rs::default_provider()))
                .clear_root_hint_subjects()
                .allow_unauthenticated()
                .build()
                // It fails where there is no root, and for revocation lists, which there are not.
                .map_err(|_| CertificateError::NoCertificate { file: file.to_owned() })?;
        Ok(Self { verifier, count })
    }

    /// How many authorities there are: one at least.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// What rustls verifies with. It takes clients that show no certificate.
    pub(crate) fn verifier(&self) -> &dyn ClientCertVerifier {
        self.verifier.as_ref()
    }
}

/// Adds an authority, or says what is wrong with it.
fn add(roots: &mut RootCertStore, certificate: CertificateDer<'static>) -> Result<(), String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).map_err(|error| error.to_string())?;
    if !may_sign(&parsed) {
        return Err("it is a certificate that may not sign others (its basic constraints do not say CA)".to_owned());
    }
    roots.add(certificate).map_err(|error| error.to_string())
}

/// Certificates older than version 3 cannot say whether they may.
fn may_sign(certificate: &X509Certificate<'_>) -> bool {
    certificate.version() != X509Version::V3 || certificate.is_ca()
}
