//! `podgate serve`: the webhooks, over HTTPS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tracing::{info, warn};

use super::certificate::{CertificateArguments, Source};
use super::clients::ClientArguments;
use super::follow::{self, ClientAuthorityFile, ConfigurationFile};
use super::logging::{self, LogFormat};
use super::quota;
use super::{Exit, duration, fail};
use crate::admission::{self, Webhook};
use crate::certs::ServerCertificate;
use crate::config;
use crate::policy::Policies;
use crate::server::{ClientAuthentication, Limits, Server, Settings};

/// Serve the webhooks over HTTPS, until SIGTERM or SIGINT.
///
/// The environment variable PODGATE_LOG sets what is logged: a level, such as debug.
#[expect(clippy::doc_markdown, reason = "the help shows backticks as they are")]
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  podgate serve                                                   the default policy, for localhost
  podgate serve --config podgate.yaml --tls-cert certs/tls.crt --tls-key certs/tls.key
  podgate serve --tls-secret security-system/webhook-tls          as deploy/ has it, in a cluster")]
pub(super) struct Arguments {
    /// The configuration file; the default policy without one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to serve the webhooks, over HTTPS
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:8443")]
    addr: SocketAddr,
    /// Where to serve metrics and probes, over plain HTTP
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:9090")]
    admin_addr: SocketAddr,
    /// Do not offer HTTP/2
    #[arg(long)]
    http1_only: bool,
    #[command(flatten)]
    certificate: CertificateArguments,
    #[command(flatten)]
    clients: ClientArguments,
    /// How long to accept connections after SIGTERM, while the cluster learns of it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    drain_delay: Duration,
    /// HTTP/1.1 connections to keep open; at the limit, the one that did the least has to go
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections, value_parser = positive)]
    max_connections: usize,
    /// The largest review to accept, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body_bytes, value_parser = positive)]
    max_body_bytes: usize,
    /// How often to look whether the configuration or a certificate changed
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    reload_interval: Duration,
    /// How to write the log
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let configuration = arguments.config.clone().map(ConfigurationFile::new);
    let policies = match configuration.as_ref().map_or_else(|| Ok(Policies::default()), |file| config::load(&file.path))
    {
        Ok(policies) => policies,
        Err(error) => return fail(&error),
    };
    if let Err(error) = logging::start(arguments.log_format) {
        return fail(&error);
    }
    follow::warn_of(&policies);
    let source = match arguments.certificate.source() {
        Ok(source) => source,
        Err(error) => return fail(&error),
    };
    let certificate = match source.first() {
        Ok(certificate) => certificate,
        Err(error) => return fail(&error),
    };
    let (clients, client_authority) = match arguments.clients.authentication() {
        Ok(authentication) => authentication.unzip(),
        Err(error) => return fail(&error),
    };
    let settings = arguments.settings(clients);
    let start = Start { settings, source, certificate, client_authority, policies, configuration };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(serve(start, arguments.reload_interval)),
        Err(error) => fail(&format_args!("cannot start the worker threads: {error}")),
    }
}

impl Arguments {
    fn settings(&self, clients: Option<ClientAuthentication>) -> Settings {
        Settings {
            addr: self.addr,
            admin_addr: self.admin_addr,
            http1_only: self.http1_only,
            drain_delay: self.drain_delay,
            clients,
            limits: Limits { connections: self.max_connections, body_bytes: self.max_body_bytes, ..Limits::default() },
        }
    }
}

/// All that a server starts with, read and found right.
struct Start {
    settings: Settings,
    source: Source,
    certificate: Option<ServerCertificate>,
    client_authority: Option<ClientAuthorityFile>,
    policies: Policies,
    configuration: Option<ConfigurationFile>,
}

async fn serve(start: Start, reload_interval: Duration) -> ExitCode {
    let Start { settings, source, certificate, client_authority, policies, configuration } = start;
    let policies = Arc::new(ArcSwap::from_pointee(policies));
    let in_force = Arc::clone(&policies);
    let admit = Arc::new(move |webhook: Webhook, body: &[u8]| {
        let mut answer = admission::answer(&in_force.load(), webhook, body, super::today());
        if answer.event.is_none() && tracing::enabled!(tracing::Level::DEBUG) {
            answer.event = admission::unremarkable(body);
        }
        answer
    });
    let (signals, server) = match (Signals::new(), Server::bind(settings, certificate.as_ref(), admit).await) {
        (Ok(signals), Ok(server)) => (signals, server),
        (Err(error), _) => return fail(&format_args!("cannot wait for signals: {error}")),
        (_, Err(error)) => return fail(&error),
    };
    info!(addr = %server.addr(), admin_addr = %server.admin_addr(), "listening");
    if let Err(error) = source.follow(server.control(), reload_interval).await {
        return fail(&error);
    }
    if let Some(file) = client_authority {
        tokio::spawn(file.follow(server.control(), reload_interval));
    }
    let control = server.control();
    let show = move |count| control.show_expired_exclusions(count);
    tokio::spawn(follow::show_expired_exclusions(Arc::clone(&policies), super::today, show));
    if let Some(configuration) = configuration {
        let reloaded = Arc::new(Notify::new());
        tokio::spawn(quota::keep(Arc::clone(&policies), Arc::clone(&reloaded), server.control()));
        tokio::spawn(configuration.follow(policies, reloaded, server.control(), reload_interval));
    }
    run_until_signalled(server, signals).await
}

/// Serves until the first signal, then drains; a second one ends it at once.
async fn run_until_signalled(server: Server, mut signals: Signals) -> ExitCode {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = server.run(async {
        // Sent or dropped, it means the same.
        let _ = stopped.await;
    });
    tokio::pin!(running);
    let mut stop = Some(stop);
    loop {
        tokio::select! {
            () = &mut running => return Exit::Clean.into(),
            name = signals.next() => {
                info!("{name}");
                if stop.take().is_none() {
                    warn!("a second signal: stopped at once");
                    return Exit::Failure.into();
                }
            }
        }
    }
}

/// The signals that end the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a whole number from 1, without a unit".to_owned())
}
