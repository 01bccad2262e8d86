//! `securityContext`: no container gains privileges or runs as root.
//!
//! Sets `allowPrivilegeEscalation: false` and `runAsNonRoot: true` on every container of all
//! three lists, over whatever was there. What the API server or the kubelet would refuse is not
//! set: no `allowPrivilegeEscalation` on a Windows pod, on a privileged container or on one that
//! adds `CAP_SYS_ADMIN`, no `runAsNonRoot` on a container whose effective user is root. Such
//! containers are for the validations `privileged` and `rootUser` to judge.

use serde::Deserialize;

use super::{ContainerExclude, PolicyName, null_is_default, root_user, truth};
use crate::patch::{Patch, Pointer, Value, add_members};
use crate::pod::{Container, ContainerList, PodSpec};

/// What is set on each container.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SecurityContext {
    /// `false`, the default, sets it on each container; `true` leaves containers as they are.
    #[serde(deserialize_with = "truth::or_false")]
    #[schemars(with = "Option<bool>")]
    pub allow_privilege_escalation: bool,
    /// `true`, the default, sets it on each container; `false` leaves containers as they are.
    #[serde(deserialize_with = "truth::or_true")]
    #[schemars(with = "Option<bool>")]
    pub run_as_non_root: bool,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
}

impl Default for SecurityContext {
    fn default() -> Self {
        Self { allow_privilege_escalation: false, run_as_non_root: true, exclude: ContainerExclude::default() }
    }
}

impl SecurityContext {
    /// The mutation's key in the configuration file.
    pub(super) const NAME: PolicyName = PolicyName("securityContext");

    /// Whether `allowPrivilegeEscalation: false` is due on a container.
    pub(super) fn forbids_escalation(&self, pod: &PodSpec<'_>, container: &Container<'_>) -> bool {
        !self.allow_privilege_escalation
            && !pod.is_windows()
            && !container.is_privileged()
            && !container.adds_cap_sys_admin()
    }

    /// Whether `runAsNonRoot: true` is due on a container.
    pub(super) fn requires_non_root(&self, pod: &PodSpec<'_>, container: &Container<'_>) -> bool {
        self.run_as_non_root && !root_user::runs_as_root(pod, container)
    }

    /// Whether a container lacks `allowPrivilegeEscalation: false`, though it is due.
    pub(super) fn lacks_no_escalation(&self, pod: &PodSpec<'_>, container: &Container<'_>) -> bool {
        let set = container.security_context.as_ref().and_then(|context| context.allow_privilege_escalation);
        set != Some(false) && self.forbids_escalation(pod, container)
    }

    /// Whether a container lacks `runAsNonRoot: true`, though it is due.
    pub(super) fn lacks_non_root(&self, pod: &PodSpec<'_>, container: &Container<'_>) -> bool {
        let set = container.security_context.as_ref().and_then(|context| context.run_as_non_root);
        set != Some(true) && self.requires_non_root(pod, container)
    }

    /// Adds what a container lacks to the patch.
    pub(super) fn patch(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        index: usize,
        container: &Container<'_>,
        patch: &mut Patch,
    ) {
        let mut members = Vec::new();
        if self.lacks_no_escalation(pod, container) {
            members.push(("allowPrivilegeEscalation", Value::Bool(false)));
        }
        if self.lacks_non_root(pod, container) {
            members.push(("runAsNonRoot", Value::Bool(true)));
        }
        if !members.is_empty() {
            let path = Pointer::container(list, index).member("securityContext");
            add_members(patch, &path, container.security_context.is_some(), members);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::patched;
    use super::SecurityContext;
    use serde_json::json;

    fn hardened(spec: serde_json::Value) -> serde_json::Value {
        let mut policies = super::super::Policies::default();
        policies.mutations.resources = super::super::Resources::off();
        patched(&policies, spec)
    }

    #[test]
    fn sets_both_over_whatever_was_there() {
        for context in [
            json!(null),
            json!({}),
            json!({"allowPrivilegeEscalation": true, "runAsNonRoot": false}),
            json!({"allowPrivilegeEscalation": null}),
        ] {
            let spec = hardened(json!({"containers": [{"name": "a", "image": "a:1", "securityContext": context}]}));
            assert_eq!(
                spec["containers"][0]["securityContext"],
                json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true})
            );
        }
    }

    #[test]
    fn reaches_all_three_lists_and_keeps_the_rest() {
        let container = || json!([{"name": "a", "securityContext": {"procMount": "Default"}}]);
        let spec = hardened(
            json!({"containers": container(), "initContainers": container(), "ephemeralContainers": container()}),
        );
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            assert_eq!(
                spec[list][0]["securityContext"],
                json!({"procMount": "Default", "allowPrivilegeEscalation": false, "runAsNonRoot": true})
            );
        }
    }

    #[test]
    fn never_makes_a_pod_that_is_refused_elsewhere() {
        let context = |container: serde_json::Value, more: serde_json::Value| {
            let mut spec = json!({"containers": [{"name": "a", "securityContext": container}]});
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            hardened(spec)["containers"][0]["securityContext"].clone()
        };
        assert_eq!(context(json!({}), json!({"os": {"name": "windows"}})), json!({"runAsNonRoot": true}));
        assert_eq!(context(json!({"privileged": true}), json!({})), json!({"privileged": true, "runAsNonRoot": true}));
        assert_eq!(
            context(json!({"capabilities": {"add": ["CAP_SYS_ADMIN"]}}), json!({})),
            json!({"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "runAsNonRoot": true})
        );
        assert_eq!(
            context(json!({"capabilities": {"add": ["SYS_ADMIN"]}}), json!({})),
            json!({"capabilities": {"add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": false, "runAsNonRoot": true})
        );
        assert_eq!(
            context(json!({"runAsUser": 0}), json!({})),
            json!({"runAsUser": 0, "allowPrivilegeEscalation": false})
        );
        assert_eq!(
            context(json!(null), json!({"securityContext": {"runAsUser": 0}})),
            json!({"allowPrivilegeEscalation": false})
        );
    }

    #[test]
    fn either_can_be_left_to_the_authors() {
        let mut policies = super::super::Policies::default();
        policies.mutations.security_context =
            SecurityContext { allow_privilege_escalation: true, run_as_non_root: false, ..SecurityContext::default() };
        policies.mutations.resources = super::super::Resources::off();
        let spec = json!({"containers": [{"name": "a", "image": "a:1"}]});
        assert_eq!(patched(&policies, spec.clone()), spec);
    }
}
