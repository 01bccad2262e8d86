//! What podgate counts, for Prometheus.
//!
//! Labels come from constants, never from what a client sent, so that nobody can make them many.

mod quota;

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use time::OffsetDateTime;

use self::quota::QuotaMetrics;
use crate::admission::{Answer, Verdict, Webhook};
use crate::cluster::Operation;

/// The content type of the text exposition format, in which `/metrics` answers.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// From 5 µs, which a review may take, to 10 s, after which kube-apiserver has given up.
const BUCKETS: [f64; 20] = [
    0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05,
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// What kube-apiserver asks most: counted without looking labels up.
const USUAL: [(Webhook, &str, &str, Verdict); 6] = [
    (Webhook::Mutate, "CREATE", "pods", Verdict::Patched),
    (Webhook::Mutate, "CREATE", "pods", Verdict::Allowed),
    (Webhook::Mutate, "CREATE", "pods", Verdict::Denied),
    (Webhook::Validate, "CREATE", "pods", Verdict::Allowed),
    (Webhook::Validate, "CREATE", "pods", Verdict::Denied),
    (Webhook::Validate, "UPDATE", "pods", Verdict::Allowed),
];

/// What became of a file that was read again.
const RELOAD_RESULTS: [&str; 2] = ["success", "failure"];

/// All metrics of one server, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    usual_requests: [IntCounter; USUAL.len()],
    mutate_seconds: Histogram,
    validate_seconds: Histogram,
    violations: IntCounterVec,
    in_flight: IntGauge,
    ready: IntGauge,
    connections_open: IntGaugeVec,
    connections_accepted: IntCounterVec,
    connections_evicted: IntCounterVec,
    handshakes: IntGauge,
    handshake_failures: IntCounterVec,
    refused: IntCounterVec,
    /// Without labels, and not there before the first certificate: a time of 0 would be one that is over.
    certificate_expiry: IntGaugeVec,
    cluster_errors: IntCounterVec,
    reloads: IntCounterVec,
    reload_successful: IntGaugeVec,
    reload_success_timestamp: IntGaugeVec,
    configuration_generation: IntGauge,
    exclusions_expired: IntGauge,
    quotas: QuotaMetrics,
}

/// A file that is read again when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadedFile {
    /// Of `--tls-cert` and `--tls-key`, or the Secret of `--tls-secret`.
    Certificate,
    /// Of `--config`.
    Configuration,
    /// Of `--client-ca`.
    ClientAuthority,
}

impl ReloadedFile {
    const ALL: [Self; 3] = [Self::Certificate, Self::Configuration, Self::ClientAuthority];

    const fn name(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Configuration => "configuration",
            Self::ClientAuthority => "client_ca",
        }
    }
}

/// What is counted of the connections to one port.
#[derive(Debug)]
pub struct ConnectionMetrics {
    /// Those that are open.
    pub open: IntGauge,
    /// All that ever were.
    pub accepted: IntCounter,
    /// Those that had to go for another.
    pub evicted: IntCounter,
}

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub struct InFlight<'m>(&'m IntGauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        let to = &registry;
        let requests = counters(
            to,
            "podgate_requests_total",
            "Reviews answered.",
            &["webhook", "operation", "resource", "verdict"],
        );
        let seconds = HistogramVec::new(
            HistogramOpts::new("podgate_request_duration_seconds", "From the head of a review to its answer.")
                .buckets(BUCKETS.to_vec()),
            &["webhook"],
        );
        let seconds = registered(to, seconds);
        build_info(to);
        let reload_successful = gauges(
            to,
            "podgate_last_reload_successful",
            "Whether what the file holds is in use: 1, or 0 when it was refused and an older one is kept.",
            &["file"],
        );
        let reload_success_timestamp = gauges(
            to,
            "podgate_last_reload_success_timestamp_seconds",
            "When what is in use was read from the file, in seconds since 1970.",
            &["file"],
        );
        let cluster_errors = counters(
            to,
            "podgate_cluster_errors_total",
            "Requests to the API server that failed, while keeping the certificate fresh or the quotas.",
            &["operation"],
        );
        for operation in Operation::ALL {
            cluster_errors.with_label_values(&[operation.name()]);
        }
        #[cfg(target_os = "linux")]
        process(to);
        Self {
            usual_requests: USUAL.map(|(webhook, operation, resource, verdict)| {
                requests.with_label_values(&[webhook_name(webhook), operation, resource, verdict_name(verdict)])
            }),
            requests,
            mutate_seconds: seconds.with_label_values(&[webhook_name(Webhook::Mutate)]),
            validate_seconds: seconds.with_label_values(&[webhook_name(Webhook::Validate)]),
            violations: counters(
                to,
                "podgate_violations_total",
                "Violations found, by what was done about them.",
                &["policy", "action"],
            ),
            in_flight: gauge(to, "podgate_requests_in_flight", "Reviews being read or answered."),
            ready: gauge(to, "podgate_ready", "Whether the replica wants requests: 1, or 0 when /readyz says why not."),
            connections_open: gauges(to, "podgate_connections", "Open connections, past their handshake.", &["port"]),
            connections_accepted: counters(to, "podgate_connections_total", "Connections accepted.", &["port"]),
            connections_evicted: counters(
                to,
                "podgate_connections_evicted_total",
                "Connections closed to make room for new ones.",
                &["port"],
            ),
            handshakes: gauge(to, "podgate_handshakes", "TLS handshakes going on."),
            handshake_failures: counters(
                to,
                "podgate_handshake_failures_total",
                "Connections that ended before TLS was set up.",
                &["reason"],
            ),
            refused: counters(
                to,
                "podgate_rejected_requests_total",
                "Requests turned away: no AdmissionReview was looked for in them, or its answer was not taken.",
                &["reason"],
            ),
            certificate_expiry: gauges(
                to,
                "podgate_certificate_expiry_timestamp_seconds",
                "When the server's certificate expires, in seconds since 1970.",
                &[],
            ),
            cluster_errors,
            reloads: reloads(to),
            reload_successful,
            reload_success_timestamp,
            configuration_generation: gauge(
                to,
                "podgate_configuration_generation",
                "How many configurations have been in force since the start, the present one included.",
            ),
            exclusions_expired: gauge(
                to,
                "podgate_exclusions_expired",
                "Exclusions in the configuration whose day is over, so that they no longer count.",
            ),
            quotas: QuotaMetrics::new(to),
            registry,
        }
    }

    /// Counts that a file was read again, and whether what it holds is used now.
    pub(crate) fn reloaded(&self, file: ReloadedFile, is_used: bool) {
        let [success, failure] = RELOAD_RESULTS;
        let result = if is_used { success } else { failure };
        self.reloads.with_label_values(&[file.name(), result]).inc();
        if is_used {
            self.in_use(file);
        } else {
            self.reload_successful.with_label_values(&[file.name()]).set(0);
        }
    }

    /// What a file holds is in use from now on.
    pub(crate) fn in_use(&self, file: ReloadedFile) {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        if file == ReloadedFile::Configuration {
            self.configuration_generation.inc();
        }
        self.reload_successful.with_label_values(&[file.name()]).set(1);
        self.reload_success_timestamp.with_label_values(&[file.name()]).set(now);
    }

    /// Counts an answered review and the time it took.
    pub(crate) fn answered(&self, webhook: Webhook, answer: &Answer, took: Duration) {
        let key = (webhook, answer.operation, answer.resource, answer.verdict);
        match USUAL.iter().position(|usual| *usual == key) {
            Some(index) => self.usual_requests[index].inc(),
            None => self
                .requests
                .with_label_values(&[
                    webhook_name(webhook),
                    answer.operation,
                    answer.resource,
                    verdict_name(answer.verdict),
                ])
                .inc(),
        }
        match webhook {
            Webhook::Mutate => self.mutate_seconds.observe(took.as_secs_f64()),
            Webhook::Validate => self.validate_seconds.observe(took.as_secs_f64()),
        }
        for (policy, action) in &answer.violations {
            self.violations.with_label_values(&[policy, action]).inc();
        }
    }

    /// A review is in flight from here on, until the value is dropped.
    pub(crate) fn in_flight(&self) -> InFlight<'_> {
        self.in_flight.inc();
        InFlight(&self.in_flight)
    }

    /// Whether the server wants requests.
    pub(crate) fn ready(&self, is_ready: bool) {
        self.ready.set(i64::from(is_ready));
    }

    /// Shows the reasons for which requests and handshakes can fail before any has: an increase from
    /// nothing is not seen as one.
    pub(crate) fn begin_at_zero<'r>(
        &self,
        refusals: impl IntoIterator<Item = &'r &'static str>,
        handshake_failures: &[&str],
    ) {
        for reason in refusals {
            self.refused.with_label_values(&[reason]);
        }
        for reason in handshake_failures {
            self.handshake_failures.with_label_values(&[reason]);
        }
    }

    /// Counts a request that was turned away.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.with_label_values(&[reason]).inc();
    }

    /// The handshakes going on.
    pub(crate) fn handshakes(&self) -> IntGauge {
        self.handshakes.clone()
    }

    /// The handshakes that failed for `reason`.
    pub(crate) fn handshake_failures(&self, reason: &'static str) -> IntCounter {
        self.handshake_failures.with_label_values(&[reason])
    }

    /// What is counted of the connections to `port`.
    pub(crate) fn connections(&self, port: &'static str) -> ConnectionMetrics {
        ConnectionMetrics {
            open: self.connections_open.with_label_values(&[port]),
            accepted: self.connections_accepted.with_label_values(&[port]),
            evicted: self.connections_evicted.with_label_values(&[port]),
        }
    }

    /// The certificate in use expires at `time`.
    pub(crate) fn certificate_expires(&self, time: OffsetDateTime) {
        self.certificate_expiry.with_label_values::<&str>(&[]).set(time.unix_timestamp());
    }

    /// Counts a request to the API server that failed.
    pub(crate) fn cluster_error(&self, operation: Operation) {
        self.cluster_errors.with_label_values(&[operation.name()]).inc();
    }

    /// That many exclusions of the configuration have expired.
    pub(crate) fn exclusions_expired(&self, count: usize) {
        self.exclusions_expired.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// What is counted of the quotas.
    pub(crate) const fn quotas(&self) -> &QuotaMetrics {
        &self.quotas
    }

    /// All metrics in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot write the metrics");
            String::new()
        })
    }
}

/// The webhook's name in metrics and logs.
pub(crate) fn webhook_name(webhook: Webhook) -> &'static str {
    match webhook {
        Webhook::Mutate => "mutate",
        Webhook::Validate => "validate",
    }
}

/// The verdict's name in metrics and logs.
pub(crate) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "allowed",
        Verdict::Patched => "patched",
        Verdict::Denied => "denied",
        Verdict::Invalid => "invalid",
        Verdict::Malformed => "malformed",
    }
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    registered(registry, IntGauge::new(name, help))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn reloads(registry: &Registry) -> IntCounterVec {
    let help = "Times that a file was read again because it had changed.";
    let reloads = counters(registry, "podgate_reloads_total", help, &["file", "result"]);
    for file in ReloadedFile::ALL {
        for result in RELOAD_RESULTS {
            reloads.with_label_values(&[file.name(), result]);
        }
    }
    reloads
}

fn build_info(registry: &Registry) {
    let info = gauges(registry, "podgate_build_info", "The build that is running; always 1.", &["version"]);
    info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
}

#[cfg(target_os = "linux")]
fn process(registry: &Registry) {
    let process = prometheus::process_collector::ProcessCollector::for_self();
    if let Err(error) = registry.register(Box::new(process)) {
        tracing::warn!(%error, "no metrics of the process");
    }
}

#[expect(clippy::expect_used, reason = "names and labels are constants of this file, and a test makes them all")]
fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: prometheus::Result<C>) -> C {
    let collector = collector.expect("the name, help and labels of a metric are valid");
    registry.register(Box::new(collector.clone())).expect("no metric is registered twice");
    collector
}
