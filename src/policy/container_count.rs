//! `containerCount`: no pod with too many containers at once.
//!
//! Counts app containers and native sidecars (init containers with `restartPolicy: Always`),
//! which run beside each other; init containers that finish, ephemeral containers and what
//! `mutations.sidecars` put there are not counted. Denies more than `max`, 5 by default.

use serde::{Deserialize, Deserializer};

use super::{
    Action, Context, Field, Found, Message, PodExclude, PolicyName, Rule, RuleExclude, Subject, Validation, Violation,
    null_is_default, whole_number,
};
use crate::pod::{Container, PodSpec};

/// The settings of `containerCount`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerCount {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: PodExclude,
    /// The most containers that a pod may have; 5 by default.
    #[serde(deserialize_with = "count")]
    #[schemars(range(max = 4_294_967_295_u32))]
    pub max: usize,
}

/// A whole number; the default for a key without a value.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let count = whole_number::optional(deserializer, "a whole number of containers, such as 5")?;
    Ok(count.map_or_else(|| ContainerCount::default().max, |count| usize::try_from(count).unwrap_or(usize::MAX)))
}

impl Default for ContainerCount {
    fn default() -> Self {
        Self { action: Action::Deny, message: None, exclude: PodExclude::default(), max: 5 }
    }
}

impl Validation for ContainerCount {
    const NAME: PolicyName = PolicyName("containerCount");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Pod(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        let sidecars = || pod.init_containers.iter().filter(|container| container.restarts_always());
        if pod.containers.len() + sidecars().count() <= self.max {
            return;
        }
        let injected = context.prepared.own_containers();
        let is_counted = |container: &&Container<'_>| !injected.contains(&*container.name);
        let sidecars = sidecars().filter(is_counted).count();
        let count = pod.containers.iter().filter(is_counted).count() + sidecars;
        if count <= self.max {
            return;
        }
        let counted = match sidecars {
            0 => format!("{count} containers"),
            _ => format!("{count} containers, {sidecars} of them sidecars"),
        };
        violations.push(Violation {
            policy: Self::NAME,
            subject: Subject::Pod,
            field: Field::Own("containers"),
            // A pod's containers fit in memory, so their number fits in 128 bits.
            found: Found::Amount { amount: i128::try_from(count).unwrap_or(i128::MAX), shown: count.to_string() },
            statement: format!("has {counted}: at most {} are allowed, so split the pod", self.max),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::ContainerCount;
    use serde_json::{Value, json};

    fn pod(apps: usize, sidecars: usize, steps: usize) -> Value {
        let named = |kind: &str, count: usize, restart: Option<&str>| -> Vec<Value> {
            (0..count).map(|index| json!({"name": format!("{kind}{index}"), "restartPolicy": restart})).collect()
        };
        let mut init = named("sidecar", sidecars, Some("Always"));
        init.extend(named("step", steps, None));
        json!({"containers": named("app", apps, None), "initContainers": init, "ephemeralContainers": named("e", 9, None)})
    }

    #[test]
    fn counts_what_runs_side_by_side() {
        for (apps, sidecars, steps) in [(5, 0, 0), (3, 2, 9), (0, 0, 6), (1, 0, 0)] {
            assert!(lines(&ContainerCount::default(), pod(apps, sidecars, steps)).is_empty());
        }
        assert_eq!(
            lines(&ContainerCount::default(), pod(6, 0, 0)),
            ["containerCount: the pod (spec.containers) has 6 containers: at most 5 are allowed, so split the pod"]
        );
        assert_eq!(
            lines(&ContainerCount::default(), pod(4, 2, 1)),
            ["containerCount: the pod (spec.containers) has 6 containers, 2 of them sidecars: at most 5 are allowed, \
              so split the pod"]
        );
    }
}
