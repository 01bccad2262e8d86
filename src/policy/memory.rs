//! `memory`: no pod that may use more memory than this at one time.
//!
//! Denies a pod whose effective memory limit is above `max`: the pod-level limit where one is
//! set, else the largest sum of what runs together, in which a container without a limit counts
//! as unlimited. An update that lowers the amount, or leaves it as it is, passes. Off by default.

use serde::Deserialize;

use super::{Context, PodLimit, PolicyName, Rule, Validation, Violation};
use crate::pod::{PodSpec, ResourceName};

/// The settings of `memory`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Memory(pub PodLimit);

impl Validation for Memory {
    const NAME: PolicyName = PolicyName("memory");

    fn rule(&self) -> Rule<'_> {
        self.0.rule()
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        violations.extend(self.0.check(Self::NAME, ResourceName::Memory, pod, context));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::Memory;
    use serde_json::json;

    #[test]
    fn compares_exactly() {
        let policy: Memory = serde_json::from_value(json!({"action": "deny", "max": "2Gi"})).unwrap();
        let spec = |one: &str, other: &str| {
            let container = |name, limit| json!({"name": name, "resources": {"limits": {"memory": limit}}});
            json!({"containers": [container("app", one), container("cache", other)]})
        };
        assert!(lines(&policy, spec("1Gi", "1024Mi")).is_empty());
        assert_eq!(
            lines(&policy, spec("1Gi", "1025Mi")),
            ["memory: the pod (spec.containers[1].resources.limits.memory) may use 2049Mi of memory at one time \
              (\"app\" 1Gi (the default), \"cache\" 1025Mi): at most 2Gi is allowed, so lower the limits"]
        );
    }
}
