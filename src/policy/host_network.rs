//! `hostNetwork`: no pod in the node's network.
//!
//! Denies `spec.hostNetwork: true`, whatever ports the containers have.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, Context, Field, Found, Message, PodExclude, PolicyName, Rule, RuleExclude, Subject, Validation, Violation,
    null_is_default,
};
use crate::pod::PodSpec;

/// The settings of `hostNetwork`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostNetwork {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: PodExclude,
}

impl Default for HostNetwork {
    fn default() -> Self {
        Self { action: Action::Deny, message: None, exclude: PodExclude::default() }
    }
}

impl Validation for HostNetwork {
    const NAME: PolicyName = PolicyName("hostNetwork");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Pod(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        if pod.host_network {
            violations.push(Violation {
                policy: Self::NAME,
                subject: Subject::Pod,
                field: Field::Own("hostNetwork"),
                found: Found::Value(Cow::Borrowed("true")),
                statement: "is in the node's network: remove it or set it to false".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::HostNetwork;
    use serde_json::json;

    #[test]
    fn denies_true_only() {
        assert_eq!(
            lines(&HostNetwork::default(), json!({"hostNetwork": true})),
            ["hostNetwork: the pod (spec.hostNetwork) is in the node's network: remove it or set it to false"]
        );
        for spec in
            [json!({}), json!({"hostNetwork": false}), json!({"hostNetwork": null}), json!({"HostNetwork": true})]
        {
            assert!(lines(&HostNetwork::default(), spec).is_empty());
        }
    }
}
