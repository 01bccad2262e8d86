//! `podgate serve` as a process, and its certificates.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, ExitStatus, Stdio};

use super::process::{Supervised, command};

/// The program under test.
pub(crate) const PODGATE: &str = env!("CARGO_BIN_EXE_podgate");

/// Makes ca.crt, tls.crt and tls.key in a folder.
pub(crate) fn make_certificates(folder: &Path) -> PathBuf {
    let certs = folder.join("certs");
    let made = Command::new(PODGATE).args(["certs", "--dir"]).arg(&certs).output().expect("podgate runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    certs
}

/// A running replica; killed when dropped.
pub(crate) struct Replica {
    process: Supervised,
    pub(crate) addr: SocketAddr,
    admin_addr: SocketAddr,
}

impl Replica {
    /// Starts one on free ports, over HTTP/1.1 as a service-based webhook is called.
    pub(crate) fn start(certs: &Path) -> Self {
        Self::start_with(certs, "127.0.0.1:0", &["--http1-only"])
    }

    pub(crate) fn start_with(certs: &Path, addr: &str, arguments: &[&str]) -> Self {
        let mut serve = serve(addr);
        serve.arg("--tls-cert").arg(certs.join("tls.crt")).arg("--tls-key").arg(certs.join("tls.key"));
        Self::spawn(serve.args(arguments))
    }

    /// Starts one that keeps its certificate in the Secret security-system/webhook-tls, at the API
    /// server of the kubeconfig.
    pub(crate) fn keeping(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let mut serve = serve("127.0.0.1:0");
        serve
            .args(["--tls-secret", "security-system/webhook-tls", "--http1-only", "--reload-interval", "1s"])
            .env("KUBECONFIG", kubeconfig);
        Self::spawn(serve.args(arguments))
    }

    /// Starts one on its certificate files, with a configuration, that finds the API server by the kubeconfig.
    pub(crate) fn configured(certs: &Path, kubeconfig: &Path, configuration: &Path) -> Self {
        let mut serve = serve("127.0.0.1:0");
        serve.arg("--tls-cert").arg(certs.join("tls.crt")).arg("--tls-key").arg(certs.join("tls.key"));
        serve.arg("--config").arg(configuration).args(["--http1-only", "--reload-interval", "1s"]);
        Self::spawn(serve.env("KUBECONFIG", kubeconfig))
    }

    fn spawn(serve: &mut Command) -> Self {
        let mut process = Supervised::spawn(serve.stdout(Stdio::null()).stderr(Stdio::piped()));
        let [addr, admin_addr] = addresses(process.take_stderr());
        Self { process, addr, admin_addr }
    }

    /// What the readiness probe is told.
    pub(crate) fn readiness(&self) -> String {
        get(self.admin_addr, "/readyz").expect("the admin port answers")
    }

    /// Whether the liveness probe succeeds.
    pub(crate) fn is_alive(&self) -> bool {
        answers_ok(self.admin_addr, "/livez")
    }

    /// Whether the readiness probe succeeds.
    pub(crate) fn is_ready(&self) -> bool {
        answers_ok(self.admin_addr, "/readyz")
    }

    pub(crate) fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// The value of a metric, or nothing where it is not there.
    pub(crate) fn metric(&self, name_and_labels: &str) -> Option<f64> {
        let text = get(self.admin_addr, "/metrics")?;
        text.lines().find_map(|line| line.strip_prefix(name_and_labels)?.trim().parse().ok())
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.process.terminate()
    }

    /// SIGKILL.
    pub(crate) fn kill(self) {
        drop(self.process);
    }
}

fn serve(addr: &str) -> Command {
    let mut command = command(Path::new(PODGATE));
    command.args(["serve", "--addr", addr, "--admin-addr", "127.0.0.1:0", "--drain-delay", "1s"]);
    command
}

/// Reads the log up to the line with the addresses; the rest is passed on, lest podgate stop for
/// a full pipe.
fn addresses(log: ChildStderr) -> [SocketAddr; 2] {
    let mut log = BufReader::new(log);
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).expect("the log is text"), 0, "podgate ended: {said}");
        let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        if let (Some(addr), Some(admin_addr)) = (field("addr="), field("admin_addr=")) {
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::stderr()));
            return [addr, admin_addr];
        }
        said.push_str(&line);
    }
}

/// Whether a GET is answered with 200.
pub(crate) fn answers_ok(addr: SocketAddr, path: &str) -> bool {
    get(addr, path).is_some_and(|reply| reply.starts_with("HTTP/1.1 200"))
}

fn get(addr: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    Some(reply)
}
