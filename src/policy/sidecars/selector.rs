//! A label selector (`metav1.LabelSelector`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::null_is_default;
use super::invalid::{is_label_value, is_qualified_name};
use crate::json::TextMap;

/// Labels that a pod must have. An empty one selects every pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Selector {
    /// Labels, each with its value.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    match_labels: BTreeMap<LabelKey, LabelValue>,
    /// What else is asked of labels.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<Expression>>")]
    match_expressions: Vec<Requirement>,
}

impl Selector {
    /// Whether a pod of these labels is selected.
    pub(super) fn matches(&self, labels: &TextMap<'_>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(&key.0) == Some(&value.0))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

/// The key of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct LabelKey(String);

/// The value of a label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct LabelValue(String);

/// A text that no label of a pod can have, so that the selector would never match, or always.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum InvalidLabel {
    #[error(
        "{0:?} is no label's key: write letters, digits, '-', '_' and '.', at most 63 and a letter or digit first and \
         last, and before them, where there is one, a domain and a slash"
    )]
    Key(String),
    #[error(
        "{0:?} is no label's value: write letters, digits, '-', '_' and '.', at most 63 and a letter or digit first and \
         last"
    )]
    Value(String),
}

impl TryFrom<String> for LabelKey {
    type Error = InvalidLabel;

    fn try_from(text: String) -> Result<Self, InvalidLabel> {
        if is_qualified_name(&text) { Ok(Self(text)) } else { Err(InvalidLabel::Key(text)) }
    }
}

impl TryFrom<String> for LabelValue {
    type Error = InvalidLabel;

    fn try_from(text: String) -> Result<Self, InvalidLabel> {
        if is_label_value(&text) { Ok(Self(text)) } else { Err(InvalidLabel::Value(text)) }
    }
}

/// A `metav1.LabelSelectorRequirement`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Expression")]
struct Requirement {
    key: LabelKey,
    operator: Operator,
    values: Vec<LabelValue>,
}

impl Requirement {
    fn matches(&self, labels: &TextMap<'_>) -> bool {
        let value = labels.get(&self.key.0);
        let is_among = value.is_some_and(|value| self.values.iter().any(|known| known.0 == value));
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
    #[schemars(with = "String")]
    key: LabelKey,
    /// How it is compared.
    operator: Operator,
    /// With what it is compared: with `In` and `NotIn` only.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>")]
    values: Vec<LabelValue>,
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

    #[test]
    fn labels_are_such_as_pods_can_have() {
        let long = "a".repeat(64);
        for key in ["", "a b", "-a", "a/", "/a", "a/b/c", "A.example.com/a", "café", &*long] {
            let error = serde_json::from_value::<Selector>(json!({"matchLabels": {key: "a"}})).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{key:?} is no label's key")), "{error}");
            assert!(serde_json::from_value::<Selector>(expression(key, "Exists", &[])).is_err(), "{key}");
        }
        for value in ["a b", "-a", "a/b", "a:", "café", &*long] {
            let error = serde_json::from_value::<Selector>(json!({"matchLabels": {"a": value}})).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{value:?} is no label's value")), "{error}");
            assert!(serde_json::from_value::<Selector>(expression("a", "In", &["b", value])).is_err(), "{value}");
        }
        let labels = || json!({"app.kubernetes.io/part-of": "", "A_b.c-9": "v1.2_3-B"});
        assert!(matches(json!({"matchLabels": labels()}), labels()));
    }
}
