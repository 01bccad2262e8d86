//! podgate beside a server that decides nothing: the same accept loop, TLS and HTTP, but a fixed
//! answer. Both run as processes of their own and are driven in turns by the same client, so that
//! noise hits both; what counts is the ratio. `cargo bench --bench webhooks`.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use podgate::admission::{self, Answer, Verdict, Webhook};
use podgate::certs::{self, ServerCertificate};
use podgate::policy::Policies;
use podgate::server::{Limits, Server, Settings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long one server is driven before the other has its turn.
const TURN: Duration = Duration::from_millis(500);
/// How many turns each has.
const TURNS: usize = 8;
/// How many connections send at once, each one request after the other.
const CONNECTIONS: [usize; 3] = [1, 8, 25];
/// Clock ticks a second in /proc, as Linux has them everywhere.
const TICKS_A_SECOND: f64 = 100.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => serve(&arguments[2..]),
        _ => compare(),
    }
}

/// Serves until standard input ends, as it does when the benchmark does.
fn serve(arguments: &[String]) {
    let [kind, folder] = arguments else { panic!("serve KIND FOLDER") };
    let folder = std::path::Path::new(folder);
    let certificate =
        ServerCertificate::from_files(&folder.join("tls.crt"), &folder.join("tls.key")).expect("the files are right");
    let policies = Policies::default();
    let fixed =
        admission::answer(&policies, Webhook::Validate, &review("mutate/pods-create-dep-65ff7697cb"), today()).body;
    let admit: Arc<podgate::server::Admit> = match kind.as_str() {
        "no-op" => Arc::new(move |_, _| Answer {
            status: 200,
            body: fixed.clone(),
            verdict: Verdict::Allowed,
            operation: "CREATE",
            resource: "pods",
            violations: Vec::new(),
            event: None,
        }),
        _ => Arc::new(move |webhook, body| admission::answer(&policies, webhook, body, today())),
    };
    let any = "127.0.0.1:0".parse().expect("an address");
    let settings = Settings {
        addr: any,
        admin_addr: any,
        http1_only: true,
        drain_delay: Duration::ZERO,
        clients: None,
        limits: Limits::default(),
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(async {
        let server = Server::bind(settings, Some(&certificate), admit).await.expect("free ports");
        println!("{}", server.addr());
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        server.run(async { drop(end.await) }).await;
    });
}

fn review(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/reviews/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// One of the two servers, as a process.
struct Contestant {
    process: Child,
    addr: SocketAddr,
}

impl Contestant {
    fn start(kind: &str, folder: &std::path::Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["serve", kind])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("text");
        Self { process, addr: line.trim().parse().expect("the server prints its address") }
    }

    /// The CPU time that the process has used, in seconds.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("the process runs");
        let (_, fields) = stat.rsplit_once(") ").expect("the name ends with a parenthesis");
        let ticks: f64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        ticks / TICKS_A_SECOND
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// What one contestant did in all its turns.
#[derive(Default)]
struct Tally {
    latencies: Vec<Duration>,
    seconds: f64,
    cpu: f64,
}

impl Tally {
    fn requests_a_second(&self) -> f64 {
        count(&self.latencies) / self.seconds
    }

    fn cpu_micros(&self) -> f64 {
        self.cpu * 1e6 / count(&self.latencies)
    }

    /// The latency below which a share of the requests was, in microseconds.
    fn quantile(&mut self, share: usize) -> f64 {
        self.latencies.sort_unstable();
        self.latencies[(self.latencies.len() - 1) * share / 100].as_secs_f64() * 1e6
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of requests is far below 2^52")]
fn count(latencies: &[Duration]) -> f64 {
    latencies.len() as f64
}

fn compare() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = certs::issue(&[]).expect("a certificate");
    std::fs::write(folder.path().join("tls.crt"), &issued.certificate).expect("the folder is writable");
    std::fs::write(folder.path().join("tls.key"), &issued.key).expect("the folder is writable");
    let tls = trusting(&issued.authority);
    let contestants = [Contestant::start("no-op", folder.path()), Contestant::start("podgate", folder.path())];
    println!("| request | connections | no-op req/s | podgate req/s | ratio | p50 µs | p99 µs | CPU µs |");
    println!("|---|---|---|---|---|---|---|---|");
    for (path, name) in [
        ("/mutate", "mutate/pods-create-dep-65ff7697cb"),
        ("/validate", "validate/pods-create-dep-65ff7697cb"),
        ("/mutate", "mutate/pods-create-sidecar-native"),
        ("/validate", "validate/pods-update-plain"),
    ] {
        let body = review(name);
        let request = Arc::new(post(path, &body));
        for connections in CONNECTIONS {
            let mut tallies = [Tally::default(), Tally::default()];
            for _ in 0..TURNS {
                for (contestant, tally) in contestants.iter().zip(&mut tallies) {
                    turn(contestant, &tls, &request, connections, tally);
                }
            }
            let [no_op, podgate] = &mut tallies;
            println!(
                "| {path}, {} bytes | {connections} | {:.0} | {:.0} | {:.2} | {:.0} / {:.0} | {:.0} / {:.0} | {:.1} / {:.1} |",
                body.len(),
                no_op.requests_a_second(),
                podgate.requests_a_second(),
                podgate.requests_a_second() / no_op.requests_a_second(),
                no_op.quantile(50),
                podgate.quantile(50),
                no_op.quantile(99),
                podgate.quantile(99),
                no_op.cpu_micros(),
                podgate.cpu_micros(),
            );
        }
    }
    println!("\nLatencies and CPU time are of the no-op server / of podgate; the client shares the cores with both.");
}

fn trusting(authority: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).expect("PEM")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has every version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path}?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n\
         Content-Length: {}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\
         Accept-Encoding: gzip\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Drives one contestant for a while, on connections of its own.
fn turn(
    contestant: &Contestant,
    tls: &Arc<ClientConfig>,
    request: &Arc<Vec<u8>>,
    connections: usize,
    tally: &mut Tally,
) {
    let streams: Vec<_> = (0..connections).map(|_| connect(contestant.addr, tls)).collect();
    let latencies = Mutex::new(Vec::new());
    let (cpu, started) = (contestant.cpu(), Instant::now());
    std::thread::scope(|scope| {
        for mut stream in streams {
            scope.spawn(|| {
                let mut own = Vec::new();
                let mut buffer = vec![0; 64 << 10];
                while started.elapsed() < TURN {
                    let sent = Instant::now();
                    exchange(&mut stream, request, &mut buffer);
                    own.push(sent.elapsed());
                }
                latencies.lock().expect("no thread panics").extend(own);
                drop(stream);
            });
        }
    });
    tally.seconds += started.elapsed().as_secs_f64();
    tally.cpu += contestant.cpu() - cpu;
    tally.latencies.extend(latencies.into_inner().expect("no thread panics"));
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn connect(addr: SocketAddr, tls: &Arc<ClientConfig>) -> Stream {
    let stream = TcpStream::connect(addr).expect("the server accepts");
    stream.set_nodelay(true).expect("a socket can do without delay");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(tls), name).expect("a session"), stream);
    stream.flush().expect("the handshake is done");
    stream
}

/// Sends a request and reads its answer to the end.
fn exchange(stream: &mut Stream, request: &[u8], buffer: &mut [u8]) {
    stream.write_all(request).expect("the server reads");
    let mut read = 0;
    loop {
        read += stream.read(&mut buffer[read..]).expect("the server answers");
        let head_end = buffer[..read].windows(4).position(|window| window == b"\r\n\r\n");
        let Some(head_end) = head_end else { continue };
        let head = std::str::from_utf8(&buffer[..head_end]).expect("the head is text");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok())
            .expect("the answer has a length");
        if read >= head_end + 4 + length {
            return;
        }
    }
}

fn today() -> time::Date {
    time::OffsetDateTime::now_utc().date()
}
