//! `promises`: what `/mutate` sets is still there when the pod is stored.
//!
//! Warns, by default, of a pod that lacks a sidecar, and of a container or an image volume that
//! lacks what the mutations would have set. What is said of the cause depends on the request: on an
//! update they set it only in the ephemeral containers that it adds.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, ContainerExclude, Context, Field, Found, Message, PolicyName, Rule, RuleExclude, Subject, Validation,
    Violation, null_is_default,
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
    /// What a message says of it, after what is lacking.
    pub(super) const fn clause(self) -> &'static str {
        match self {
            Self::Undone => ": another webhook undid it, or the mutating webhook was bypassed",
            Self::Older => ": it was so before, and podgate sets it only on what is new",
            Self::Update => ": this update did it, and podgate sets it only on what is new",
        }
    }
}

impl Validation for Promises {
    const NAME: PolicyName = PolicyName("promises");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Container(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        let mutations = context.mutations;
        let mut lacks = |subject, due: Vec<String>| {
            if due.is_empty() {
                return;
            }
            let due = due.join(", ");
            violations.push(Violation {
                policy: Self::NAME,
                subject,
                field: Field::Whole,
                statement: format!("lacks {due}"),
                found: Found::Value(Cow::Owned(due)),
            });
        };
        let limit = |name: ResourceName, limit: &Quantity<'_>| format!("{}: {}", name.limit_field(), limit.as_str());
        let missing = |name| mutations.missing_pod_limit(pod, name).map(|amount| limit(name, amount));
        lacks(Subject::Pod, ResourceName::ALL.into_iter().filter_map(missing).collect());
        for (name, due) in context.prepared.broken_promises() {
            if !self.exclude.containers.cover(name, context.today) {
                lacks(Subject::Pod, vec![due]);
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
            lacks(Subject::Container { list, index, name: &container.name }, due);
        }
        for (index, volume) in pod.volumes.iter().enumerate() {
            let image = volume.image.as_ref().and_then(|image| mutations.new_volume_image(image));
            let due = image.map(|image| format!("image.reference: {image}"));
            lacks(Subject::Volume { index, name: &volume.name }, due.into_iter().collect());
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
                "promises: the pod (spec) lacks resources.limits.cpu: 2",
                "promises: container \"a\" (spec.containers[0]) lacks securityContext.allowPrivilegeEscalation: false, \
                 securityContext.runAsNonRoot: true, resources.limits.memory: 1Gi",
            ]
        );
        assert!(lines(&Promises::default(), patched(&Policies::default(), spec)).is_empty());
    }
}
