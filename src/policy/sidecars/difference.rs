//! Whether a container or volume has what the configuration says.
//!
//! Every field that is set there must have that value, and what is not set there may only be what
//! `additions` names. As the API server normalises what it stores:
//!
//! - Quantities compare by amount, rounded up to a thousandth: `1000m` is `1`, and `1500u` is `2m`.
//! - A zero (`false`, `0`, `""`) that is missing is the same, for most fields are not stored then;
//!   not so in `securityContext`, where a field that is not set means something else. A zero of a
//!   field that has a default may have become the default, and any `imagePullPolicy` `Always`.
//! - A limit of zero is none, and there may be any.
//! - `lifecycle.stopSignal` may be missing: most API servers drop it, and in a pod without `os` it is
//!   left out (`adapted`).
//! - Elements of `env`, `ports`, `volumeMounts`, `volumeDevices` and `resizePolicy` are found by
//!   their key, in any place and among those that may be added; elements of one key must be as many
//!   and in that order. All other lists must have as many elements, in that order.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::super::Quoted;
use super::additions::{self, Expected};
use crate::pod::{ImageReference, Quantity};

/// Fields in which people keep what not everybody should read: messages do not show their values.
const NOT_SHOWN: [&str; 3] = ["args", "command", "env"];

/// The fields of a container that an update of a pod can change.
const UPDATED: [&str; 2] = ["image", "resources"];

/// Fields that Kubernetes got in the versions since 1.28, or that wait for a feature gate, wherever they are.
const RECENT: [&str; 16] = [
    "appArmorProfile",
    "bindMountOptions",
    "claims",
    "clusterTrustBundle",
    "defaultUser",
    "fileKeyRef",
    "podCertificate",
    "procMount",
    "recursiveReadOnly",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "sleep",
    "stopSignal",
    "user",
    "volumeAttributesClassName",
];

/// A field that has not the value that it should have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Its path below the container or volume.
    path: String,
    kind: Kind,
    /// The values, where they are such as a message may show.
    expected: Option<String>,
    found: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is not there, and may be unknown to the API server.
    Unknown,
    /// It is not there.
    Missing,
    /// It is there, where the configuration has none.
    Added,
    /// It has another value.
    Other,
}

impl Difference {
    /// Whether it may be that the API server does not know the field: it is not there, and Kubernetes
    /// did not always have it.
    pub(super) const fn may_be_unknown(&self) -> bool {
        matches!(self.kind, Kind::Unknown)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, kind, expected, found } = self;
        match (kind, expected, found) {
            (Kind::Missing | Kind::Unknown, Some(expected), _) => {
                write!(formatter, "{path} is missing and not {expected}")
            }
            (Kind::Missing | Kind::Unknown, None, _) => write!(formatter, "{path} is missing"),
            (Kind::Added, _, Some(found)) => write!(formatter, "{path} is {found} and should not be set"),
            (Kind::Added, _, None) => write!(formatter, "{path} should not be set"),
            (Kind::Other, Some(expected), Some(found)) => write!(formatter, "{path} is {found} and not {expected}"),
            (Kind::Other, ..) => write!(formatter, "{path} is another"),
        }
    }
}

/// The first field of `expected` that `found` has not.
pub(super) fn difference(expected: &Value, found: &Value) -> Option<Difference> {
    let whole = &Expected::new(expected);
    let field = Field { key: "", parent: "", whole, siblings: None, is_strict: false, is_shown: true };
    compare(field, expected, Some(found)).err()
}

/// A difference that no update of a pod can mend or make, where there is one: all but the image, and the
/// resources, which `pods/resize` changes.
pub(super) fn lasting_difference(expected: &Value, found: &Value) -> Option<Difference> {
    let mut found = found.clone();
    for key in UPDATED {
        match expected.get(key) {
            Some(value) => found[key] = value.clone(),
            None => drop(found.as_object_mut()?.remove(key)),
        }
    }
    difference(expected, &found)
}

/// Where a value stands, as far as it decides how it is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'f> {
    pub(super) key: &'f str,
    pub(super) parent: &'f str,
    /// The container or volume that is expected.
    pub(super) whole: &'f Expected<'f>,
    /// What is found beside it.
    pub(super) siblings: Option<&'f Map<String, Value>>,
    /// Whether a zero is something else than nothing.
    pub(super) is_strict: bool,
    /// Whether a message may show its value.
    is_shown: bool,
}

impl<'f> Field<'f> {
    /// The member of an object that is found there.
    pub(super) fn below<'m>(self, key: &'m str, siblings: &'m Map<String, Value>) -> Field<'m>
    where
        'f: 'm,
    {
        Field {
            key,
            parent: self.key,
            whole: self.whole,
            siblings: Some(siblings),
            is_strict: self.is_strict || self.key == "securityContext" || key == "storageClassName",
            is_shown: self.is_shown && !NOT_SHOWN.contains(&key),
        }
    }

    fn shown(self, value: &Value) -> Option<String> {
        if self.is_shown { shown(value) } else { None }
    }

    fn differs(self, expected: &Value, found: Option<&Value>) -> Difference {
        let kind = match found {
            Some(_) => Kind::Other,
            None if self.is_recent(expected) => Kind::Unknown,
            None => Kind::Missing,
        };
        let found = found.and_then(|found| self.shown(found));
        Difference { path: String::new(), kind, expected: self.shown(expected), found }
    }

    pub(super) fn added(self, found: &Value) -> Difference {
        Difference { path: String::new(), kind: Kind::Added, expected: None, found: self.shown(found) }
    }

    /// Whether not every API server knows the field, or anything that is in it.
    fn is_recent(self, expected: &Value) -> bool {
        let is_recent = RECENT.contains(&self.key)
            || matches!((self.parent, self.key), ("httpGet", "protocol") | ("emptyDir" | "grpc", "mode"))
            || (self.key == "image" && expected.is_object());
        let member_is_recent =
            |members: &Map<String, Value>| members.iter().all(|(key, value)| self.below(key, members).is_recent(value));
        is_recent || expected.as_object().is_some_and(|members| !members.is_empty() && member_is_recent(members))
    }

    /// Whether it is `lifecycle.stopSignal`, or a `lifecycle` with nothing else.
    fn holds_stop_signal_only(self, expected: &Value) -> bool {
        let has_no_other = |members: &Map<String, Value>| members.keys().eq(["stopSignal"]);
        (self.parent == "lifecycle" && self.key == "stopSignal")
            || (self.key == "lifecycle" && expected.as_object().is_some_and(has_no_other))
    }

    /// Whether it is the image of a container.
    fn is_image(self) -> bool {
        self.parent.is_empty() && self.key == "image"
    }

    fn is_quantity(self) -> bool {
        matches!(self.parent, "limits" | "requests") || matches!(self.key, "sizeLimit" | "divisor")
    }

    /// What tells the elements of a list apart.
    pub(super) fn element_key(self) -> Option<fn(&Value) -> String> {
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
        (Value::String(expected), Some(Value::String(found))) if field.is_image() && is_same_image(expected, found) => {
            Ok(())
        }
        // The API server takes a zero limit for none, in the place of which there may be any.
        (expected, _) if field.parent == "limits" && amount(expected) == Some(0) => Ok(()),
        (expected, None) if is_zero(expected) && !field.is_strict => Ok(()),
        (expected, None) if field.holds_stop_signal_only(expected) => Ok(()),
        (expected, Some(found))
            if is_zero(expected) && !field.is_pointer() && field.default_is(found) == Some(true) =>
        {
            Ok(())
        }
        (_, Some(found)) if matches!(field.key, "imagePullPolicy" | "pullPolicy") && found == "Always" => Ok(()),
        (expected, found) => Err(field.differs(expected, found)),
    }
}

/// Whether two references are one when written in full.
fn is_same_image(one: &str, other: &str) -> bool {
    let in_full = |image| {
        let reference = ImageReference::parse(image).ok()?;
        Some((reference.full_repository(), reference.tag, reference.digest))
    };
    in_full(one).is_some_and(|one| Some(one) == in_full(other))
}

fn compare_members(
    field: Field<'_>,
    expected: &Map<String, Value>,
    found: &Map<String, Value>,
) -> Result<(), Difference> {
    expected.iter().try_for_each(|(key, value)| {
        compare(field.below(key, found), value, found.get(key)).map_err(|difference| difference.below(key))
    })?;
    field.check_others(expected, found)
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
    let mut others = Vec::new();
    for element in found {
        match of_key.get_mut(&key(element)) {
            Some((_, found)) => found.push(element),
            None => others.push(element),
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
    })?;
    others.into_iter().try_for_each(|element| additions::element(field, element))
}

impl Difference {
    /// A list that has other elements.
    const fn another() -> Self {
        Self { path: String::new(), kind: Kind::Other, expected: None, found: None }
    }

    pub(super) fn below(mut self, key: &str) -> Self {
        let point = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{key}{point}{}", self.path);
        self
    }
}

pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The amount of a quantity in thousandths, rounded up as the API server does (`SetDefaults_ResourceList`).
pub(super) fn amount(value: &Value) -> Option<i128> {
    let nano = Quantity::parse(text(value)).ok()?.nano();
    Some(nano.saturating_add(999_999).div_euclid(1_000_000))
}

/// A string without quotes, anything else as JSON.
pub(super) fn text(value: &Value) -> String {
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
            (
                json!({"resources": {"limits": {"cpu": "1000m", "memory": 1024}}}),
                json!({"resources": {"limits": {"cpu": "1", "memory": "1Ki"}, "requests": {"cpu": "1"}}}),
            ),
            (json!({"resources": {"limits": {"cpu": 0.5}}}), json!({"resources": {"limits": {"cpu": "500m"}}})),
            (json!({"imagePullPolicy": "IfNotPresent"}), json!({"imagePullPolicy": "Always"})),
            (json!({"image": "agent:1"}), json!({"image": "docker.io/library/agent:1"})),
            (
                json!({"image": "acme/agent:1@sha256:0123456789012345678901234567890123456789012345678901234567890123"}),
                json!({"image": "index.docker.io/acme/agent:1@sha256:0123456789012345678901234567890123456789012345678901234567890123"}),
            ),
            (json!({"emptyDir": {"sizeLimit": "1024Mi"}}), json!({"emptyDir": {"sizeLimit": "1Gi"}})),
            (json!({"tty": false, "workingDir": "", "x": 0}), json!({})),
            (json!({"tty": false}), json!({"tty": null})),
            (json!({"lifecycle": {"stopSignal": "SIGUSR1"}}), json!({})),
            (json!({"lifecycle": {"stopSignal": "SIGUSR1"}}), json!({"lifecycle": {}})),
            (
                json!({"lifecycle": {"stopSignal": "SIGUSR1", "preStop": {"exec": {"command": ["a"]}}}}),
                json!({"lifecycle": {"preStop": {"exec": {"command": ["a"]}}}}),
            ),
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
                json!({"volumeMounts": [{"mountPath": "/b", "name": "b"}, {"mountPath": "/a", "name": "a", "readOnly": false}]}),
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
            (json!({"a": 1}), json!({"a": 1, "b": 2}), "b is 2 and should not be set"),
            (json!({"a": {"b": [1]}}), json!({"a": {}}), "a.b is missing"),
            (
                json!({"volumeMounts": [{"mountPath": "/a"}]}),
                json!({"volumeMounts": [{"mountPath": "/a", "subPath": "b"}]}),
                "volumeMounts[/a].subPath is \"b\" and should not be set",
            ),
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
                json!({"lifecycle": {"stopSignal": "SIGUSR1"}}),
                json!({"lifecycle": {"stopSignal": "SIGKILL"}}),
                "lifecycle.stopSignal is \"SIGKILL\" and not \"SIGUSR1\"",
            ),
            (
                json!({"lifecycle": {"stopSignal": "SIGUSR1", "preStop": {"exec": {"command": ["a"]}}}}),
                json!({}),
                "lifecycle is missing",
            ),
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

    #[test]
    fn only_what_is_recent_may_be_unknown_to_an_api_server() {
        for (expected, found, is_recent) in [
            (json!({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}), json!({}), true),
            (json!({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}), json!({"lifecycle": {"preStop": {}}}), true),
            (json!({"lifecycle": {"preStop": {"exec": {"command": ["a"]}}}}), json!({}), false),
            (json!({"restartPolicy": "Always"}), json!({}), true),
            (json!({"restartPolicy": "Always"}), json!({"restartPolicy": "Never"}), false),
            (json!({"startupProbe": {"failureThreshold": 600}}), json!({"startupProbe": {}}), false),
            (json!({"readinessProbe": {"httpGet": {"path": "/a"}}}), json!({"readinessProbe": {"httpGet": {}}}), false),
            (
                json!({"readinessProbe": {"httpGet": {"protocol": "H2C"}}}),
                json!({"readinessProbe": {"httpGet": {}}}),
                true,
            ),
            (json!({"ports": [{"containerPort": 1, "protocol": "UDP"}]}), json!({"ports": []}), false),
            (json!({"securityContext": {"runAsGroup": 1}}), json!({"securityContext": {}}), false),
            (json!({"securityContext": {"procMount": "Unmasked"}}), json!({"securityContext": {}}), true),
            (json!({"image": "a:1"}), json!({}), false),
            (json!({"image": {"reference": "a:1"}}), json!({}), true),
            (json!({"imagePullPolicy": "Always"}), json!({}), false),
        ] {
            let difference = difference(&expected, &found).unwrap_or_else(|| panic!("{expected} is {found}"));
            assert_eq!(difference.may_be_unknown(), is_recent, "{expected}");
        }
    }
}
