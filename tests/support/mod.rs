//! podgate as a process, and a client that speaks HTTP/1.1 over TLS to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

/// Longer than any answer takes, so that a hang is a failure and not a stuck test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `podgate serve` with certificates of its own; stopped when dropped.
pub(crate) struct Podgate {
    process: Child,
    /// Where the webhooks are.
    pub(crate) addr: SocketAddr,
    tls: Arc<ClientConfig>,
    _folder: TempDir,
}

impl Podgate {
    /// Starts it with a configuration, on ports that the system chooses.
    pub(crate) fn start(configuration: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let certs = folder.path().join("certs");
        let made = podgate().arg("certs").arg("--dir").arg(&certs).output().expect("podgate certs runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, configuration).expect("the configuration can be written");
        let mut process = podgate()
            .arg("serve")
            .arg("--config")
            .arg(config)
            .args(["--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--drain-delay", "0s"])
            .arg("--tls-cert")
            .arg(certs.join("tls.crt"))
            .arg("--tls-key")
            .arg(certs.join("tls.key"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("podgate serve starts");
        let addr = address(&mut process);
        Self { process, addr, tls: trusting(&certs.join("ca.crt")), _folder: folder }
    }

    /// Sends one request on a connection of its own, and reads the answer.
    pub(crate) fn send(&self, request: &Request) -> Reply {
        let stream = TcpStream::connect(self.addr).expect("podgate accepts connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a read timeout");
        let name = ServerName::try_from("localhost").expect("localhost is a name");
        let session = ClientConnection::new(Arc::clone(&self.tls), name).expect("the settings are right");
        let mut stream = StreamOwned::new(session, stream);
        stream.write_all(&request.to_bytes()).expect("podgate reads the request");
        Reply::read(stream)
    }
}

impl Drop for Podgate {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn podgate() -> Command {
    Command::new(env!("CARGO_BIN_EXE_podgate"))
}

/// Reads the log up to the line with the address; the rest is read and thrown away, lest podgate
/// stop for a full pipe.
fn address(process: &mut Child) -> SocketAddr {
    let mut log = BufReader::new(process.stderr.take().expect("stderr is piped"));
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).expect("the log is text"), 0, "podgate ended: {said}");
        if let Some((_, rest)) = line.split_once(" addr=") {
            let address = rest.split_whitespace().next().and_then(|address| address.parse().ok());
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return address.unwrap_or_else(|| panic!("no address in {line}"));
        }
        said.push_str(&line);
    }
}

fn trusting(authority: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(authority).expect("ca.crt is a certificate");
    roots.add(certificate).expect("ca.crt is an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has every version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// A request, as kube-apiserver sends it unless told otherwise.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Besides Host and Content-Length.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn post(path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: body.into(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { method, path, headers, body } = self;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&[name, ": ", value, "\r\n"].concat());
        }
        head.push_str(&["Content-Length: ", &body.len().to_string(), "\r\n\r\n"].concat());
        [head.as_bytes(), body].concat()
    }
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    fn read(mut stream: impl Read) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("podgate closes the connection after its answer");
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("the answer has a head");
        let head = String::from_utf8(bytes[..end].to_vec()).expect("the head is text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("the head has a status");
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }
}
