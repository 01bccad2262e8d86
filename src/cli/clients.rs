//! Which clients the server answers: `--client-ca` and `--client-name`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tracing::info;

use super::follow::ClientAuthorityFile;
use crate::certs::{CertificateError, ClientAuthority};
use crate::server::ClientAuthentication;

#[derive(Debug, Args)]
pub(super) struct ClientArguments {
    /// Answer reviews only to clients with a certificate that an authority in this file signed, in PEM;
    /// probes need none
    #[arg(id = "client_ca", long = "client-ca", value_name = "FILE")]
    authority: Option<PathBuf>,
    /// And only those with this common name or DNS name in it; may be repeated
    #[arg(
        id = "client_name", long = "client-name", value_name = "NAME", requires = "client_ca",
        value_parser = NonEmptyStringValueParser::new()
    )]
    names: Vec<String>,
}

impl ClientArguments {
    /// What clients have to prove, and the file to follow; nothing without `--client-ca`.
    pub(super) fn authentication(
        &self,
    ) -> Result<Option<(ClientAuthentication, ClientAuthorityFile)>, CertificateError> {
        let Some(path) = self.authority.clone() else { return Ok(None) };
        let file = ClientAuthorityFile::new(path);
        let authority = ClientAuthority::from_file(&file.path)?;
        info!(
            file = %file.path.display(), authorities = authority.count(), names = ?self.names,
            "reviews are answered to clients with a certificate only"
        );
        Ok(Some((ClientAuthentication { authority, names: self.names.clone() }, file)))
    }
}
