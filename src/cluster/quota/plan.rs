//! What is to be done about the quota of each namespace. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::policy::PodCount;

/// `metadata.name` of podgate's quotas: authors read it where a pod is refused.
pub(super) const NAME: &str = "podgate-namespace-quota";
/// Who podgate is in the `metadata.managedFields` of its quotas.
pub(super) const MANAGER: &str = "podgate-namespace-quota";
/// The label that says whose a quota is, and what it says of podgate's.
const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "podgate");
/// Pods that have not finished. `count/pods` would count finished ones too, so that a namespace full
/// of completed Jobs could start nothing.
const PODS: &str = "pods";

/// A namespace, as far as quotas go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Namespace {
    /// It is on its way out, with all that is in it.
    pub(super) is_terminating: bool,
}

/// A `ResourceQuota` that has the name of podgate's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quota {
    pub(super) uid: Option<String>,
    pub(super) version: Option<String>,
    /// Whether podgate keeps it: it carries the label, or podgate is a manager of it.
    is_ours: bool,
    has_label: bool,
    /// `spec.hard.pods`.
    pods: Option<String>,
    /// It counts only some pods. That cannot be changed, and nothing of podgate's has it.
    has_scopes: bool,
}

/// What is to be done in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// There is no quota, and there should be none.
    Nothing,
    /// The quota is as it should be.
    Keep,
    /// Somebody else's quota has the name: it stays as it is, whatever should be there.
    LeaveAlone,
    /// Make the quota.
    Create(PodCount),
    /// Put the quota right.
    Correct(PodCount),
    /// Take the quota away.
    Remove,
}

impl Quota {
    pub(super) fn read(quota: &ResourceQuota) -> Self {
        let metadata = &quota.metadata;
        let has_label = metadata.labels.as_ref().and_then(|labels| labels.get(LABEL.0)).is_some_and(|by| by == LABEL.1);
        let is_managed =
            metadata.managed_fields.iter().flatten().any(|entry| entry.manager.as_deref() == Some(MANAGER));
        let spec = quota.spec.as_ref();
        Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            is_ours: has_label || is_managed,
            has_label,
            pods: spec.and_then(|spec| Some(spec.hard.as_ref()?.get(PODS)?.0.clone())),
            has_scopes: spec.is_some_and(|spec| {
                spec.scope_selector.is_some() || spec.scopes.as_ref().is_some_and(|scopes| !scopes.is_empty())
            }),
        }
    }
}

/// What is to be done in a namespace that should have so many pods at most.
pub(super) fn step(namespace: Namespace, wanted: Option<PodCount>, quota: Option<&Quota>) -> Step {
    if namespace.is_terminating {
        return Step::Nothing;
    }
    match (wanted, quota) {
        (None, None) => Step::Nothing,
        (Some(pods), None) => Step::Create(pods),
        (None, Some(quota)) if !quota.is_ours => Step::Nothing,
        (Some(_), Some(quota)) if !quota.is_ours => Step::LeaveAlone,
        (None, Some(_)) => Step::Remove,
        // Gone, it is made again without them.
        (Some(_), Some(quota)) if quota.has_scopes => Step::Remove,
        (Some(pods), Some(quota)) if quota.has_label && quota.pods.as_ref() == Some(&pods.to_string()) => Step::Keep,
        (Some(pods), Some(_)) => Step::Correct(pods),
    }
}

/// What is to be done in each namespace.
pub(super) fn steps<'s>(
    namespaces: &'s BTreeMap<String, Namespace>,
    quotas: &'s BTreeMap<String, Quota>,
    wanted: impl Fn(&str) -> Option<PodCount> + 's,
) -> impl Iterator<Item = (&'s str, Step)> {
    namespaces.iter().map(move |(name, namespace)| (name.as_str(), step(*namespace, wanted(name), quotas.get(name))))
}

/// The quota as podgate makes and applies it: with a uid, only if it still is the one that was seen.
pub(super) fn manifest(pods: PodCount, uid: Option<String>) -> ResourceQuota {
    let labels = Some(BTreeMap::from([LABEL].map(|(key, value)| (key.to_owned(), value.to_owned()))));
    let hard = Some(BTreeMap::from([(PODS.to_owned(), Quantity(pods.to_string()))]));
    ResourceQuota {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), labels, uid, ..ObjectMeta::default() },
        spec: Some(ResourceQuotaSpec { hard, ..ResourceQuotaSpec::default() }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LIVE: Namespace = Namespace { is_terminating: false };

    fn fifty() -> Option<PodCount> {
        PodCount::new(50)
    }

    fn quota(change: impl FnOnce(&mut Value)) -> Quota {
        let mut value = serde_json::to_value(manifest(PodCount::new(50).unwrap(), Some("1".to_owned()))).unwrap();
        change(&mut value);
        Quota::read(&serde_json::from_value(value).unwrap())
    }

    fn foreign(quota: &mut Value) {
        quota["metadata"]["labels"] = json!({LABEL.0: "Helm"});
    }

    #[test]
    fn makes_what_is_missing_and_removes_what_is_left_over() {
        let fresh = quota(|_| ());
        for (wanted, quota, step_due) in [
            (None, None, Step::Nothing),
            (fifty(), None, Step::Create(PodCount::new(50).unwrap())),
            (fifty(), Some(&fresh), Step::Keep),
            (PodCount::new(60), Some(&fresh), Step::Correct(PodCount::new(60).unwrap())),
            (None, Some(&fresh), Step::Remove),
        ] {
            assert_eq!(step(LIVE, wanted, quota), step_due, "{wanted:?} {quota:?}");
        }
    }

    #[test]
    fn a_foreign_quota_of_that_name_is_never_touched() {
        for quota in [quota(foreign), quota(|quota| quota["metadata"]["labels"] = Value::Null)] {
            assert_eq!(step(LIVE, fifty(), Some(&quota)), Step::LeaveAlone);
            assert_eq!(step(LIVE, None, Some(&quota)), Step::Nothing);
        }
    }

    #[test]
    fn an_edited_quota_is_put_right() {
        let correct = Step::Correct(PodCount::new(50).unwrap());
        let edited = quota(|quota| quota["spec"]["hard"] = json!({"pods": "500"}));
        assert_eq!(step(LIVE, fifty(), Some(&edited)), correct);
        let emptied = quota(|quota| quota["spec"] = json!({}));
        assert_eq!(step(LIVE, fifty(), Some(&emptied)), correct);
        // Without its label, it is podgate's as long as podgate is its manager.
        let managed = |operation: &str, manager: &str| {
            quota(|quota| {
                foreign(quota);
                quota["metadata"]["managedFields"] = json!([{"manager": manager, "operation": operation}]);
            })
        };
        assert_eq!(step(LIVE, fifty(), Some(&managed("Apply", MANAGER))), correct);
        // As one is that was made, and never applied.
        assert_eq!(step(LIVE, fifty(), Some(&managed("Update", MANAGER))), correct);
        assert_eq!(step(LIVE, fifty(), Some(&managed("Apply", "kubectl"))), Step::LeaveAlone);
        // Others may limit more in it than podgate does.
        let more = quota(|quota| quota["spec"]["hard"]["requests.cpu"] = json!("4"));
        assert_eq!(step(LIVE, fifty(), Some(&more)), Step::Keep);
    }

    #[test]
    fn one_that_counts_only_some_pods_is_made_anew() {
        let scoped = quota(|quota| quota["spec"]["scopes"] = json!(["Terminating"]));
        assert_eq!(step(LIVE, fifty(), Some(&scoped)), Step::Remove);
    }

    #[test]
    fn a_namespace_on_its_way_out_is_let_go() {
        let going = Namespace { is_terminating: true };
        assert_eq!(step(going, fifty(), None), Step::Nothing);
        assert_eq!(step(going, None, Some(&quota(|_| ()))), Step::Nothing);
    }

    #[test]
    fn each_namespace_gets_its_own_step() {
        let namespaces = ["a", "b", "c"].map(|name| (name.to_owned(), LIVE)).into();
        let quotas = BTreeMap::from([("b".to_owned(), quota(|_| ())), ("c".to_owned(), quota(foreign))]);
        let steps: Vec<_> = steps(&namespaces, &quotas, |name| fifty().filter(|_| name != "b")).collect();
        let create = Step::Create(PodCount::new(50).unwrap());
        assert_eq!(steps, [("a", create), ("b", Step::Remove), ("c", Step::LeaveAlone)]);
    }
}
