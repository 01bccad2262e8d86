//! What is counted of the quotas of `namespaceQuota`.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{counters, gauge, gauges};
use crate::cluster::QuotaCounts;

/// The quotas, and what was done about them.
#[derive(Debug)]
pub(crate) struct QuotaMetrics {
    quotas: IntGaugeVec,
    in_sync: IntGauge,
    changes: IntCounterVec,
}

impl QuotaMetrics {
    /// No quota, and nothing to do.
    pub(super) fn new(registry: &Registry) -> Self {
        let metrics = Self {
            quotas: gauges(
                registry,
                "podgate_namespace_quotas",
                "Namespaces by their quota: kept, pending, or foreign where another's has its name.",
                &["state"],
            ),
            in_sync: gauge(
                registry,
                "podgate_namespace_quotas_in_sync",
                "Whether nothing is left to do for namespaceQuota: 1, or 0, also when that is not known.",
            ),
            changes: counters(
                registry,
                "podgate_namespace_quota_changes_total",
                "Quotas of namespaceQuota that this replica set or removed.",
                &["change"],
            ),
        };
        metrics.show(QuotaCounts::default(), true);
        for is_there in [true, false] {
            metrics.changes.with_label_values(&[change(is_there)]);
        }
        metrics
    }

    /// How the quotas are, and whether nothing is left to do for them.
    pub(crate) fn show(&self, counts: QuotaCounts, is_in_sync: bool) {
        let QuotaCounts { kept, foreign, pending } = counts;
        for (state, count) in [("kept", kept), ("foreign", foreign), ("pending", pending)] {
            self.quotas.with_label_values(&[state]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.in_sync.set(i64::from(is_in_sync));
    }

    /// Counts a quota that was set, or else removed.
    pub(crate) fn changed(&self, is_there: bool) {
        self.changes.with_label_values(&[change(is_there)]).inc();
    }
}

const fn change(is_there: bool) -> &'static str {
    if is_there { "set" } else { "removed" }
}
