//! The HTTPS server that kube-apiserver calls, and the plain one beside it for probes and metrics.
//!
//! ```text
//! accept → handshake → connection ⇄ routes → (the review's answer)
//!            └─ pool ──────┘  └ stream, activity: what it is doing, and until when
//! ```

mod accept;
mod activity;
mod admin;
mod body;
mod clients;
mod connection;
mod health;
mod limits;
mod pool;
mod refusal;
mod routes;
mod stream;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use hyper::header::EXPECT;
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use self::accept::{BACKLOG, EVICTED, HANDSHAKE_FAILURES, OVERDUE, Port, Tls};
use self::activity::{GOODBYE, Order};
use self::body::{Budget, Turns};
pub use self::clients::ClientAuthentication;
use self::clients::{Allowed, Trusted};
use self::health::Health;
pub use self::limits::Limits;
use self::pool::Pool;
use self::refusal::Refusal;
pub use self::routes::Admit;
use self::routes::Webhooks;
use self::tls::Shown;
use crate::certs::{ClientAuthority, ServerCertificate};
use crate::cluster::{Operation, QuotaCounts};
use crate::metrics::{ConnectionMetrics, Metrics, ReloadedFile};

/// How often a draining server looks whether it is done.
const LOOK: Duration = Duration::from_millis(10);

/// How the server is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the webhooks listen, with TLS. Port 0 takes a free one.
    pub addr: SocketAddr,
    /// Where metrics and probes are served, without TLS. Port 0 takes a free one.
    pub admin_addr: SocketAddr,
    /// Do not offer HTTP/2.
    pub http1_only: bool,
    /// How long a server that was told to stop still accepts connections: as long as the cluster
    /// may take to send them elsewhere.
    pub drain_delay: Duration,
    /// What clients have to prove before they get a review answered; nothing without it.
    pub clients: Option<ClientAuthentication>,
    /// What clients may have.
    pub limits: Limits,
}

/// Why the server cannot start.
#[derive(Debug, Error)]
pub enum BindError {
    /// An address cannot be listened on.
    #[error("cannot listen on {addr}: {error}; choose another address with {flag}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// What the operating system says.
        error: io::Error,
    },
    /// rustls does not take the certificate or the settings.
    #[error("cannot set TLS up: {0}")]
    Tls(#[from] rustls::Error),
}

/// What both ports and all their connections share.
struct Shared {
    health: Health,
    metrics: Metrics,
    limits: Limits,
}

impl Shared {
    /// Tells a client why not, once it has stopped sending.
    async fn refuse(&self, refusal: &Refusal, request: Request) -> Response {
        self.metrics.refused(refusal.name());
        // A client that asks first, and was not told to go on, has sent nothing.
        if !request.headers().contains_key(EXPECT) {
            body::discard(&mut request.into_body(), &self.limits).await;
        }
        refusal.response()
    }
}

/// A port, and the socket it listens on.
struct Listening {
    port: Arc<Port>,
    listener: TcpListener,
    addr: SocketAddr,
}

/// A server that listens, and serves once it runs.
pub struct Server {
    webhooks: Listening,
    admin: Listening,
    control: Control,
    drain_delay: Duration,
}

/// What can be changed while the server runs, and what is to be counted of it.
#[derive(Clone)]
pub struct Control {
    shown: Arc<Shown>,
    trusted: Option<Arc<Trusted>>,
    shared: Arc<Shared>,
}

impl Control {
    /// Shows another certificate to new connections.
    pub fn replace_certificate(&self, certificate: &ServerCertificate) {
        self.shown.replace(certificate);
        self.shared.health.certificate_is_valid(certificate.validity());
        self.shared.metrics.certificate_expires(certificate.expires());
    }

    /// Checks the certificates of new connections against another authority, where the server asks for
    /// them. Connections that are open keep what they have proved, until they end.
    pub fn replace_client_authority(&self, authority: ClientAuthority) {
        if let Some(trusted) = &self.trusted {
            trusted.replace(authority);
        }
    }

    /// Says why there is no certificate yet, to those who ask whether the server is ready.
    pub fn certificate_waits_for(&self, reason: String) {
        self.shared.health.certificate_waits_for(reason);
    }

    /// Counts a request to the API server that failed.
    pub fn count_cluster_error(&self, operation: Operation) {
        self.shared.metrics.cluster_error(operation);
    }

    /// Counts that a file was read again, and whether what it holds is used now.
    pub fn count_reload(&self, file: ReloadedFile, is_used: bool) {
        self.shared.metrics.reloaded(file, is_used);
    }

    /// Shows in the metrics how many exclusions of the configuration have expired.
    pub fn show_expired_exclusions(&self, count: usize) {
        self.shared.metrics.exclusions_expired(count);
    }

    /// Shows in the metrics how the quotas are, and whether nothing is left to do for them.
    pub fn show_quotas(&self, counts: QuotaCounts, is_in_sync: bool) {
        self.shared.metrics.quotas().show(counts, is_in_sync);
    }

    /// Counts a quota that was set or removed.
    pub fn count_quota_change(&self, is_there: bool) {
        self.shared.metrics.quotas().changed(is_there);
    }
}

impl Server {
    /// Listens on both addresses. Connections wait until [`run`](Self::run); without a certificate the
    /// server is alive but not ready, until [`Control::replace_certificate`] gives it one.
    ///
    /// # Errors
    ///
    /// Where an address cannot be had, or TLS not be set up.
    #[expect(clippy::unused_async, reason = "a listener belongs to a runtime, inside which this has to be called")]
    pub async fn bind(
        settings: Settings,
        certificate: Option<&ServerCertificate>,
        admit: Arc<Admit>,
    ) -> Result<Self, BindError> {
        let shown = Arc::new(Shown::new(certificate));
        let (trusted, allowed) = match settings.clients {
            Some(clients) => (Some(Arc::new(Trusted::new(clients.authority))), Allowed::Named(clients.names.into())),
            None => (None, Allowed::Anyone),
        };
        let tls = tls::configure(Arc::clone(&shown), trusted.clone(), settings.http1_only)?;
        let health = Health::new(certificate.map(ServerCertificate::validity));
        let shared = Arc::new(Shared { health, metrics: Metrics::new(), limits: settings.limits });
        shared.metrics.begin_at_zero(Refusal::COUNTED.iter().chain(&OVERDUE), &HANDSHAKE_FAILURES);
        shared.metrics.in_use(ReloadedFile::Configuration);
        if trusted.is_some() {
            shared.metrics.in_use(ReloadedFile::ClientAuthority);
        }
        if let Some(certificate) = certificate {
            shared.metrics.in_use(ReloadedFile::Certificate);
            shared.metrics.certificate_expires(certificate.expires());
        }
        let webhooks = webhooks_port(&shared, tls, allowed, admit);
        let admin = admin_port(&shared);
        Ok(Self {
            webhooks: Listening::bind(webhooks, settings.addr, "--addr")?,
            admin: Listening::bind(admin, settings.admin_addr, "--admin-addr")?,
            control: Control { shown, trusted, shared },
            drain_delay: settings.drain_delay,
        })
    }

    /// What can be changed while the server runs.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Where the webhooks listen.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.webhooks.addr
    }

    /// Where metrics and probes are served.
    #[must_use]
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin.addr
    }

    /// Serves until `shutdown`, then drains: a request that was sent before the listeners close is
    /// answered. Ends at the latest after the drain delay, [`Limits::drain`] and a second.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { webhooks, admin, control: Control { shared, .. }, drain_delay } = self;
        let pools = webhooks.port.pools();
        let admin_connections = Arc::clone(&admin.port.connections);
        let (stop, stopped) = watch::channel(());
        let admin_loop = tokio::spawn(admin.accept(stopped.clone()));
        let webhooks_loop = tokio::spawn(webhooks.accept(stopped));
        shutdown.await;

        info!(?drain_delay, "draining: not ready, still accepting connections");
        shared.health.drain();
        pools.order(Order::Drain);
        sleep(drain_delay).await;

        info!("closing: no new connections, finishing the requests in flight");
        drop(stop);
        for accept_loop in [webhooks_loop, admin_loop] {
            if let Err(error) = accept_loop.await {
                warn!(%error, "an accept loop had ended before");
            }
        }
        let in_time = within(shared.limits.drain, || !pools.is_busy()).await;
        pools.order(Order::Close);
        admin_connections.order(Order::Close);
        if in_time && within(GOODBYE + LOOK, || pools.is_empty()).await {
            info!("stopped: every request was answered");
        } else {
            warn!("stopped: some connections did not finish in time");
        }
        pools.order(Order::GiveUp);
        admin_connections.order(Order::GiveUp);
    }
}

fn listen(addr: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port that was in use a moment ago is free for a server that comes back.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

impl Listening {
    fn bind(port: Port, addr: SocketAddr, flag: &'static str) -> Result<Self, BindError> {
        let failed = |error| BindError::Listen { addr, flag, error };
        let listener = listen(addr).map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        Ok(Self { port: Arc::new(port), listener, addr })
    }

    /// Accepts until the sender of `stopped` is dropped.
    async fn accept(self, mut stopped: watch::Receiver<()>) {
        let stop = async move { while stopped.changed().await.is_ok() {} };
        self.port.accept(self.listener, stop).await;
    }
}

fn webhooks_port(shared: &Arc<Shared>, tls: rustls::ServerConfig, allowed: Allowed, admit: Arc<Admit>) -> Port {
    let Shared { metrics, limits, .. } = shared.as_ref();
    let handshakes = Pool::new(limits.handshakes, metrics.handshakes(), metrics.handshake_failures(EVICTED));
    let ConnectionMetrics { open, accepted, evicted } = metrics.connections("webhooks");
    let http2 = Pool::new(limits.http2_connections, open.clone(), evicted.clone());
    Port {
        name: "webhooks",
        tls: Some(Tls { acceptor: TlsAcceptor::from(Arc::new(tls)), handshakes, http2 }),
        connections: Pool::new(limits.connections, open, evicted),
        router: routes::router(Webhooks {
            admit,
            allowed,
            budget: Budget::new(limits.bodies_bytes),
            turns: Turns::new(limits.large_body_bytes),
            shared: Arc::clone(shared),
        }),
        accepted,
        shared: Arc::clone(shared),
    }
}

fn admin_port(shared: &Arc<Shared>) -> Port {
    let ConnectionMetrics { open, accepted, evicted } = shared.metrics.connections("admin");
    Port {
        name: "admin",
        tls: None,
        connections: Pool::new(shared.limits.admin_connections, open, evicted),
        router: admin::router(Arc::clone(shared)),
        accepted,
        shared: Arc::clone(shared),
    }
}

/// The connections to the webhooks, in handshake and after it. Handshakes come first: what leaves
/// them is in another pool before that is looked at.
struct Pools(Vec<Arc<Pool>>);

impl Pools {
    fn order(&self, order: Order) {
        self.0.iter().for_each(|pool| pool.order(order));
    }

    fn is_busy(&self) -> bool {
        self.0.iter().any(|pool| pool.is_busy())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|pool| pool.is_empty())
    }
}

/// Whether `done` came true within `limit`.
async fn within(limit: Duration, done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}
