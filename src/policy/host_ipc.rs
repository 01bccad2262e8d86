//! `hostIPC`: no pod in the node's IPC namespace.
//!
//! Denies `spec.hostIPC: true`. Off by default.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, Context, Field, Found, Message, PodExclude, PolicyName, Rule, RuleExclude, Subject, Validation, Violation,
    null_is_default,
};
use crate::pod::PodSpec;

/// The settings of `hostIPC`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostIpc {
    /// What is done about it; `off` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: PodExclude,
}

impl Default for HostIpc {
    fn default() -> Self {
        Self { action: Action::Off, message: None, exclude: PodExclude::default() }
    }
}

impl Validation for HostIpc {
    const NAME: PolicyName = PolicyName("hostIPC");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Pod(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        if pod.host_ipc {
            violations.push(Violation {
                policy: Self::NAME,
                subject: Subject::Pod,
                field: Field::Own("hostIPC"),
                found: Found::Value(Cow::Borrowed("true")),
                statement: "shares the memory segments and queues of the node: remove it or set it to false".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::{Action, HostIpc};
    use serde_json::json;

    #[test]
    fn denies_true_only() {
        assert_eq!(
            lines(&HostIpc { action: Action::Deny, ..HostIpc::default() }, json!({"hostIPC": true})),
            [
                "hostIPC: the pod (spec.hostIPC) shares the memory segments and queues of the node: remove it or set it to false"
            ]
        );
        for spec in [json!({}), json!({"hostIPC": false}), json!({"hostIPC": null}), json!({"HostIPC": true})] {
            assert!(lines(&HostIpc { action: Action::Deny, ..HostIpc::default() }, spec).is_empty());
        }
    }
}
