//! The accept loop, and a connection's way from TCP to HTTP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use prometheus::IntCounter;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::activity::{Activity, Order, Overdue, Protocol};
use super::clients::ClientNames;
use super::connection::{self, End};
use super::limits::Limits;
use super::pool::{Pool, Seat};
use super::{Pools, Shared, tls};

/// How long the accept loop rests after an error that is not the client's.
const REST: Duration = Duration::from_millis(20);
/// How many connections may wait to be accepted: more than come at once when all the API servers of a
/// cluster reconnect. The system may allow fewer (`net.core.somaxconn`).
pub(super) const BACKLOG: u32 = 4096;
/// How often such errors are worth a line in the log.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// What serves the connections of one port.
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) tls: Option<Tls>,
    pub(super) connections: Arc<Pool>,
    pub(super) router: Router,
    pub(super) accepted: IntCounter,
    pub(super) shared: Arc<Shared>,
}

/// The TLS of a port, and the handshakes that are going on.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) handshakes: Arc<Pool>,
    /// What they become where the client chooses HTTP/2; else they go to the port's connections.
    pub(super) http2: Arc<Pool>,
}

impl Port {
    /// All that is open on it.
    pub(super) fn pools(&self) -> Pools {
        let of_tls = self.tls.iter().flat_map(|tls| [&tls.handshakes, &tls.http2]);
        Pools(of_tls.chain([&self.connections]).map(Arc::clone).collect())
    }

    /// Accepts connections until `stop`, and then those that were made before it.
    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut reported: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => return self.welcome_the_waiting(&listener).await,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.clone().welcome(stream),
                Err(error) if is_the_clients(&error) => {}
                Err(error) => {
                    if reported.is_none_or(|last| last.elapsed() >= REPORT_EVERY) {
                        reported = Some(Instant::now());
                        warn!(port = self.name, %error, "cannot accept a connection; raise the limit of open files?");
                    }
                    self.make_room();
                    sleep(REST).await;
                }
            }
        }
    }

    /// Accepts what connected before the end, which would be reset when the listener closes; no more
    /// than can have waited, lest a flood keep the server from stopping.
    async fn welcome_the_waiting(self: Arc<Self>, listener: &TcpListener) {
        for _ in 0..BACKLOG {
            let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await else { return };
            self.clone().welcome(stream);
        }
    }

    /// Gives up what is least missed, so that there is a file descriptor for the next connection.
    fn make_room(&self) {
        if let Some(tls) = &self.tls {
            tls.handshakes.evict();
        }
        self.connections.evict();
    }

    fn welcome(self: Arc<Self>, stream: TcpStream) {
        self.accepted.inc();
        if let Err(error) = stream.set_nodelay(true) {
            debug!(port = self.name, %error, "cannot turn Nagle's algorithm off");
        }
        if let Some(tls) = &self.tls {
            let seat = tls.handshakes.admit(Protocol::Handshake);
            let (acceptor, http2) = (tls.acceptor.clone(), Arc::clone(&tls.http2));
            tokio::spawn(async move {
                match shake_hands(acceptor, stream, seat.activity(), &self.shared.limits).await {
                    Ok(stream) => self.serve_encrypted(stream, seat, &http2).await,
                    Err(failure) => self.count(&failure),
                }
            });
        } else {
            let seat = self.connections.admit(Protocol::Http1);
            tokio::spawn(async move { self.serve(stream, None, seat).await });
        }
    }

    fn count(&self, failure: &HandshakeFailure) {
        debug!(port = self.name, %failure, "no TLS connection");
        // The pool counts those it turned out.
        if let Some(reason) = failure.name() {
            self.shared.metrics.handshake_failures(reason).inc();
        }
    }

    async fn serve_encrypted(&self, stream: TlsStream<TcpStream>, handshake: Seat, http2: &Arc<Pool>) {
        let session = stream.get_ref().1;
        let is_http2 = session.alpn_protocol() == Some(tls::HTTP2);
        let client = ClientNames::of(session.peer_certificates());
        let seat = if is_http2 { http2.admit(Protocol::Http2) } else { self.connections.admit(Protocol::Http1) };
        drop(handshake);
        self.serve(stream, client, seat).await;
    }

    async fn serve<S>(&self, stream: S, client: Option<ClientNames>, seat: Seat)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::clone(seat.activity());
        let end = connection::serve(stream, client, activity, self.router.clone(), &self.shared.limits).await;
        match end {
            End::Closed => {}
            End::Failed(error) => debug!(port = self.name, %error, "the connection failed"),
            End::GaveUp => debug!(port = self.name, "the connection was given up"),
            End::Overdue(overdue) => {
                debug!(port = self.name, "closed: {overdue}");
                let [head, exchange, write] = OVERDUE;
                match overdue {
                    Overdue::Idle => {}
                    Overdue::Head => self.shared.metrics.refused(head),
                    Overdue::Exchange => self.shared.metrics.refused(exchange),
                    Overdue::Write => self.shared.metrics.refused(write),
                }
            }
        }
    }
}

/// The reasons for which metrics count requests that ended with their connection: for a head that did not
/// come, for an exchange that did not end, for an answer that was not taken.
pub(super) const OVERDUE: [&str; 3] = ["head_timeout", "exchange_timeout", "write_timeout"];

/// The reasons for which metrics count handshakes that failed.
pub(super) const HANDSHAKE_FAILURES: [&str; 4] = [EVICTED, "timeout", "closed", "tls"];

/// The reason of a handshake that had to go for another.
pub(super) const EVICTED: &str = "evicted";

/// Why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
enum HandshakeFailure {
    #[error("the handshake took too long")]
    Timeout,
    #[error("given up for another")]
    GaveUp,
    #[error("the client closed the connection: {0}")]
    Closed(io::Error),
    #[error("{0}")]
    Tls(io::Error),
}

impl HandshakeFailure {
    /// The name that metrics count it by.
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::Timeout => Some("timeout"),
            Self::GaveUp => None,
            Self::Closed(_) => Some("closed"),
            Self::Tls(_) => Some("tls"),
        }
    }
}

async fn shake_hands(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    activity: &Activity,
    limits: &Limits,
) -> Result<TlsStream<TcpStream>, HandshakeFailure> {
    tokio::select! {
        result = timeout(limits.handshake, acceptor.accept_with(stream, tls::limit_buffers)) => match result {
            Ok(Ok(stream)) => Ok(stream),
            // rustls' own errors come as invalid data.
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(HandshakeFailure::Tls(error)),
            Ok(Err(error)) => Err(HandshakeFailure::Closed(error)),
            Err(_) => Err(HandshakeFailure::Timeout),
        },
        () = given_up(activity, limits) => Err(HandshakeFailure::GaveUp),
    }
}

/// Waits until the server wants the connection closed.
async fn given_up(activity: &Activity, limits: &Limits) {
    std::future::poll_fn(|context| {
        let (order, _) = activity.consult(limits, context.waker());
        if order >= Order::Close { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Whether an error of accept(2) is one of the connection that was to be accepted.
fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
