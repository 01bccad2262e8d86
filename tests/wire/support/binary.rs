//! The real binary, as a process of its own.

use std::io;
use std::net::SocketAddr;
use std::process::{ExitStatus, Output, Stdio};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::TlsConnector;

use super::{HTTP1, HTTP2, Reply, Tls, ask, client_config, connect, try_connect, try_read_reply, until, within};

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
    /// What it logged before it listened.
    pub(crate) first_lines: Vec<String>,
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
    pub(crate) root: CertificateDer<'static>,
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
        let mut first_lines = Vec::new();
        let line = loop {
            let line = within(log.recv()).await.expect("a line that says where it listens");
            if line.contains("listening") {
                break line;
            }
            first_lines.push(line);
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
            first_lines,
            root: CertificateDer::from_pem_file(file("ca.crt")).expect("a certificate"),
            _certificates: certificates,
        }
    }

    /// Bytes in memory, by a line of /proc/PID/status: `VmRSS` now, `VmHWM` at most since it began.
    pub(crate) fn memory(&self, line: &str) -> usize {
        let id = self.child.id().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs, on Linux");
        let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':')).expect("such a line");
        value.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
    }

    /// The value of one metric; 0 where it is not there.
    pub(crate) async fn metric(&self, name_and_labels: &str) -> f64 {
        let mut stream = TcpStream::connect(self.admin_addr).await.expect("the admin port");
        let text = ask(&mut stream, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name_and_labels)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Waits until a metric has a value.
    pub(crate) async fn until_metric(&self, name_and_labels: &str, value: f64) {
        until(name_and_labels, async || (self.metric(name_and_labels).await - value).abs() < 0.1).await;
    }

    /// TLS on a connection that the caller made, for HTTP/1.1.
    pub(crate) async fn encrypt(&self, stream: TcpStream) -> Tls {
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = TlsConnector::from(client_config(self.root.clone(), &[HTTP1]));
        within(connector.connect(name, stream)).await.expect("a TLS connection")
    }

    /// A connection that speaks HTTP/2.
    pub(crate) async fn connect_http2(&self) -> Tls {
        connect(self.addr, client_config(self.root.clone(), &[HTTP2])).await
    }

    /// Asks on a connection of its own, which may fail.
    pub(crate) async fn try_ask(&self, request: &str) -> io::Result<Reply> {
        let mut stream = try_connect(self.addr, client_config(self.root.clone(), &[HTTP1]), "localhost").await?;
        within(stream.write_all(request.as_bytes())).await?;
        within(stream.flush()).await?;
        try_read_reply(&mut stream).await
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
