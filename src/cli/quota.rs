//! The quotas of `namespaceQuota`, beside the server and never in its way.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::error;

use crate::cluster::{self, Operation, QuotaCounts, QuotaKeeper, QuotaListener};
use crate::policy::Policies;
use crate::server::Control;

/// How often to look whether there is an API server now, where there was none to talk to.
const RETRY: Duration = Duration::from_secs(60);

/// Keeps the quotas whenever the configuration in force has the key, for ever. Before it has, there is
/// no client of the API server.
pub(super) async fn keep(policies: Arc<ArcSwap<Policies>>, reloaded: Arc<Notify>, control: Control) {
    loop {
        while policies.load().namespace_quota.is_none() {
            control.show_quotas(QuotaCounts::default(), true);
            reloaded.notified().await;
        }
        control.show_quotas(QuotaCounts::default(), false);
        match cluster::connect().await {
            Ok(client) => {
                let own_namespace = cluster::own_namespace();
                let (policies, reloaded) = (Arc::clone(&policies), Arc::clone(&reloaded));
                QuotaKeeper::new(client, own_namespace, policies, reloaded, control.clone()).run().await;
            }
            Err(reason) => {
                error!(%reason, "cannot keep the quotas of namespaceQuota; reviews are answered all the same");
                sleep(RETRY).await;
            }
        }
    }
}

impl QuotaListener for Control {
    fn failed(&self, operation: Operation) {
        self.count_cluster_error(operation);
    }

    fn changed(&self, is_there: bool) {
        self.count_quota_change(is_there);
    }

    fn show(&self, counts: QuotaCounts, is_in_sync: bool) {
        self.show_quotas(counts, is_in_sync);
    }
}
