//! `podgate certs`: a certificate authority and a server certificate, as files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use thiserror::Error;

use super::{Exit, fail, terminal};
use crate::certs::{self, IssueError};

/// The file of the authority's certificate.
const AUTHORITY_FILE: &str = "ca.crt";
/// The files that a Secret of type kubernetes.io/tls has too.
const CERTIFICATE_FILE: &str = "tls.crt";
const KEY_FILE: &str = "tls.key";

const READABLE_BY_ALL: u32 = 0o644;
const READABLE_BY_OWNER: u32 = 0o600;

/// Make a certificate authority and a server certificate.
///
/// The certificate is for the Service webhook-service in the namespace security-system, for
/// localhost and its addresses, and for each --host. The authority's key is not kept: nobody can
/// have it sign anything else, and a new certificate means a new authority.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  podgate certs --dir certs
  podgate certs --dir certs --host podgate.example.com --host 10.0.0.7")]
pub(super) struct Arguments {
    /// The directory to write ca.crt, tls.crt and tls.key to
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// One more host name or IP address that clients will connect to
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Overwrite files that are there already
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Error)]
enum CertsError {
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error("cannot write {file}: {error}", file = .file.display())]
    Write { file: PathBuf, error: io::Error },
    #[error("{file} is there already: choose another --dir, or overwrite it with --force", file = .file.display())]
    Exists { file: PathBuf },
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    match make(arguments) {
        Ok(()) => Exit::Clean.into(),
        Err(error) => fail(&error),
    }
}

fn make(Arguments { dir, hosts, force }: &Arguments) -> Result<(), CertsError> {
    let issued = certs::issue(hosts)?;
    let files = [
        (dir.join(AUTHORITY_FILE), &issued.authority, READABLE_BY_ALL),
        (dir.join(CERTIFICATE_FILE), &issued.certificate, READABLE_BY_ALL),
        (dir.join(KEY_FILE), &issued.key, READABLE_BY_OWNER),
    ];
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |error| CertsError::Write { file, error }
    };
    fs::create_dir_all(dir).map_err(failed(dir))?;
    for (file, _, _) in &files {
        // A link counts, even one that leads nowhere.
        if file.symlink_metadata().is_ok() {
            if !force {
                return Err(CertsError::Exists { file: file.clone() });
            }
            // A new file gets its own mode, where an old one would keep its.
            fs::remove_file(file).map_err(failed(file))?;
        }
    }
    for (file, text, mode) in &files {
        write(file, text, *mode).map_err(failed(file))?;
    }
    let [(authority, ..), (certificate, ..), (key, ..)] = &files;
    let (authority, certificate, key) = (authority.display(), certificate.display(), key.display());
    let made = format!(
        "{authority}  the authority that clients trust: curl --cacert, or caBundle in base64\n\
         {certificate}  the server's certificate, for a year\n\
         {key}  its key: keep it secret\n\
         next: podgate serve --tls-cert {certificate} --tls-key {key}\n"
    );
    // The files are there, whoever hears of it.
    let _ = terminal::print(made.as_bytes());
    Ok(())
}

fn write(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(file)?.write_all(text.as_bytes())
}
