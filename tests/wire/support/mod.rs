//! A server in this process, and clients for it.

mod binary;
mod client;
pub(crate) mod frames;
mod reply;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use podgate::admission::{Answer, Event, EventKind, Verdict, Webhook};
use podgate::certs::ServerCertificate;
use podgate::server::{Limits, Server, Settings};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use self::binary::{Binary, podgate};
pub(crate) use self::client::{HTTP1, HTTP2, Tls, client_config, connect, http2, try_connect};
pub(crate) use self::reply::{Reply, is_closed, read_reply, try_read_reply};

/// Longer than anything here takes on any machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Short enough to wait for.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// The bytes that the test double answers `big` with: more than the buffers of two sockets hold.
const BIG: usize = 32 << 20;

/// A running server.
pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
    pub(crate) certificate: ServerCertificate,
    stop: Option<oneshot::Sender<()>>,
    run: JoinHandle<()>,
}

impl Running {
    /// A server with limits so long that none comes into play, but for what `adjust` sets.
    pub(crate) async fn start(adjust: impl FnOnce(&mut Settings)) -> Self {
        let certificate = ServerCertificate::for_localhost().expect("a certificate");
        Self::start_with(certificate, adjust).await
    }

    pub(crate) async fn start_with(certificate: ServerCertificate, adjust: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings {
            addr: "127.0.0.1:0".parse().expect("an address"),
            admin_addr: "127.0.0.1:0".parse().expect("an address"),
            http1_only: false,
            drain_delay: Duration::ZERO,
            clients: None,
            limits: Limits {
                handshake: LONG,
                head: LONG,
                body: LONG,
                write: LONG,
                discard: LONG,
                drain: LONG,
                ..Limits::default()
            },
        };
        adjust(&mut settings);
        let server = Server::bind(settings, Some(&certificate), Arc::new(admit)).await.expect("free ports");
        let (addr, admin_addr) = (server.addr(), server.admin_addr());
        let (stop, stopped) = oneshot::channel();
        let run = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { addr, admin_addr, certificate, stop: Some(stop), run }
    }

    /// A connection that speaks HTTP/1.1.
    pub(crate) async fn connect(&self) -> Tls {
        connect(self.addr, client_config(self.certificate.chain()[0].clone(), &[HTTP1])).await
    }

    /// What SIGTERM does.
    pub(crate) fn stop(&mut self) {
        self.stop.take().expect("stopped once").send(()).expect("the server runs");
    }

    /// Waits for the end of a server that was stopped.
    pub(crate) async fn ended(self) {
        within(self.run).await.expect("the server does not panic");
    }

    /// The value of one metric; 0 where it is not there.
    pub(crate) async fn metric(&self, name_and_labels: &str) -> f64 {
        let text = self.metrics().await;
        let line = text.lines().find_map(|line| line.strip_prefix(name_and_labels)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }

    pub(crate) async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.admin_addr).await.expect("the admin port");
        let reply = ask(&mut stream, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(reply.status, 200);
        reply.text()
    }

    /// Waits until a metric has a value.
    pub(crate) async fn until_metric(&self, name_and_labels: &str, value: f64) {
        until(name_and_labels, async || (self.metric(name_and_labels).await - value).abs() < 0.1).await;
    }
}

/// Sends what is given and reads one answer.
pub(crate) async fn ask<S>(stream: &mut S, request: impl AsRef<[u8]>) -> Reply
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    send(stream, request).await;
    read_reply(stream).await
}

pub(crate) async fn send<S: tokio::io::AsyncWrite + Unpin>(stream: &mut S, bytes: impl AsRef<[u8]>) {
    use tokio::io::AsyncWriteExt;
    within(async {
        stream.write_all(bytes.as_ref()).await.expect("the server reads");
        stream.flush().await.expect("the server reads");
    })
    .await;
}

/// A review with this body, over HTTP/1.1.
pub(crate) fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The head of a review that announces `length` bytes.
pub(crate) fn head(length: usize) -> String {
    format!("POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}

/// A future's result, which must not take for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future).await.expect("this does not hang")
}

/// Waits until something is true.
pub(crate) async fn until(what: &str, is_true: impl AsyncFn() -> bool) {
    for _ in 0..3000 {
        if is_true().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never came true: {what}");
}

/// Stands in for the policies: says how much it was sent.
fn admit(webhook: Webhook, body: &[u8]) -> Answer {
    let mut answer = Answer {
        status: 200,
        body: format!("{{\"webhook\":\"{webhook:?}\",\"bytes\":{}}}", body.len()).into_bytes(),
        verdict: Verdict::Allowed,
        operation: "CREATE",
        resource: "pods",
        violations: Vec::new(),
        event: None,
    };
    if body.starts_with(b"big") {
        answer.body = vec![b' '; BIG];
    }
    if body.starts_with(b"deny") {
        answer.verdict = Verdict::Denied;
        answer.violations = vec![("imageTag", "deny"), ("hostPath", "warn")];
        answer.event = Some(Box::new(Event { kind: EventKind::Denied, ..Event::default() }));
    }
    answer
}
