//! What a container or volume may have that the configuration does not say.
//!
//! What decides what the container runs is the configuration's alone: a `command`, a probe or a
//! `sizeLimit` that it lacks makes another container or volume. There may be, besides:
//!
//! - What the API server fills in (`k8s.io/kubernetes/pkg/apis/core/v1`, `SetDefaults_*` and
//!   `zz_generated.defaults.go`), with that value; `resizePolicy` with `NotRequired`, which some
//!   versions add.
//! - What its admission plugins add: limits and requests (`LimitRanger`), the mount of the service
//!   account's token (`ServiceAccount`), `imagePullPolicy: Always` (`AlwaysPullImages`).
//! - What other webhooks add to every container: variables of `env` that nothing in the sidecar
//!   refers to, mounts that hide none of its own, and in `securityContext` what takes rights away or
//!   names a user; a profile `Unconfined` gives rights.
//! - Zeroes and empty objects, which say no more than nothing.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::difference::{Difference, Field, amount, is_zero, text};
use super::mounts::Mounts;

/// Where the ServiceAccount plugin mounts the token
/// (`k8s.io/kubernetes/plugin/pkg/admission/serviceaccount.DefaultAPITokenMountPath`).
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Whether a member that the configuration lacks may be there.
pub(super) fn check(field: Field<'_>, found: &Value) -> Result<(), Difference> {
    let is_default = field.default_is(found);
    match (field.parent, field.key, found) {
        _ if is_default == Some(true) => Ok(()),
        ("resources", "limits" | "requests", _) | ("limits" | "requests", ..) | (_, _, Value::Null) => Ok(()),
        ("securityContext" | "capabilities", ..) if takes_rights(field, found) => Ok(()),
        (_, _, Value::Object(members)) => members.iter().try_for_each(|(key, value)| {
            check(field.below(key, members), value).map_err(|difference| difference.below(key))
        }),
        (_, _, Value::Array(elements)) => match field.key {
            "env" | "volumeMounts" | "resizePolicy" => elements.iter().try_for_each(|added| element(field, added)),
            _ if elements.is_empty() => Ok(()),
            _ => Err(field.added(found)),
        },
        _ if is_zero(found) && !field.is_strict && !(is_default == Some(false) && field.is_pointer()) => Ok(()),
        _ => Err(field.added(found)),
    }
}

/// Whether an element may be in a list whose elements have keys, and that has none of that key.
pub(super) fn element(field: Field<'_>, added: &Value) -> Result<(), Difference> {
    let may_be = match field.key {
        "env" => !field.whole.refers(&text(&added["name"])),
        "volumeMounts" => !field.whole.hides(&text(&added["mountPath"])),
        "resizePolicy" => added["restartPolicy"] == "NotRequired",
        _ => false,
    };
    let key = field.element_key().map(|key| key(added)).unwrap_or_default();
    if may_be { Ok(()) } else { Err(field.added(added).below(&format!("[{key}]"))) }
}

/// Whether the value of a `securityContext` names a user or takes rights away.
fn takes_rights(field: Field<'_>, found: &Value) -> bool {
    match (field.parent, field.key) {
        ("securityContext", "runAsUser" | "runAsGroup" | "seLinuxOptions") | ("capabilities", "drop") => true,
        ("securityContext", "seccompProfile" | "appArmorProfile") => found["type"] != "Unconfined",
        ("securityContext", "readOnlyRootFilesystem" | "runAsNonRoot") => *found == true,
        ("securityContext", "allowPrivilegeEscalation" | "privileged") => *found == false,
        ("securityContext", "procMount") => found == "Default",
        _ => false,
    }
}

/// The container or volume that is expected, and what is asked of it for each addition.
#[derive(Debug)]
pub(super) struct Expected<'e> {
    value: &'e Value,
    variables: OnceCell<HashSet<String>>,
    mounts: OnceCell<Mounts>,
}

impl<'e> Expected<'e> {
    pub(super) const fn new(value: &'e Value) -> Self {
        Self { value, variables: OnceCell::new(), mounts: OnceCell::new() }
    }

    /// Whether it refers to a variable as `$(NAME)`.
    fn refers(&self, name: &str) -> bool {
        let variables = || {
            let mut names = HashSet::new();
            gather_variables(self.value, &mut names);
            names
        };
        self.variables.get_or_init(variables).contains(name)
    }

    /// Whether a mount would lie over one of its own, or over the program that it runs.
    fn hides(&self, path: &str) -> bool {
        path != TOKEN && self.mounts.get_or_init(|| Mounts::of(self.value)).are_hidden_by(path)
    }
}

/// The names between `$(` and the next `)`, as the kubelet reads them
/// (`k8s.io/kubernetes/third_party/forked/golang/expansion`).
fn gather_variables(value: &Value, names: &mut HashSet<String>) {
    match value {
        Value::String(text) => {
            let beginnings = text.match_indices("$(").map(|(at, beginning)| &text[at + beginning.len()..]);
            names.extend(beginnings.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
        Value::Array(elements) => elements.iter().for_each(|element| gather_variables(element, names)),
        Value::Object(members) => members.values().for_each(|member| gather_variables(member, names)),
        _ => {}
    }
}

impl Field<'_> {
    /// Whether the value is what the API server fills in here; `None` where it fills in nothing.
    pub(super) fn default_is(&self, value: &Value) -> Option<bool> {
        let default = match (self.parent, self.key) {
            (_, "imagePullPolicy") | ("image", "pullPolicy") => {
                return Some(value == "Always" || value == "IfNotPresent");
            }
            ("ports", "hostPort") => {
                return Some(self.siblings.is_some_and(|port| port.get("containerPort") == Some(value)));
            }
            ("resourceFieldRef", "divisor") => return Some(amount(value) == Some(0)),
            (_, "timeoutSeconds" | "successThreshold") => 1,
            (_, "failureThreshold") => 3,
            (_, "periodSeconds") => 10,
            ("serviceAccountToken", "expirationSeconds") => 3_600,
            ("configMap" | "downwardAPI" | "projected" | "secret", "defaultMode") => 0o644,
            _ => return self.default_text().map(|default| value == default),
        };
        Some(*value == default)
    }

    fn default_text(&self) -> Option<&'static str> {
        Some(match (self.parent, self.key) {
            (_, "terminationMessagePath") => "/dev/termination-log",
            (_, "terminationMessagePolicy") => "File",
            ("ports", "protocol") => "TCP",
            ("httpGet", "path") => "/",
            ("httpGet", "protocol") => "HTTP1",
            ("httpGet", "scheme") => "HTTP",
            ("fieldRef", "apiVersion") => "v1",
            ("azureDisk", "cachingMode") => "ReadWrite",
            ("azureDisk", "fsType") => "ext4",
            ("azureDisk", "kind") => "Shared",
            ("iscsi", "iscsiInterface") => "default",
            ("rbd", "keyring") => "/etc/ceph/keyring",
            ("rbd", "pool") => "rbd",
            ("rbd", "user") => "admin",
            ("scaleIO", "fsType") => "xfs",
            ("scaleIO", "storageMode") => "ThinProvisioned",
            ("spec", "volumeMode") => "Filesystem",
            _ => return None,
        })
    }

    /// Whether a zero is a value of its own where the API server would fill in another.
    pub(super) fn is_pointer(&self) -> bool {
        matches!(self.key, "defaultMode" | "expirationSeconds")
    }

    /// The members of an object that the configuration does not have.
    pub(super) fn check_others(
        self,
        expected: &Map<String, Value>,
        found: &Map<String, Value>,
    ) -> Result<(), Difference> {
        let others = found.iter().filter(|(key, _)| !expected.contains_key(*key));
        others.into_iter().try_for_each(|(key, value)| {
            check(self.below(key, found), value).map_err(|difference| difference.below(key))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::difference::difference;
    use super::*;
    use serde_json::json;

    /// A sidecar as a configuration has it, and with more.
    #[expect(clippy::needless_pass_by_value, reason = "`json!` in a call reads better without a borrow")]
    fn said_of(more: Value) -> String {
        let sidecar = json!({
            "name": "a", "command": ["/bin/agent", "$(LEVEL)"], "env": [{"name": "A", "value": "1"}],
            "volumeMounts": [{"name": "a", "mountPath": "/etc/agent"}], "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}}, "readinessProbe": {"httpGet": {"port": 80}},
            "securityContext": {"capabilities": {"drop": ["ALL"]}},
        });
        let mut found = sidecar.clone();
        merge(&mut found, &more);
        difference(&sidecar, &found).map(|difference| difference.to_string()).unwrap_or_default()
    }

    fn merge(into: &mut Value, more: &Value) {
        match (into, more) {
            (Value::Object(into), Value::Object(more)) => {
                for (key, value) in more {
                    merge(into.entry(key.as_str()).or_insert(Value::Null), value);
                }
            }
            (Value::Array(into), Value::Array(more)) if more.iter().all(Value::is_object) => {
                into.extend(more.iter().cloned());
            }
            (into, more) => *into = more.clone(),
        }
    }

    #[test]
    fn what_the_api_server_and_other_webhooks_add_is_no_difference() {
        for more in [
            json!({"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log"}),
            json!({"terminationMessagePolicy": "File", "tty": false, "workingDir": "", "lifecycle": {}, "args": []}),
            json!({"resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}}}),
            json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}),
            json!({"readinessProbe": {
                "httpGet": {"path": "/", "scheme": "HTTP", "protocol": "HTTP1"}, "timeoutSeconds": 1, "periodSeconds": 10,
                "successThreshold": 1, "failureThreshold": 3,
            }}),
            json!({"volumeMounts": [{"name": "kube-api-access-x", "mountPath": TOKEN, "readOnly": true}]}),
            json!({"volumeMounts": [{"name": "b", "mountPath": "/var/run/datadog"}, {"name": "b", "mountPath": "/etc"}]}),
            json!({"env": [{"name": "B", "value": "2"}, {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]}),
            json!({"securityContext": {
                "readOnlyRootFilesystem": true, "runAsUser": 1000, "runAsNonRoot": true, "privileged": false,
                "seccompProfile": {"type": "RuntimeDefault"}, "capabilities": {"add": []},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": "a"},
            }}),
        ] {
            assert_eq!(said_of(more.clone()), "", "{more}");
        }
    }

    #[test]
    fn what_makes_it_run_something_else_is_a_difference() {
        for (more, said) in [
            (json!({"args": ["true"]}), "args should not be set"),
            (json!({"workingDir": "/tmp"}), "workingDir is \"/tmp\" and should not be set"),
            (json!({"tty": true}), "tty is true and should not be set"),
            (json!({"restartPolicy": "Never"}), "restartPolicy is \"Never\" and should not be set"),
            (
                json!({"lifecycle": {"postStart": {"exec": {"command": ["kill"]}}}}),
                "lifecycle.postStart.exec.command should not be set",
            ),
            (
                json!({"livenessProbe": {"tcpSocket": {"port": 1}}}),
                "livenessProbe.tcpSocket.port is 1 and should not be set",
            ),
            (
                json!({"readinessProbe": {"failureThreshold": 4}}),
                "readinessProbe.failureThreshold is 4 and should not be set",
            ),
            (
                json!({"terminationMessagePath": "/bin/agent"}),
                "terminationMessagePath is \"/bin/agent\" and should not be set",
            ),
            (json!({"imagePullPolicy": "Never"}), "imagePullPolicy is \"Never\" and should not be set"),
            (json!({"envFrom": [{"configMapRef": {"name": "a"}}]}), "envFrom should not be set"),
            (json!({"env": [{"name": "LEVEL", "value": "off"}]}), "env[LEVEL] should not be set"),
            (
                json!({"volumeMounts": [{"name": "b", "mountPath": "/etc/agent/./conf.d/"}]}),
                "volumeMounts[/etc/agent/./conf.d/] should not be set",
            ),
            (
                json!({"volumeMounts": [{"name": "b", "mountPath": "/var/../bin"}]}),
                "volumeMounts[/var/../bin] should not be set",
            ),
            (json!({"volumeDevices": [{"name": "b", "devicePath": "/dev/b"}]}), "volumeDevices should not be set"),
            (json!({"ports": [{"containerPort": 81}]}), "ports[81/TCP] should not be set"),
            (
                json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}),
                "resizePolicy[cpu] should not be set",
            ),
            (json!({"resources": {"claims": [{"name": "a"}]}}), "resources.claims should not be set"),
            (
                json!({"securityContext": {"runAsNonRoot": false}}),
                "securityContext.runAsNonRoot is false and should not be set",
            ),
            (
                json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
                "securityContext.seccompProfile.type is \"Unconfined\" and should not be set",
            ),
            (
                json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
                "securityContext.appArmorProfile.type is \"Unconfined\" and should not be set",
            ),
            (
                json!({"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}),
                "securityContext.capabilities.add should not be set",
            ),
        ] {
            assert_eq!(said_of(more), said);
        }
    }

    #[test]
    fn a_reference_ends_at_the_next_parenthesis() {
        let sidecar = json!({"args": ["$(A)-$(B", "$(C$(D)", ")$(E) F)"], "env": [{"name": "G", "value": "$$(H)"}]});
        let expected = Expected::new(&sidecar);
        for (name, is_referred_to) in [
            ("A", true),
            ("B", false),
            ("C", false),
            ("C$(D", true),
            ("D", true),
            ("E", true),
            ("F", false),
            ("G", false),
            // `$$(H)` stands for the text `$(H)`: what is referred to is not taken too narrowly.
            ("H", true),
        ] {
            assert_eq!(expected.refers(name), is_referred_to, "{name}");
        }
    }

    #[test]
    fn a_volume_of_another_size_or_medium_is_a_difference() {
        let said = |expected, found| difference(&expected, &found).map(|difference| difference.to_string());
        for (expected, found) in [
            (json!({"emptyDir": {}}), json!({"emptyDir": {"medium": "", "sizeLimit": null}})),
            (json!({"name": "a"}), json!({"name": "a", "emptyDir": {}})),
            (json!({"hostPath": {"path": "/a"}}), json!({"hostPath": {"path": "/a", "type": ""}})),
            (json!({"secret": {"secretName": "a"}}), json!({"secret": {"secretName": "a", "defaultMode": 420}})),
            (
                json!({"projected": {"sources": [{"serviceAccountToken": {"path": "a"}}]}}),
                json!({"projected": {
                    "defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": 3600}}],
                }}),
            ),
        ] {
            assert_eq!(said(expected, found), None);
        }
        for (expected, found, line) in [
            (
                json!({"emptyDir": {}}),
                json!({"emptyDir": {"sizeLimit": "1"}}),
                "emptyDir.sizeLimit is \"1\" and should not be set",
            ),
            (
                json!({"emptyDir": {}}),
                json!({"emptyDir": {"medium": "Memory"}}),
                "emptyDir.medium is \"Memory\" and should not be set",
            ),
            (
                json!({"secret": {"secretName": "a"}}),
                json!({"secret": {"secretName": "a", "defaultMode": 0}}),
                "secret.defaultMode is 0 and should not be set",
            ),
            (
                json!({"secret": {"secretName": "a"}}),
                json!({"secret": {"secretName": "a", "optional": true}}),
                "secret.optional is true and should not be set",
            ),
        ] {
            assert_eq!(said(expected, found).as_deref(), Some(line));
        }
    }
}
