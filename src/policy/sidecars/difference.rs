//! Whether a container or volume has what the configuration says.
//!
//! Every field that is set there must have that value; other fields do not matter, for the API
//! server adds its defaults and the mount of the service account's token, and other webhooks add
//! theirs. As the API server normalises what it stores:
//!
//! - Quantities compare by amount, rounded up to a thousandth: `1000m` is `1`, and `1500u` is `2m`.
//! - A zero (`false`, `0`, `""`) that is missing is the same, for most fields are not stored then;
//!   not so in `securityContext`, where a field that is not set means something else. A zero of a
//!   field that has a default may have become the default.
//! - Elements of `env`, `ports`, `volumeMounts`, `volumeDevices` and `resizePolicy` are found by
//!   their key, among others and in any place; elements of one key must be as many and in that
//!   order. All other lists must have as many elements, in that order.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::super::Quoted;
use crate::pod::Quantity;

/// Fields that the API server fills where they are zero (`k8s.io/kubernetes/pkg/apis/core/v1`,
/// `SetDefaults_*`); `hostPort` in a pod of `hostNetwork: true`.
const WITH_DEFAULT: [&str; 19] = [
    "apiVersion",
    "failureThreshold",
    "fsType",
    "hostPort",
    "imagePullPolicy",
    "iscsiInterface",
    "keyring",
    "path",
    "periodSeconds",
    "pool",
    "protocol",
    "pullPolicy",
    "scheme",
    "storageMode",
    "successThreshold",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "timeoutSeconds",
    "user",
];

/// Fields in which people keep what not everybody should read: messages do not show their values.
const NOT_SHOWN: [&str; 3] = ["args", "command", "env"];

/// A field that has not the value that it should have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Its path below the container or volume.
    path: String,
    is_missing: bool,
    /// The values, where they are such as a message may show.
    expected: Option<String>,
    found: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, is_missing, expected, found } = self;
        match (expected, found) {
            (Some(expected), Some(found)) => write!(formatter, "{path} is {found} and not {expected}"),
            (Some(expected), None) if *is_missing => write!(formatter, "{path} is missing and not {expected}"),
            _ if *is_missing => write!(formatter, "{path} is missing"),
            _ => write!(formatter, "{path} is another"),
        }
    }
}

/// The first field of `expected` that `found` has not.
pub(super) fn difference(expected: &Value, found: &Value) -> Option<Difference> {
    let field = Field { key: "", parent: "", is_strict: false, is_shown: true };
    compare(field, expected, Some(found)).err()
}

/// Where a value stands, as far as it decides how it is compared.
#[derive(Debug, Clone, Copy)]
struct Field<'f> {
    key: &'f str,
    parent: &'f str,
    /// Whether a zero is something else than nothing.
    is_strict: bool,
    /// Whether a message may show its value.
    is_shown: bool,
}

impl<'f> Field<'f> {
    fn member(self, key: &'f str) -> Self {
        Self {
            key,
            parent: self.key,
            is_strict: self.is_strict || self.key == "securityContext",
            is_shown: self.is_shown && !NOT_SHOWN.contains(&key),
        }
    }

    fn differs(self, expected: &Value, found: Option<&Value>) -> Difference {
        let shown = |value: &Value| if self.is_shown { shown(value) } else { None };
        let is_missing = found.is_none();
        Difference { path: String::new(), is_missing, expected: shown(expected), found: found.and_then(shown) }
    }

    fn is_quantity(self) -> bool {
        matches!(self.parent, "limits" | "requests") || matches!(self.key, "sizeLimit" | "divisor")
    }

    /// What tells the elements of a list apart.
    fn element_key(self) -> Option<fn(&Value) -> String> {
        match self.key {
            "env" => Some(|element| text(&element["name"])),
            "ports" => Some(|element| {
                let protocol = text(&element["protocol"]);
                let protocol = if protocol.is_empty() { "TCP" } else { &protocol };
                format!("{}/{protocol}", text(&element["containerPort"]))
            }),
            "volumeMounts" => Some(|element| text(&element["mountPath"])),
            "volumeDevices" => Some(|element| text(&element["devicePath"])),
            "resizePolicy" => Some(|element| text(&element["resourceName"])),
            _ => None,
        }
    }
}

fn compare(field: Field<'_>, expected: &Value, found: Option<&Value>) -> Result<(), Difference> {
    let found = found.filter(|found| !found.is_null());
    match (expected, found) {
        (Value::Object(expected), Some(Value::Object(found))) => compare_members(field, expected, found),
        (Value::Array(expected), Some(Value::Array(found))) => match field.element_key() {
            Some(key) => compare_by_key(field, key, expected, found),
            None => compare_in_order(field, expected, found),
        },
        (expected, Some(found)) if expected == found => Ok(()),
        (expected, Some(found))
            if field.is_quantity() && amount(expected).is_some() && amount(expected) == amount(found) =>
        {
            Ok(())
        }
        (expected, None) if is_zero(expected) && !field.is_strict => Ok(()),
        (expected, Some(_)) if is_zero(expected) && WITH_DEFAULT.contains(&field.key) => Ok(()),
        (expected, found) => Err(field.differs(expected, found)),
    }
}

fn compare_members(
    field: Field<'_>,
    expected: &Map<String, Value>,
    found: &Map<String, Value>,
) -> Result<(), Difference> {
    expected.iter().try_for_each(|(key, value)| {
        compare(field.member(key), value, found.get(key)).map_err(|difference| difference.below(key))
    })
}

fn compare_in_order(field: Field<'_>, expected: &[Value], found: &[Value]) -> Result<(), Difference> {
    if expected.len() != found.len() {
        return Err(Difference::another());
    }
    expected.iter().zip(found).enumerate().try_for_each(|(index, (expected, found))| {
        compare(field, expected, Some(found)).map_err(|difference| difference.below(&format!("[{index}]")))
    })
}

fn compare_by_key(
    field: Field<'_>,
    key: fn(&Value) -> String,
    expected: &[Value],
    found: &[Value],
) -> Result<(), Difference> {
    let mut of_key = BTreeMap::<String, (Vec<&Value>, Vec<&Value>)>::new();
    for element in expected {
        of_key.entry(key(element)).or_default().0.push(element);
    }
    for element in found {
        if let Some((_, found)) = of_key.get_mut(&key(element)) {
            found.push(element);
        }
    }
    of_key.into_iter().try_for_each(|(key, (expected, found))| {
        let place = format!("[{key}]");
        if found.len() > expected.len() {
            return Err(Difference::another().below(&place));
        }
        expected.iter().enumerate().try_for_each(|(index, expected)| {
            compare(field, expected, found.get(index).copied()).map_err(|difference| difference.below(&place))
        })
    })
}

impl Difference {
    /// A list that has other elements.
    const fn another() -> Self {
        Self { path: String::new(), is_missing: false, expected: None, found: None }
    }

    fn below(mut self, key: &str) -> Self {
        let point = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{key}{point}{}", self.path);
        self
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The amount of a quantity in thousandths, rounded up as the API server does (`SetDefaults_ResourceList`).
fn amount(value: &Value) -> Option<i128> {
    let nano = Quantity::parse(text(value)).ok()?.nano();
    Some(nano.saturating_add(999_999).div_euclid(1_000_000))
}

/// A string without quotes, anything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value in a message; lists and objects are too long for one.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(Quoted(text).to_string()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "`json!` in a call reads better without a borrow")]
    fn said(expected: Value, found: Value) -> String {
        difference(&expected, &found).map(|difference| difference.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_the_api_server_makes_of_it_is_the_same() {
        for (expected, found) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2})),
            (
                json!({"resources": {"limits": {"cpu": "1000m", "memory": 1024}}}),
                json!({"resources": {"limits": {"cpu": "1", "memory": "1Ki"}, "requests": {"cpu": "1"}}}),
            ),
            (json!({"resources": {"limits": {"cpu": 0.5}}}), json!({"resources": {"limits": {"cpu": "500m"}}})),
            (json!({"emptyDir": {"sizeLimit": "1024Mi"}}), json!({"emptyDir": {"sizeLimit": "1Gi"}})),
            (json!({"tty": false, "workingDir": "", "x": 0}), json!({})),
            (json!({"tty": false}), json!({"tty": null})),
            (json!({"imagePullPolicy": ""}), json!({"imagePullPolicy": "Always"})),
            (json!({"image": {"pullPolicy": ""}}), json!({"image": {"pullPolicy": "IfNotPresent"}})),
            (json!({"iscsi": {"iscsiInterface": ""}}), json!({"iscsi": {"iscsiInterface": "default"}})),
            (
                json!({"rbd": {"pool": "", "user": "", "keyring": ""}}),
                json!({"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
            ),
            (
                json!({"scaleIO": {"storageMode": "", "fsType": ""}}),
                json!({"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}}),
            ),
            (json!({"resources": {"limits": {"cpu": "1500u"}}}), json!({"resources": {"limits": {"cpu": "2m"}}})),
            (json!({"resources": {"limits": {"cpu": 0.0005}}}), json!({"resources": {"limits": {"cpu": "1m"}}})),
            (
                json!({"ports": [{"containerPort": 80, "hostPort": 0}]}),
                json!({"ports": [{"containerPort": 80, "hostPort": 80}]}),
            ),
            (json!({"livenessProbe": {"timeoutSeconds": 0}}), json!({"livenessProbe": {"timeoutSeconds": 1}})),
            (
                json!({"volumeMounts": [{"mountPath": "/a", "name": "a"}]}),
                json!({"volumeMounts": [{"mountPath": "/b", "name": "b"}, {"mountPath": "/a", "name": "a", "readOnly": true}]}),
            ),
            (
                json!({"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]}),
                json!({"ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]}),
            ),
            (
                json!({"env": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}),
                json!({"env": [{"name": "b"}, {"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}),
            ),
        ] {
            assert_eq!(difference(&expected, &found), None, "{expected}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        for (expected, found, line) in [
            (json!({"image": "a:1"}), json!({"image": "a:2"}), "image is \"a:2\" and not \"a:1\""),
            (json!({"a": {"b": [1]}}), json!({"a": {}}), "a.b is missing"),
            (json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]}), "args[0] is another"),
            (json!({"args": ["a"]}), json!({"args": ["a", "b"]}), "args is another"),
            (json!({"tty": false}), json!({"tty": true}), "tty is true and not false"),
            (json!({"workingDir": ""}), json!({"workingDir": "/"}), "workingDir is \"/\" and not \"\""),
            (
                json!({"securityContext": {"runAsUser": 0}}),
                json!({"securityContext": {}}),
                "securityContext.runAsUser is missing and not 0",
            ),
            (json!({"securityContext": {"capabilities": {"drop": ["ALL"]}}}), json!({}), "securityContext is missing"),
            (json!({"emptyDir": {}}), json!({"hostPath": {"path": "/"}}), "emptyDir is missing"),
            (
                json!({"resources": {"limits": {"cpu": "1"}}}),
                json!({"resources": {"limits": {"cpu": "1001m"}}}),
                "resources.limits.cpu is \"1001m\" and not \"1\"",
            ),
            (
                json!({"env": [{"name": "A", "value": "1"}]}),
                json!({"env": [{"name": "A", "value": "2"}]}),
                "env[A].value is another",
            ),
            // The last one counts for the kubelet.
            (
                json!({"env": [{"name": "A", "value": "1"}]}),
                json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
                "env[A] is another",
            ),
            (
                json!({"ports": [{"containerPort": 80}]}),
                json!({"ports": [{"containerPort": 81}]}),
                "ports[80/TCP] is missing",
            ),
        ] {
            assert_eq!(said(expected, found), line);
        }
    }
}
