//! `hostPID`: no pod among the node's processes.
//!
//! Denies `spec.hostPID: true`. Off by default.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, Context, Field, Found, Message, PodExclude, PolicyName, Rule, RuleExclude, Subject, Validation, Violation,
    null_is_default,
};
use crate::pod::PodSpec;

/// The settings of `hostPID`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostPid {
    /// What is done about it; `off` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: PodExclude,
}

impl Default for HostPid {
    fn default() -> Self {
        Self { action: Action::Off, message: None, exclude: PodExclude::default() }
    }
}

impl Validation for HostPid {
    const NAME: PolicyName = PolicyName("hostPID");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Pod(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        if pod.host_pid {
            violations.push(Violation {
                policy: Self::NAME,
                subject: Subject::Pod,
                field: Field::Own("hostPID"),
                found: Found::Value(Cow::Borrowed("true")),
                statement: "sees the processes of the node and can signal them: remove it or set it to false"
                    .to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::{Action, HostPid};
    use serde_json::json;

    #[test]
    fn denies_true_only() {
        assert_eq!(
            lines(&HostPid { action: Action::Deny, ..HostPid::default() }, json!({"hostPID": true})),
            [
                "hostPID: the pod (spec.hostPID) sees the processes of the node and can signal them: remove it or set it to false"
            ]
        );
        for spec in [json!({}), json!({"hostPID": false}), json!({"hostPID": null}), json!({"HostPID": true})] {
            assert!(lines(&HostPid { action: Action::Deny, ..HostPid::default() }, spec).is_empty());
        }
    }
}
