//! `promises`: what `/mutate` sets is still there when the pod is stored.
//!
//! Warns, by default, of a container that lacks what the mutations would have set: another
//! webhook undid it, or the mutating webhook was bypassed.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Action, Field, Found, Mutations, PolicyName, Subject, Validation, Violation};
use crate::pod::{PodSpec, ResourceName};

/// The settings of `promises`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Promises {
    /// What is done about it; `warn` by default.
    pub action: Action,
}

impl Default for Promises {
    fn default() -> Self {
        Self { action: Action::Warn }
    }
}

impl Validation for Promises {
    const NAME: PolicyName = PolicyName("promises");

    fn action(&self) -> Action {
        self.action
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, mutations: &Mutations, violations: &mut Vec<Violation<'a>>) {
        let mut lacks = |subject, field, due: &str| {
            violations.push(Violation {
                policy: Self::NAME,
                subject,
                field: Field::Own(field),
                found: Found::Value(Cow::Borrowed("")),
                statement: format!("should be {due}: the mutating webhook was bypassed, or another one undid it"),
            });
        };
        for name in ResourceName::ALL {
            if let Some(limit) = mutations.resources.missing_pod_limit(pod, name) {
                lacks(Subject::Pod, limit_field(name), limit);
            }
        }
        for (list, index, container) in pod.all_containers() {
            let subject = Subject::Container { list, index, name: &container.name };
            if mutations.security_context.lacks_no_escalation(pod, container) {
                lacks(subject, "securityContext.allowPrivilegeEscalation", "false");
            }
            if mutations.security_context.lacks_non_root(pod, container) {
                lacks(subject, "securityContext.runAsNonRoot", "true");
            }
            for name in ResourceName::ALL {
                if let Some(limit) = mutations.resources.missing_limit(pod, list, container, name) {
                    lacks(subject, limit_field(name), limit);
                }
            }
        }
    }
}

const fn limit_field(name: ResourceName) -> &'static str {
    match name {
        ResourceName::Cpu => "resources.limits.cpu",
        ResourceName::Memory => "resources.limits.memory",
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
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(
            found[0],
            "promises: the pod (spec.resources.limits.cpu) should be 2: the mutating webhook was bypassed, or another \
             one undid it"
        );
        assert!(found[3].contains("(spec.containers[0].resources.limits.memory) should be 1Gi"), "{found:?}");
        assert!(lines(&Promises::default(), patched(&Policies::default(), spec)).is_empty());
    }
}
