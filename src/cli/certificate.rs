//! Where the server's certificate comes from: files, a Secret that podgate keeps, or memory.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thiserror::Error;
use tracing::{info, warn};

use super::duration;
use super::follow::CertificateFiles;
use crate::certs::{CertificateError, Lifetimes, LifetimesError, ServerCertificate, Standing};
use crate::cluster::{self, ClusterError, ConnectError, Keeper, Listener, Operation, SecretName};
use crate::metrics::ReloadedFile;
use crate::server::Control;

#[derive(Debug, Args)]
pub(super) struct CertificateArguments {
    /// The server's certificate and its chain, in PEM; one for localhost is made without it
    #[arg(id = "tls_cert", long = "tls-cert", value_name = "FILE", requires = "tls_key")]
    certificate: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE", requires = "tls_cert")]
    key: Option<PathBuf>,
    /// The Secret in which podgate makes, shares and renews its certificate itself; it also keeps the
    /// caBundle of its webhook configurations right
    #[arg(id = "tls_secret", long = "tls-secret", value_name = "NAMESPACE/NAME", conflicts_with = "tls_cert")]
    secret: Option<SecretName>,
    /// How long a certificate in that Secret lives; it is renewed after two thirds of that
    #[arg(
        long = "tls-leaf-lifetime", value_name = "DURATION", requires = "tls_secret", default_value = "90d",
        value_parser = duration::parse
    )]
    leaf_lifetime: Duration,
    /// How long the authority in that Secret lives; at least three times as long
    #[arg(
        long = "tls-ca-lifetime", value_name = "DURATION", requires = "tls_secret", default_value = "365d",
        value_parser = duration::parse
    )]
    authority_lifetime: Duration,
}

/// Where the certificate comes from.
pub(super) enum Source {
    /// Memory: made for localhost at every start.
    Memory,
    Files(CertificateFiles),
    Secret(SecretName, Lifetimes),
}

/// Why the server cannot start with its certificate.
#[derive(Debug, Error)]
pub(super) enum SourceError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Lifetimes(#[from] LifetimesError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl CertificateArguments {
    pub(super) fn source(&self) -> Result<Source, SourceError> {
        if let Some((certificate, key)) = self.certificate.clone().zip(self.key.clone()) {
            return Ok(Source::Files(CertificateFiles::new(certificate, key)));
        }
        let Some(secret) = self.secret.clone() else { return Ok(Source::Memory) };
        // What is too long for a date is too long for a certificate.
        let lifetime = |duration: Duration| time::Duration::try_from(duration).map_err(|_| LifetimesError);
        let lifetimes = Lifetimes::new(lifetime(self.authority_lifetime)?, lifetime(self.leaf_lifetime)?)?;
        Ok(Source::Secret(secret, lifetimes))
    }
}

impl Source {
    /// The certificate to start with. That of a Secret comes once the API server has answered.
    pub(super) fn first(&self) -> Result<Option<ServerCertificate>, SourceError> {
        match self {
            Self::Secret(..) => Ok(None),
            Self::Memory => {
                let certificate = ServerCertificate::for_localhost()?;
                info!(
                    expires = %certificate.expires().date(),
                    "no --tls-cert: made a certificate for localhost, in memory; clients can trust one from `podgate certs`"
                );
                Ok(Some(certificate))
            }
            Self::Files(files) => {
                let certificate = ServerCertificate::from_files(&files.certificate, &files.key)?;
                let (file, expires) = (files.certificate.display(), certificate.expires().date());
                match certificate.standing() {
                    Standing::Valid => info!(%file, %expires, "certificate"),
                    Standing::NotYetValid => {
                        let starts = certificate.validity().starts;
                        warn!(%file, %starts, "the certificate is not valid yet: until then the server is not ready");
                    }
                    Standing::Expired => warn!(%file, expired = %expires, "the certificate has expired: replace it"),
                }
                Ok(Some(certificate))
            }
        }
    }

    /// Keeps the server's certificate as new as what it comes from, in the background.
    pub(super) async fn follow(self, control: Control, interval: Duration) -> Result<(), SourceError> {
        match self {
            Self::Memory => {}
            Self::Files(files) => {
                tokio::spawn(files.follow(control, interval));
            }
            Self::Secret(secret, lifetimes) => {
                let client = cluster::connect().await?;
                tokio::spawn(Keeper::new(client, secret, lifetimes, interval, control).run());
            }
        }
        Ok(())
    }
}

impl Listener for Control {
    fn show(&self, certificate: &ServerCertificate) {
        self.replace_certificate(certificate);
        self.count_reload(ReloadedFile::Certificate, true);
    }

    fn failed(&self, operation: Operation, error: &ClusterError) {
        self.count_cluster_error(operation);
        self.certificate_waits_for(error.to_string());
    }
}
