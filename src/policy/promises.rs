//! `promises`: what `/mutate` sets is still there when the pod is stored.
//!
//! Warns, by default, of a pod that lacks a sidecar, and of a container or an image volume that
//! lacks what the mutations would have set. What is said of the cause depends on the request: on an
//! update they set it only in the ephemeral containers that it adds. Each thing that is lacking is a
//! violation of its own, so that an update that mends one of them brings none.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, ContainerExclude, Context, Field, Found, Judgement, Message, PolicyName, Rule, RuleExclude, Subject,
    Validation, Violation, null_is_default,
};
use crate::pod::{PodSpec, Quantity, ResourceName};

/// The settings of `promises`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Promises {
    /// What is done about it; `warn` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
}

impl Default for Promises {
    fn default() -> Self {
        Self { action: Action::Warn, message: None, exclude: ContainerExclude::default() }
    }
}

/// How it came that a promise is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The pod or the container came so, though the mutations were to set it.
    Undone,
    /// The pod was so before the update.
    Older,
    /// The update did it.
    Update,
}

impl Cause {
    /// What a message says of it, before what is lacking: a warning is cut at its end.
    const fn clause(self) -> &'static str {
        match self {
            Self::Undone => "lacks, as another webhook undid it or /mutate was bypassed",
            Self::Older => "lacks, as before this update, for podgate sets it only on what is new",
            Self::Update => "lacks since this update, for podgate sets it only on what is new",
        }
    }
}

/// One thing that is lacking.
#[derive(Debug)]
pub(super) struct Lack {
    /// By which an update is compared.
    pub(super) due: String,
    /// As a message tells of it.
    pub(super) told: String,
}

impl Lack {
    pub(super) fn of(due: String) -> Self {
        Self { told: due.clone(), due }
    }
}

/// Adds what is lacking to what is known, whose statement says it alone: what one container lacks for one
/// cause is told of together.
pub(super) fn add<'a>(lacking: Judgement<'a>, cause: Cause, known: &mut Vec<Judgement<'a>>) {
    let Judgement { violation: Violation { policy, subject, statement: told, found, .. }, .. } = &lacking;
    // What a container lacks stands together, for two causes at most.
    let before = known.iter_mut().rev().take(2).map(|judgement| &mut judgement.violation).find(|other| {
        let is_of_it = other.policy == *policy && other.subject == *subject && *subject != Subject::Pod;
        is_of_it && other.statement.starts_with(cause.clause())
    });
    let Some(before) = before else {
        let statement = format!("{}: {told}", cause.clause());
        known.push(Judgement { violation: Violation { statement, ..lacking.violation }, ..lacking });
        return;
    };
    before.statement += ", ";
    before.statement += told;
    if let (Found::Value(before), Found::Value(due)) = (&mut before.found, found) {
        *before = format!("{before}, {due}").into();
    }
}

impl Validation for Promises {
    const NAME: PolicyName = PolicyName("promises");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Container(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        let mutations = context.mutations;
        let mut lacks = |subject, lack: Lack| {
            violations.push(Violation {
                policy: Self::NAME,
                subject,
                field: Field::Whole,
                statement: lack.told,
                found: Found::Value(Cow::Owned(lack.due)),
            });
        };
        let limit = |name: ResourceName, limit: &Quantity<'_>| format!("{}: {}", name.limit_field(), limit.as_str());
        let missing = |name| mutations.missing_pod_limit(pod, name).map(|amount| limit(name, amount));
        for due in ResourceName::ALL.into_iter().filter_map(missing) {
            lacks(Subject::Pod, Lack::of(due));
        }
        for (name, lack) in context.prepared.broken_promises() {
            if !self.exclude.containers.cover(name, context.today) {
                lacks(Subject::Pod, lack);
            }
        }
        for (list, index, container) in pod.all_containers() {
            let mut due: Vec<String> = Vec::new();
            due.extend(mutations.new_image(container).map(|image| format!("image: {image}")));
            let security_context = mutations.security_context(container);
            if security_context.is_some_and(|forced| forced.lacks_no_escalation(pod, container)) {
                due.push("securityContext.allowPrivilegeEscalation: false".to_owned());
            }
            if security_context.is_some_and(|forced| forced.lacks_non_root(pod, container)) {
                due.push("securityContext.runAsNonRoot: true".to_owned());
            }
            if let Some(resources) = mutations.resources(container) {
                for name in ResourceName::ALL {
                    let missing = resources.missing_limit(pod, list, container, name);
                    due.extend(missing.map(|amount| limit(name, amount)));
                }
                for name in ResourceName::ALL {
                    let missing = resources.missing_request(pod, list, container, name);
                    due.extend(missing.map(|amount| format!("{}: {}", name.request_field(), amount.as_str())));
                }
            }
            for due in due {
                lacks(Subject::Container { list, index, name: &container.name }, Lack::of(due));
            }
        }
        for (index, volume) in pod.volumes.iter().enumerate() {
            let image = volume.image.as_ref().and_then(|image| mutations.new_volume_image(image));
            if let Some(image) = image {
                lacks(Subject::Volume { index, name: &volume.name }, Lack::of(format!("image.reference: {image}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Policies;
    use super::super::testing::{lines, patched};
    use super::Promises;
    use serde_json::json;

    #[test]
    fn tells_of_everything_that_mutate_would_set() {
        let spec = json!({"containers": [{"name": "a", "image": "a:1"}], "resources": {"requests": {"cpu": "2"}}});
        let found = lines(&Promises::default(), spec.clone());
        assert_eq!(
            found,
            [
                "promises: the pod (spec) resources.limits.cpu: 2",
                "promises: container \"a\" (spec.containers[0]) securityContext.allowPrivilegeEscalation: false",
                "promises: container \"a\" (spec.containers[0]) securityContext.runAsNonRoot: true",
                "promises: container \"a\" (spec.containers[0]) resources.limits.memory: 1Gi",
            ]
        );
        assert!(lines(&Promises::default(), patched(&Policies::default(), spec)).is_empty());
    }
}
