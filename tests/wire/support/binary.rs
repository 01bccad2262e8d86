//! The real binary, as a process of its own.

use std::net::SocketAddr;
use std::process::{ExitStatus, Output, Stdio};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{HTTP1, Tls, client_config, connect, within};

/// Runs a command to its end.
pub(crate) async fn podgate(arguments: &[&str]) -> Output {
    within(Command::new(env!("CARGO_BIN_EXE_podgate")).args(arguments).output()).await.expect("the binary runs")
}

/// The lines of a log, read as they come, lest the server wait for a full pipe.
fn lines(log: ChildStderr) -> UnboundedReceiver<String> {
    let (lines, received) = unbounded_channel();
    tokio::spawn(async move {
        let mut log = BufReader::new(log).lines();
        while let Some(line) = log.next_line().await.expect("text") {
            // Nobody may care any more.
            let _ = lines.send(line);
        }
    });
    received
}

/// `podgate serve`, running. Killed when dropped.
pub(crate) struct Binary {
    child: Child,
    log: UnboundedReceiver<String>,
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
    root: CertificateDer<'static>,
    _certificates: TempDir,
}

impl Binary {
    /// Starts it on free ports, with certificates from `podgate certs`.
    pub(crate) async fn serve(arguments: &[&str]) -> Self {
        Self::serve_and_log("info", arguments).await
    }

    /// The same, with a log of another level.
    pub(crate) async fn serve_and_log(level: &str, arguments: &[&str]) -> Self {
        let certificates = tempfile::tempdir().expect("a directory");
        let file = |name: &str| certificates.path().join(name);
        assert!(podgate(&["certs", "--dir", certificates.path().to_str().expect("text")]).await.status.success());
        let mut child = Command::new(env!("CARGO_BIN_EXE_podgate"))
            .args(["serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"])
            .arg("--tls-cert")
            .arg(file("tls.crt"))
            .arg("--tls-key")
            .arg(file("tls.key"))
            .args(arguments)
            .env("PODGATE_LOG", level)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary runs");
        let mut log = lines(child.stderr.take().expect("it is piped"));
        let line = loop {
            let line = within(log.recv()).await.expect("a line that says where it listens");
            if line.contains("listening") {
                break line;
            }
        };
        let field = |name: &str| {
            // addr=127.0.0.1:1 as text, "addr":"127.0.0.1:1" as JSON.
            line.split([' ', '{', ',', '}'])
                .find_map(|word| word.replace('"', "").strip_prefix(name)?.get(1..)?.parse::<SocketAddr>().ok())
                .expect("an address")
        };
        Self {
            addr: field("addr"),
            admin_addr: field("admin_addr"),
            child,
            log,
            root: CertificateDer::from_pem_file(file("ca.crt")).expect("a certificate"),
            _certificates: certificates,
        }
    }

    /// A connection that speaks HTTP/1.1.
    pub(crate) async fn connect(&self) -> Tls {
        connect(self.addr, client_config(self.root.clone(), &[HTTP1])).await
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().await.expect("kill runs");
        assert!(sent.success());
    }

    /// Waits until the log has a line with `text`.
    pub(crate) async fn until_logged(&mut self, text: &str) {
        while !within(self.log.recv()).await.expect("another line").contains(text) {}
    }

    /// How it ended, and what it logged since.
    pub(crate) async fn ended(mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        while let Some(line) = within(self.log.recv()).await {
            log.push_str(&line);
            log.push('\n');
        }
        (within(self.child.wait()).await.expect("it ends"), log)
    }
}
