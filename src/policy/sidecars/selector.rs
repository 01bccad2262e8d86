//! A label selector (`metav1.LabelSelector`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::null_is_default;
use crate::json::TextMap;

/// Labels that a pod must have. An empty one selects every pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Selector {
    /// Labels, each with its value.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    match_labels: BTreeMap<String, String>,
    /// What else is asked of labels.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<Expression>>")]
    match_expressions: Vec<Requirement>,
}

impl Selector {
    /// Whether a pod of these labels is selected.
    pub(super) fn matches(&self, labels: &TextMap<'_>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

/// A `metav1.LabelSelectorRequirement`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Expression")]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    fn matches(&self, labels: &TextMap<'_>) -> bool {
        let value = labels.get(&self.key);
        let is_among = value.is_some_and(|value| self.values.iter().any(|known| known == value));
        match self.operator {
            Operator::In => is_among,
            Operator::NotIn => !is_among,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// A `metav1.LabelSelectorRequirement`, as it is written.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expression {
    /// The key of the label.
    key: String,
    /// How it is compared.
    operator: Operator,
    /// With what it is compared: with `In` and `NotIn` only.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>")]
    values: Vec<String>,
}

/// An operator with values that it does not take, or without those that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum InvalidRequirement {
    #[error("there are no values: In and NotIn compare with at least one")]
    Missing,
    #[error("Exists and DoesNotExist have no values: remove them, or compare with In or NotIn")]
    Unexpected,
}

impl TryFrom<Expression> for Requirement {
    type Error = InvalidRequirement;

    fn try_from(expression: Expression) -> Result<Self, InvalidRequirement> {
        let Expression { key, operator, values } = expression;
        match (operator, values.is_empty()) {
            (Operator::In | Operator::NotIn, true) => Err(InvalidRequirement::Missing),
            (Operator::Exists | Operator::DoesNotExist, false) => Err(InvalidRequirement::Unexpected),
            _ => Ok(Self { key, operator, values }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use serde_json::{Value, json};

    #[expect(clippy::needless_pass_by_value, reason = "`json!` in a call reads better without a borrow")]
    fn matches(selector: Value, labels: Value) -> bool {
        let selector: Selector = serde_json::from_value(selector).unwrap();
        selector.matches(&serde_json::from_str(&labels.to_string()).unwrap())
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn selects_as_the_api_server_does() {
        let labels = || json!({"logs": "yes", "tier": "web"});
        assert!(matches(json!({}), json!({})));
        assert!(matches(json!({"matchLabels": {"logs": "yes", "tier": "web"}}), labels()));
        assert!(!matches(json!({"matchLabels": {"logs": "yes", "tier": "db"}}), labels()));
        assert!(!matches(json!({"matchLabels": {"logs": ""}}), json!({})));
        for (key, operator, values, expected) in [
            ("tier", "In", &["db", "web"][..], true),
            ("tier", "In", &["db"], false),
            ("other", "In", &["db"], false),
            ("tier", "NotIn", &["db"], true),
            ("tier", "NotIn", &["web"], false),
            ("other", "NotIn", &["db"], true),
            ("tier", "Exists", &[], true),
            ("other", "Exists", &[], false),
            ("other", "DoesNotExist", &[], true),
            ("tier", "DoesNotExist", &[], false),
        ] {
            assert_eq!(matches(expression(key, operator, values), labels()), expected, "{key} {operator}");
        }
    }

    #[test]
    fn an_operator_has_the_values_that_it_needs() {
        for (operator, values) in [("In", &[][..]), ("NotIn", &[]), ("Exists", &["a"]), ("DoesNotExist", &["a"])] {
            assert!(serde_json::from_value::<Selector>(expression("a", operator, values)).is_err(), "{operator}");
        }
    }
}
