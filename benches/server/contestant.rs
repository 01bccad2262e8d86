//! The two servers that are compared, each as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use podgate::admission::{self, Answer, Verdict, Webhook};
use podgate::certs::ServerCertificate;
use podgate::policy::Policies;
use podgate::server::{Limits, Server, Settings};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::reviews;

/// Serves a fixed answer until standard input ends, as it does when the benchmark does.
pub(crate) fn serve_no_op(folder: &Path) {
    let certificate =
        ServerCertificate::from_files(&folder.join("tls.crt"), &folder.join("tls.key")).expect("the files are right");
    let any = "127.0.0.1:0".parse().expect("an address");
    let settings = Settings {
        addr: any,
        admin_addr: any,
        http1_only: false,
        drain_delay: Duration::ZERO,
        clients: None,
        limits: Limits::default(),
    };
    let review = reviews::body(&reviews::hardened(&reviews::small()));
    let today = time::OffsetDateTime::now_utc().date();
    let body = admission::answer(&Policies::default(), Webhook::Validate, &review, today).body;
    let admit = Arc::new(move |_, _: &_| Answer {
        status: 200,
        body: body.clone(),
        verdict: Verdict::Allowed,
        operation: "CREATE",
        resource: "pods",
        violations: Vec::new(),
        event: None,
    });
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(async {
        let server = Server::bind(settings, Some(&certificate), admit).await.expect("free ports");
        eprintln!("listening addr={}", server.addr());
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        server.run(async { drop(end.await) }).await;
    });
}

/// A server, running. It ends when dropped.
pub(crate) struct Contestant {
    process: Child,
    pub(crate) addr: SocketAddr,
    pub(crate) authority: CertificateDer<'static>,
}

impl Contestant {
    /// The server that decides nothing, with the certificate in a folder.
    pub(crate) fn no_op(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.arg("no-op").arg(folder);
        Self::start(command, folder)
    }

    /// `podgate serve`, with the certificate in a folder.
    pub(crate) fn podgate(folder: &Path) -> Self {
        let configuration = folder.join("podgate.yaml");
        std::fs::write(&configuration, reviews::CONFIGURATION).expect("the folder is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_podgate"));
        command.args(["serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"]);
        command.arg("--tls-cert").arg(folder.join("tls.crt")).arg("--tls-key").arg(folder.join("tls.key"));
        command.arg("--config").arg(configuration);
        command.env("GLIBC_TUNABLES", tunables());
        Self::start(command, folder)
    }

    fn start(mut command: Command, folder: &Path) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server is a program");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr is piped")).lines();
        let addr = lines
            .find_map(|line| {
                let line = line.expect("text");
                let address = line.split(' ').find_map(|word| word.strip_prefix("addr="));
                address.map(|address| address.parse().expect("an address"))
            })
            .expect("the server says where it listens");
        // Whoever writes to a pipe that nobody reads waits for ever once it is full.
        std::thread::spawn(move || lines.for_each(drop));
        let authority = CertificateDer::from_pem_file(folder.join("ca.crt")).expect("a certificate");
        Self { process, addr, authority }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the image tells glibc.
fn tunables() -> &'static str {
    let line = include_str!("../../Dockerfile").lines().find_map(|line| line.strip_prefix("ENV GLIBC_TUNABLES="));
    line.expect("the image has such a line")
}

/// A folder with a certificate of its own, as `podgate certs` makes it.
pub(crate) fn folder_with_certificate() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new(env!("CARGO_BIN_EXE_podgate")).args(["certs", "--dir"]).arg(folder.path()).output();
    assert!(made.expect("podgate runs").status.success());
    folder
}
