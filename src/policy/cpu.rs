//! `cpu`: no pod that may use more cores than this at one time.
//!
//! Denies a pod whose effective cpu limit is above `max`: the pod-level limit where one is set,
//! else the largest sum of what runs together, in which a container without a limit counts as
//! unlimited. An update that lowers the amount, or leaves it as it is, passes. Off by default.

use serde::Deserialize;

use super::{Context, PodLimit, PolicyName, Rule, Validation, Violation};
use crate::pod::{PodSpec, ResourceName};

/// The settings of `cpu`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Cpu(pub PodLimit);

impl Validation for Cpu {
    const NAME: PolicyName = PolicyName("cpu");

    fn rule(&self) -> Rule<'_> {
        self.0.rule()
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        violations.extend(self.0.check(Self::NAME, ResourceName::Cpu, pod, context));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::Cpu;
    use serde_json::{Value, json};

    fn at_most_2(spec: Value) -> Vec<String> {
        let policy: Cpu = serde_json::from_value(json!({"action": "deny", "max": "2"})).unwrap();
        lines(&policy, spec)
    }

    fn named(name: &str, limit: &str) -> Value {
        json!({"name": name, "resources": {"limits": {"cpu": limit}}})
    }

    fn sidecar(name: &str, limit: &str) -> Value {
        json!({"name": name, "resources": {"limits": {"cpu": limit}}, "restartPolicy": "Always"})
    }

    #[test]
    fn what_runs_together_counts_together() {
        let spec = |app: &str, side: &str| json!({"containers": [named("app", app), named("cron", "500m")], "initContainers": [sidecar("log", side)]});
        assert!(at_most_2(spec("1", "500m")).is_empty());
        assert_eq!(
            at_most_2(spec("1", "0.5001")),
            [
                "cpu: the pod (spec.containers[0].resources.limits.cpu) may use 2000100u of cpu at one time (\"app\" 1 (the default), \
              \"cron\" 500m, \"log\" 500100u): at most 2 is allowed, so lower the limits"
            ]
        );
    }

    #[test]
    fn a_step_runs_beside_the_sidecars_before_it() {
        let spec = |first: Value, second: Value| json!({"containers": [named("app", "100m")], "initContainers": [first, second]});
        assert!(at_most_2(spec(named("step", "2"), sidecar("log", "1"))).is_empty());
        assert_eq!(
            at_most_2(spec(sidecar("log", "1"), named("step", "2"))),
            [
                "cpu: the pod (spec.initContainers[1].resources.limits.cpu) may use 3 of cpu at one time (\"log\" 1 (the default), \
              \"step\" 2): at most 2 is allowed, so lower the limits"
            ]
        );
    }

    #[test]
    fn no_limit_is_unlimited() {
        for resources in [json!(null), json!({"limits": {"memory": "1Gi"}}), json!({"limits": {"cpu": "0"}})] {
            let spec = json!({"containers": [named("app", "1"), {"name": "free", "resources": resources}]});
            assert_eq!(
                at_most_2(spec),
                [
                    "cpu: the pod (spec.containers[1].resources.limits.cpu) has no cpu limit, because container \"free\" \
                  has none: at most 2 is allowed for the pod, so set one"
                ]
            );
        }
        assert!(at_most_2(json!({"containers": [], "ephemeralContainers": [{"name": "debug"}]})).is_empty());
    }

    #[test]
    fn a_limit_of_the_pod_decides() {
        let spec = |limit: &str| json!({"resources": {"limits": {"cpu": limit}}, "containers": [{"name": "app"}]});
        assert!(at_most_2(spec("2000m")).is_empty());
        assert_eq!(
            at_most_2(spec("2001m")),
            ["cpu: the pod (spec.resources.limits.cpu) has a cpu limit of 2001m: at most 2 is allowed, so lower it"]
        );
    }

    #[test]
    fn a_policy_that_is_on_has_a_max() {
        for settings in [json!({"action": "warn"}), json!({"max": "0"}), json!({"action": "deny", "max": null})] {
            assert!(serde_json::from_value::<Cpu>(settings).is_err());
        }
        assert_eq!(serde_json::from_value::<Cpu>(json!({})).ok(), Some(Cpu::default()));
    }
}
