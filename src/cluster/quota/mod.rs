//! Keeps a `ResourceQuota` in each namespace that `namespaceQuota` names, for as long as the
//! configuration has that key, and takes them away afterwards.
//!
//! Every replica does so, without a leader: what one has written the others see in their watch, and
//! what two write at once is the same. Replicas that read different configurations, as they do for a
//! minute while a ConfigMap spreads, undo each other ever more slowly.

mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use k8s_openapi::api::core::v1;
use kube::api::{DeleteParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info, warn};

use self::plan::{Namespace, Quota, Step};
use super::complaints::Complaints;
use super::error::{ClusterError, Operation, ask};
use super::follow::{Change, Followed};
use super::random;
use crate::policy::{PodCount, Policies};

/// What comes in quick succession is looked at once.
const REST: Duration = Duration::from_millis(200);
/// Between two looks, while something is left to do.
const RETRY: Duration = Duration::from_secs(5);
/// Between two looks, when nothing changes but the day, by which exclusions expire.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long the watches stay when the configuration no longer has the key: as long as a replica may
/// take to learn of that, and put back what another removed.
const LINGER: Duration = Duration::from_secs(300);
/// The longest between two writes in one namespace, where somebody undoes them.
const HOLD_MAX: Duration = Duration::from_secs(64);
/// How many changes may wait to be looked at.
const WAITING_MAX: usize = 1_000;

/// How many namespaces there are of each sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaCounts {
    /// Those whose quota is as it should be.
    pub kept: usize,
    /// Those in which somebody else's quota has the name of podgate's, and is left alone.
    pub foreign: usize,
    /// Those in which something is left to do.
    pub pending: usize,
}

/// Who is told what comes of it.
pub trait QuotaListener: Send + Sync + 'static {
    /// The API server did not do what it was asked.
    fn failed(&self, operation: Operation);

    /// A quota was made or put right, or else removed.
    fn changed(&self, is_there: bool);

    /// This is how things are; `is_in_sync` where that is known, and nothing is left to do.
    fn show(&self, counts: QuotaCounts, is_in_sync: bool);
}

/// What is heard of the API server.
enum Event {
    Namespaces(Change<Namespace>),
    Quotas(Change<Quota>),
}

/// All that is known of one kind.
struct Known<V> {
    all: Option<BTreeMap<String, V>>,
    is_fresh: bool,
}

/// When podgate may write in a namespace again.
struct Hold {
    until: Instant,
    writes: u32,
}

/// Keeps the quotas, by the configuration in force.
pub struct QuotaKeeper<L> {
    client: Client,
    policies: Arc<ArcSwap<Policies>>,
    reloaded: Arc<Notify>,
    listener: L,
    /// Where podgate itself runs: never a quota there.
    own_namespace: Option<String>,
    namespaces: Known<Namespace>,
    quotas: Known<Quota>,
    holds: BTreeMap<String, Hold>,
    /// Nothing is written before: what failed last would have failed anywhere.
    blocked_until: Option<Instant>,
    foreign: Vec<String>,
    complaints: Complaints,
}

impl<L: QuotaListener> QuotaKeeper<L> {
    /// Keeps the quotas by `policies`, which are looked at again at once when `reloaded` says so.
    pub fn new(
        client: Client,
        own_namespace: Option<String>,
        policies: Arc<ArcSwap<Policies>>,
        reloaded: Arc<Notify>,
        listener: L,
    ) -> Self {
        Self {
            client,
            policies,
            reloaded,
            listener,
            own_namespace,
            namespaces: Known { all: None, is_fresh: false },
            quotas: Known { all: None, is_fresh: false },
            holds: BTreeMap::new(),
            blocked_until: None,
            foreign: Vec::new(),
            complaints: Complaints::default(),
        }
    }

    /// Until the configuration has no `namespaceQuota`, and all is removed that was kept for it.
    pub async fn run(mut self) {
        let (mut events, _watches) = self.follow();
        let mut clean_since = None;
        loop {
            let is_done = self.look(&mut events).await;
            let is_clean = is_done && self.policies.load().namespace_quota.is_none();
            clean_since = is_clean.then(|| clean_since.unwrap_or_else(Instant::now));
            if clean_since.is_some_and(|since| since.elapsed() >= LINGER) {
                return;
            }
            let wait = if is_done { INTERVAL } else { self.until_next() };
            let reloaded = Arc::clone(&self.reloaded);
            let event = tokio::select! {
                event = timeout(wait, events.recv()) => event.ok().flatten(),
                () = reloaded.notified() => None,
            };
            if let Some(event) = event {
                self.hear(event);
                sleep(REST).await;
            }
        }
    }

    fn follow(&self) -> (Receiver<Event>, JoinSet<()>) {
        let (to, events) = channel(WAITING_MAX);
        let namespaces = Followed {
            api: Api::<PartialObjectMeta<v1::Namespace>>::all(self.client.clone()),
            fields: None,
            operation: Operation::ReadNamespaces,
            title: "the namespaces",
            read: |namespace| {
                let is_terminating = namespace.metadata.deletion_timestamp.is_some();
                (namespace.name_any(), Namespace { is_terminating })
            },
        };
        let quotas = Followed {
            api: Api::<v1::ResourceQuota>::all(self.client.clone()),
            fields: Some(format!("metadata.name={}", plan::NAME)),
            operation: Operation::ReadQuotas,
            title: "the ResourceQuotas podgate-namespace-quota of all namespaces",
            read: |quota| (quota.namespace().unwrap_or_default(), Quota::read(&quota)),
        };
        let mut watches = JoinSet::new();
        watches.spawn(namespaces.follow(to.clone(), Event::Namespaces));
        watches.spawn(quotas.follow(to, Event::Quotas));
        (events, watches)
    }

    fn hear(&mut self, event: Event) {
        let failed = match event {
            Event::Namespaces(change) => self.namespaces.hear(change),
            Event::Quotas(change) => self.quotas.hear(change),
        };
        if let Some(error) = failed {
            self.complain(&error);
        }
    }

    /// Does what is to be done: whether nothing is left.
    async fn look(&mut self, events: &mut Receiver<Event>) -> bool {
        while let Ok(event) = events.try_recv() {
            self.hear(event);
        }
        self.holds.retain(|_, hold| hold.until.elapsed() < HOLD_MAX);
        let mut due = self.due();
        // Replicas that begin at different places share the work.
        let middle = usize::try_from(random()).unwrap_or_default() % due.len().max(1);
        due.rotate_left(middle);
        for (name, _) in due {
            while let Ok(event) = events.try_recv() {
                self.hear(event);
            }
            // Another replica may have been here meanwhile.
            let step = self.step(&name);
            if !self.carry_out(&name, step).await {
                break;
            }
        }
        self.show()
    }

    /// What a namespace should have.
    fn wanted(&self, policies: &Policies, namespace: &str) -> Option<PodCount> {
        let is_own = self.own_namespace.as_deref() == Some(namespace);
        if is_own { None } else { policies.pods_allowed(namespace, OffsetDateTime::now_utc().date()) }
    }

    /// What is to be done in each namespace; nothing, as long as not all is known.
    fn steps(&self) -> Vec<(String, Step)> {
        let (Some(namespaces), Some(quotas)) = (&self.namespaces.all, &self.quotas.all) else { return Vec::new() };
        let policies = self.policies.load();
        let steps = plan::steps(namespaces, quotas, |name| self.wanted(&policies, name));
        steps.filter(|(_, step)| *step != Step::Nothing).map(|(name, step)| (name.to_owned(), step)).collect()
    }

    fn due(&self) -> Vec<(String, Step)> {
        let now = Instant::now();
        if self.blocked_until.is_some_and(|until| until > now) {
            return Vec::new();
        }
        let mut due = self.steps();
        due.retain(|(name, step)| step.is_change() && self.holds.get(name).is_none_or(|hold| hold.until <= now));
        due
    }

    /// How long it is until podgate may write where something is left to do.
    fn until_next(&self) -> Duration {
        let now = Instant::now();
        let steps = self.steps();
        let left = |until: Instant| until.saturating_duration_since(now);
        let held = steps.iter().filter(|(_, step)| step.is_change()).map(|(name, _)| self.holds.get(name));
        pause(held.map(|hold| hold.map(|hold| left(hold.until))), self.blocked_until.map_or(Duration::ZERO, left))
    }

    fn step(&self, name: &str) -> Step {
        let known = self.namespaces.all.as_ref().and_then(|all| all.get(name)).zip(self.quotas.all.as_ref());
        let Some((namespace, quotas)) = known else { return Step::Nothing };
        plan::step(*namespace, self.wanted(&self.policies.load(), name), quotas.get(name))
    }

    /// Whether it is worth going on with the next namespace.
    async fn carry_out(&mut self, namespace: &str, step: Step) -> bool {
        let api = Api::<v1::ResourceQuota>::namespaced(self.client.clone(), namespace);
        let title = format!("the ResourceQuota {namespace}/{}", plan::NAME);
        let quota = self.quotas.all.as_ref().and_then(|all| all.get(namespace)).cloned();
        let is_there = matches!(step, Step::Create(_) | Step::Correct(_));
        let done = match step {
            Step::Nothing | Step::Keep | Step::LeaveAlone => return true,
            Step::Create(pods) => create(&api, &title, pods).await,
            Step::Correct(pods) => apply(&api, &title, pods, quota.and_then(|quota| quota.uid)).await,
            Step::Remove => remove(&api, &title, quota).await,
        };
        if done.as_ref().err().is_none_or(ClusterError::is_of_this_object) {
            self.hold(namespace);
        }
        match done {
            Ok(()) => {
                info!(namespace, "{} {}", if is_there { "set" } else { "removed" }, plan::NAME);
                self.listener.changed(is_there);
                true
            }
            Err(error) if error.is_conflict() => {
                debug!(%error, "another was faster");
                true
            }
            Err(error) => {
                self.complain(&error);
                let goes_on = error.is_of_this_object();
                if !goes_on {
                    self.blocked_until = Some(Instant::now() + RETRY);
                }
                goes_on
            }
        }
    }

    fn hold(&mut self, namespace: &str) {
        let writes = self.holds.get(namespace).map_or(0, |hold| hold.writes) + 1;
        let pause = Duration::from_secs(2_u64.pow(writes.min(7) - 1)).min(HOLD_MAX);
        self.holds.insert(namespace.to_owned(), Hold { until: Instant::now() + pause, writes });
    }

    /// Counts an error, and tells of it if that was not done a moment ago, for whatever namespace.
    fn complain(&mut self, error: &ClusterError) {
        let Some(operation) = error.operation() else { return };
        self.listener.failed(operation);
        if self.complaints.is_due(operation.name()) {
            error!(reason = %error, "cannot keep the quotas of namespaceQuota; reviews are answered all the same");
        }
    }

    /// Shows how things are: whether nothing is left to do.
    fn show(&mut self) -> bool {
        let steps = self.steps();
        let count = |is: fn(&Step) -> bool| steps.iter().filter(|(_, step)| is(step)).count();
        let counts = QuotaCounts {
            kept: count(|step| *step == Step::Keep),
            foreign: count(|step| *step == Step::LeaveAlone),
            pending: count(Step::is_change),
        };
        let is_in_sync = self.namespaces.is_fresh && self.quotas.is_fresh && counts.pending == 0;
        self.listener.show(counts, is_in_sync);
        let foreign: Vec<String> =
            steps.into_iter().filter(|(_, step)| *step == Step::LeaveAlone).map(|(name, _)| name).collect();
        for namespace in foreign.iter().filter(|name| !self.foreign.contains(name)) {
            warn!(
                namespace,
                "a ResourceQuota {} is here that podgate did not make: it is left alone, and podgate's is missing; \
                 rename it, or exclude the namespace",
                plan::NAME
            );
        }
        self.foreign = foreign;
        if is_in_sync {
            self.complaints.clear();
        }
        is_in_sync
    }
}

/// How long to wait where something is left to do in namespaces that are `held` for so long, or not at all,
/// and where nothing may be written for as long as `blocked`.
fn pause(held: impl Iterator<Item = Option<Duration>>, blocked: Duration) -> Duration {
    // What is not held was tried a moment ago, and did not work.
    held.map(|left| left.unwrap_or(RETRY)).min().unwrap_or(RETRY).max(blocked)
}

impl<V> Known<V> {
    /// Takes a change in; the error, where there is one.
    fn hear(&mut self, change: Change<V>) -> Option<ClusterError> {
        match (change, &mut self.all) {
            (Change::All(all), _) => {
                self.all = Some(all);
                self.is_fresh = true;
            }
            (Change::Set(name, value), Some(all)) => drop(all.insert(name, value)),
            (Change::Gone(name), Some(all)) => drop(all.remove(&name)),
            (Change::Set(..) | Change::Gone(_), None) => {}
            (Change::Failed(error), _) => {
                self.is_fresh = false;
                return Some(error);
            }
        }
        None
    }
}

impl Step {
    /// Whether something has to be written.
    const fn is_change(&self) -> bool {
        matches!(self, Self::Create(_) | Self::Correct(_) | Self::Remove)
    }
}

/// Makes the quota, which fails where there is one: what somebody else made at this moment stays theirs. An
/// apply, even without force, would take over one that says the same.
async fn create(api: &Api<v1::ResourceQuota>, title: &str, pods: PodCount) -> Result<(), ClusterError> {
    let params = PostParams { field_manager: Some(plan::MANAGER.to_owned()), ..PostParams::default() };
    ask(Operation::WriteQuota, title, api.create(&params, &plan::manifest(pods, None))).await.map(drop)
}

/// Puts the quota right, if it still is the one with that uid.
async fn apply(
    api: &Api<v1::ResourceQuota>,
    title: &str,
    pods: PodCount,
    uid: Option<String>,
) -> Result<(), ClusterError> {
    let patch = Patch::Apply(plan::manifest(pods, uid));
    let params = PatchParams::apply(plan::MANAGER).force();
    ask(Operation::WriteQuota, title, api.patch(plan::NAME, &params, &patch)).await.map(drop)
}

/// Removes the quota, if it still is what was seen.
async fn remove(api: &Api<v1::ResourceQuota>, title: &str, seen: Option<Quota>) -> Result<(), ClusterError> {
    let preconditions = seen.map(|Quota { uid, version, .. }| Preconditions { resource_version: version, uid });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    ask(Operation::RemoveQuota, title, api.delete(plan::NAME, &params)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_tried_before_it_may_be_written() {
        let [none, short, long] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)];
        let pause = |held: &[Option<Duration>], blocked| pause(held.iter().copied(), blocked);
        assert_eq!(pause(&[Some(long), Some(short)], none), short);
        assert_eq!(pause(&[None, Some(long)], none), long.min(RETRY));
        assert_eq!(pause(&[], none), RETRY);
        // A hold that is over is no reason to try while nothing may be written.
        assert_eq!(pause(&[Some(none)], long), long);
    }
}
