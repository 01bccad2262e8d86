//! The certificate that the server shows, with its key.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};
use thiserror::Error;
use time::OffsetDateTime;

use super::issue::for_localhost;
use super::validity::{Standing, Validity};

/// Why a certificate or its key cannot be used.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {file}: {error}; see that it exists and that podgate may read it", file = .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// A file is not PEM.
    #[error("{file} is not PEM ({error}): convert it, or make one with `podgate certs`", file = .file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: pem::Error,
    },
    /// A file ends too early.
    #[error("{file} ends inside a section: it is half written, so copy it again", file = .file.display())]
    HalfWritten {
        /// The file.
        file: PathBuf,
    },
    /// The certificate file holds something else.
    #[error(
        "{file} holds no certificate: it needs a section that begins with -----BEGIN CERTIFICATE-----",
        file = .file.display()
    )]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// The key file holds something else, or an encrypted key.
    #[error(
        "{file} holds no private key that podgate can read: it needs an unencrypted PRIVATE KEY, EC PRIVATE KEY or \
         RSA PRIVATE KEY section",
        file = .file.display()
    )]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// The certificate cannot be parsed.
    #[error(
        "certificate {number} in {file} is no X.509 certificate: {error}; clients refuse the whole chain for it",
        file = .file.display()
    )]
    NotX509 {
        /// The file.
        file: PathBuf,
        /// Which of those in the file, from 1.
        number: usize,
        /// What is wrong with it.
        error: String,
    },
    /// The key is of a kind that TLS has no use for.
    #[error("the key in {file} cannot be used: {error}; take an ECDSA P-256 or RSA 2048 key", file = .file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// What rustls says.
        error: TlsError,
    },
    /// Certificate and key are not a pair.
    #[error(
        "the key in {key} does not belong to the first certificate in {certificate}: take the two that were made \
         together, the server's own certificate first",
        key = .key.display(), certificate = .certificate.display()
    )]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A certificate is not of an authority.
    #[error(
        "certificate {number} in {file} is not that of a certificate authority: {problem}; take the one that signed \
         the clients' certificates",
        file = .file.display()
    )]
    Authority {
        /// The file.
        file: PathBuf,
        /// Which of those in the file, from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate for localhost: {0}")]
    Make(#[from] rcgen::Error),
}

impl CertificateError {
    /// What keeps a file from being PEM.
    fn pem(file: &Path, error: pem::Error) -> Self {
        let file = file.to_owned();
        match error {
            pem::Error::MissingSectionEnd { .. } => Self::HalfWritten { file },
            error => Self::Pem { file, error },
        }
    }
}

/// A certificate chain with its private key, ready to be shown.
#[derive(Debug, Clone)]
pub struct ServerCertificate {
    certified: Arc<CertifiedKey>,
    validity: Validity,
}

impl ServerCertificate {
    /// Makes a certificate for localhost and its addresses, which lives in memory only.
    ///
    /// # Errors
    ///
    /// Where the cryptographic library fails.
    pub fn for_localhost() -> Result<Self, CertificateError> {
        let nowhere = Path::new("memory");
        let (certificate, key) = for_localhost()?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Self::new(vec![certificate.der().clone()], key.into(), nowhere, nowhere)
    }

    /// Reads a chain of PEM certificates, the server's first, and the key that belongs to it
    /// (PKCS#8, SEC1 or PKCS#1, unencrypted).
    ///
    /// # Errors
    ///
    /// Where a file cannot be read, does not hold what it should, or the two are not a pair.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        Self::from_pem(&read(certificate)?, &read(key)?, certificate, key)
    }

    /// The same of what is in memory; `certificate` and `key` are what errors call the two.
    pub(super) fn from_pem(
        chain: &[u8],
        private_key: &[u8],
        certificate: &Path,
        key: &Path,
    ) -> Result<Self, CertificateError> {
        let chain = certificates(chain, certificate)?;
        let private_key = match PrivateKeyDer::from_pem_slice(private_key) {
            Ok(private_key) => private_key,
            Err(pem::Error::NoItemsFound) => return Err(CertificateError::NoKey { file: key.to_owned() }),
            Err(error) => return Err(CertificateError::pem(key, error)),
        };
        Self::new(chain, private_key, certificate, key)
    }

    /// When the server's own certificate expires.
    #[must_use]
    pub fn expires(&self) -> OffsetDateTime {
        self.validity.ends
    }

    /// From when to when the server's own certificate is valid.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Whether a client takes the certificate now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.validity.standing(OffsetDateTime::now_utc())
    }

    /// The chain, the server's own certificate first.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.certified.cert
    }

    /// What rustls shows and signs with.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        private_key: PrivateKeyDer<'static>,
        certificate: &Path,
        key: &Path,
    ) -> Result<Self, CertificateError> {
        let validity = validity(&chain, certificate)?;
        let private_key = aws_lc_rs::default_provider()
            .key_provider
            .load_private_key(private_key)
            .map_err(|error| CertificateError::Key { file: key.to_owned(), error })?;
        let certified = CertifiedKey::new(chain, private_key);
        match certified.keys_match() {
            Ok(()) => Ok(Self { certified: Arc::new(certified), validity }),
            Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(CertificateError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() })
            }
            Err(error) => Err(CertificateError::Key { file: key.to_owned(), error }),
        }
    }
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(file).map_err(|error| CertificateError::Read { file: file.to_owned(), error })
}

/// The certificates in what a file holds.
pub(super) fn certificates(pem: &[u8], file: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let each = CertificateDer::pem_slice_iter(pem);
    each.collect::<Result<_, _>>().map_err(|error| CertificateError::pem(file, error))
}

/// The validity of the first certificate of the chain, all of which has to be certificates.
fn validity(chain: &[CertificateDer<'_>], file: &Path) -> Result<Validity, CertificateError> {
    let validities: Result<Vec<_>, _> = (1..)
        .zip(chain)
        .map(|(number, certificate)| match x509_parser::parse_x509_certificate(certificate) {
            Ok((_, certificate)) => Ok(Validity::of(&certificate)),
            Err(error) => Err(CertificateError::NotX509 { file: file.to_owned(), number, error: error.to_string() }),
        })
        .collect();
    validities?.first().copied().ok_or_else(|| CertificateError::NoCertificate { file: file.to_owned() })
}
