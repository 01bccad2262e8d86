//! podgate beside a server that decides nothing: the same accept loop, TLS and HTTP, but a fixed
//! answer. Both are driven in turns by the same client, so that noise hits both; what counts is the ratio.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use tokio_rustls::TlsConnector;

use crate::client::{self, Stream};
use crate::contestant::{Contestant, folder_with_certificate};
use crate::reviews::Case;
use crate::{process, reviews};

/// How long one server is driven before the other has its turn.
const TURN: Duration = Duration::from_millis(500);
/// How many turns each has.
const TURNS: usize = 6;
/// The loads: kube-apiserver keeps up to 25 connections of HTTP/1.1.
const LOADS: [Load; 4] = [Load::Http1(1), Load::Http1(8), Load::Http1(25), Load::Http2(25)];

/// How many requests are on their way at once.
#[derive(Clone, Copy)]
enum Load {
    /// Each on a connection of its own.
    Http1(usize),
    /// All on one connection.
    Http2(usize),
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http1(connections) => write!(formatter, "HTTP/1.1 × {connections}"),
            Self::Http2(streams) => write!(formatter, "h2, {streams} streams"),
        }
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

/// Prints the table.
pub(crate) fn compare() {
    let folder = folder_with_certificate();
    let contestants = [Contestant::no_op(folder.path()), Contestant::podgate(folder.path())];
    println!(
        "| review | bytes | path | load | no-op req/s | podgate req/s | ratio | p50 µs | p99 µs | CPU µs | CPU ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for case in reviews::cases() {
        for load in LOADS {
            let mut tallies = [Tally::default(), Tally::default()];
            for _ in 0..TURNS {
                for (contestant, tally) in contestants.iter().zip(&mut tallies) {
                    turn(contestant, &case, load, tally);
                }
            }
            let [no_op, podgate] = &mut tallies;
            println!(
                "| {} | {} | {} | {load} | {:.0} | {:.0} | {:.2} | {:.0} / {:.0} | {:.0} / {:.0} | {:.1} / {:.1} | {:.2} |",
                case.name,
                case.body.len(),
                case.path,
                no_op.requests_a_second(),
                podgate.requests_a_second(),
                podgate.requests_a_second() / no_op.requests_a_second(),
                no_op.quantile(50),
                podgate.quantile(50),
                no_op.quantile(99),
                podgate.quantile(99),
                no_op.cpu_micros(),
                podgate.cpu_micros(),
                podgate.cpu_micros() / no_op.cpu_micros(),
            );
        }
    }
    println!("\nA / B: of the no-op server / of podgate. The client shares the cores with both.");
}

/// Drives one contestant for a while, on connections of its own.
fn turn(contestant: &Contestant, case: &Case, load: Load, tally: &mut Tally) {
    let (latencies, seconds, cpu) = match load {
        Load::Http1(connections) => http1_turn(contestant, case, connections),
        Load::Http2(streams) => http2_turn(contestant, case, streams),
    };
    tally.latencies.extend(latencies);
    tally.seconds += seconds;
    tally.cpu += cpu;
}

fn http1_turn(contestant: &Contestant, case: &Case, connections: usize) -> (Vec<Duration>, f64, f64) {
    let tls = client::trusting(&contestant.authority, &[b"http/1.1"], None);
    let request = client::post(case.path, &case.body);
    let streams: Vec<Stream> =
        (0..connections).map(|_| client::connect(contestant.addr, &tls).expect("the server accepts")).collect();
    let latencies = Mutex::new(Vec::new());
    let (cpu, started) = (process::cpu_seconds(contestant.id()), Instant::now());
    std::thread::scope(|scope| {
        for mut stream in streams {
            scope.spawn(|| {
                let mut own = Vec::new();
                let mut buffer = vec![0; 256 << 10];
                while started.elapsed() < TURN {
                    let sent = Instant::now();
                    client::must_exchange(&mut stream, &request, &mut buffer);
                    own.push(sent.elapsed());
                }
                latencies.lock().expect("no thread panics").extend(own);
                drop(stream);
            });
        }
    });
    let latencies = latencies.into_inner().expect("no thread panics");
    (latencies, started.elapsed().as_secs_f64(), process::cpu_seconds(contestant.id()) - cpu)
}

fn http2_turn(contestant: &Contestant, case: &Case, streams: usize) -> (Vec<Duration>, f64, f64) {
    let tls = client::trusting(&contestant.authority, &[b"h2"], None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let sender = connect_http2(contestant, tls).await;
        let body = Bytes::from(case.body.clone());
        let uri = format!("https://localhost{}?timeout=10s", case.path);
        let (cpu, started) = (process::cpu_seconds(contestant.id()), Instant::now());
        let drivers = (0..streams).map(|_| {
            let (mut sender, body, uri) = (sender.clone(), body.clone(), uri.clone());
            async move {
                let mut own = Vec::new();
                while started.elapsed() < TURN {
                    let request = Request::post(&uri).header("content-type", "application/json");
                    let sent = Instant::now();
                    sender.ready().await.expect("the connection is open");
                    let request = request.body(Full::new(body.clone())).expect("a request");
                    let response = sender.send_request(request).await.expect("the server answers");
                    assert_eq!(response.status(), 200);
                    response.into_body().collect().await.expect("the answer has an end");
                    own.push(sent.elapsed());
                }
                own
            }
        });
        let latencies = futures_util::future::join_all(drivers).await.concat();
        (latencies, started.elapsed().as_secs_f64(), process::cpu_seconds(contestant.id()) - cpu)
    })
}

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

async fn connect_http2(contestant: &Contestant, tls: Arc<ClientConfig>) -> Sender {
    let stream = tokio::net::TcpStream::connect(contestant.addr).await.expect("the server accepts");
    stream.set_nodelay(true).expect("a socket can do without delay");
    let stream = TlsConnector::from(tls).connect(client::localhost(), stream).await.expect("a session");
    let connecting = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1 << 20)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream));
    let (sender, connection) = connecting.await.expect("HTTP/2");
    tokio::spawn(async move {
        let ended: Result<(), Infallible> = connection.await.map_or_else(|error| panic!("{error}"), Ok);
        ended
    });
    sender
}
