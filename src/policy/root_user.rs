//! `rootUser`: no container that the forced `securityContext` would leave unable to run.
//!
//! While `runAsNonRoot: true` is forced, denies an effective `runAsUser: 0` (the container's,
//! else the pod's) and the Windows account `ContainerAdministrator`: the kubelet would refuse to
//! start the container. While `allowPrivilegeEscalation: false` is forced, denies a capability
//! added as `CAP_SYS_ADMIN`: the API server refuses that pair, in that spelling only.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, ContainerExclude, Context, Field, Found, Message, PolicyName, Rule, RuleExclude, Subject, Validation,
    Violation, null_is_default,
};
use crate::pod::{Container, Effective, PodSpec};

const RUN_AS_USER: &str = "securityContext.runAsUser";
const RUN_AS_USER_NAME: &str = "securityContext.windowsOptions.runAsUserName";
const ADDED_CAPABILITIES: &str = "securityContext.capabilities.add";

/// The settings of `rootUser`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RootUser {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
}

impl Default for RootUser {
    fn default() -> Self {
        Self { action: Action::Deny, message: None, exclude: ContainerExclude::default() }
    }
}

/// Whether the kubelet would refuse to start a container under `runAsNonRoot: true`, as far as
/// the pod tells; the image's own user is not known here.
pub(super) fn runs_as_root(pod: &PodSpec<'_>, container: &Container<'_>) -> bool {
    root_field(pod, container).is_some()
}

/// The field that makes a container run as root, and the user that it names.
fn root_field(pod: &PodSpec<'_>, container: &Container<'_>) -> Option<(Field, &'static str)> {
    match pod.effective_run_as_user(container) {
        Some(Effective::OfContainer(0)) => return Some((Field::Own(RUN_AS_USER), "0")),
        Some(Effective::OfPod(0)) => return Some((Field::OfPod(RUN_AS_USER), "0")),
        _ => {}
    }
    match pod.effective_administrator(container) {
        Some(Effective::OfContainer(true)) => Some((Field::Own(RUN_AS_USER_NAME), "ContainerAdministrator")),
        Some(Effective::OfPod(true)) => Some((Field::OfPod(RUN_AS_USER_NAME), "ContainerAdministrator")),
        _ => None,
    }
}

impl Validation for RootUser {
    const NAME: PolicyName = PolicyName("rootUser");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Container(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        for (list, index, container) in pod.all_containers() {
            let Some(forced) = context.mutations.security_context(container) else { continue };
            let subject = Subject::Container { list, index, name: &container.name };
            let mut violate = |field, found, statement| {
                let found = Found::Value(Cow::Borrowed(found));
                violations.push(Violation { policy: Self::NAME, subject, field, found, statement });
            };
            if let Some((field, user)) = root_field(pod, container).filter(|_| forced.run_as_non_root) {
                let advice = match user {
                    "0" => "a user above 0, such as runAsUser: 1000",
                    _ => "another account, such as runAsUserName: ContainerUser",
                };
                violate(field, user, format!("runs as {user}, but containers must not run as root: name {advice}"));
            }
            if container.adds_cap_sys_admin() && !forced.allow_privilege_escalation && !pod.is_windows() {
                let statement = "adds CAP_SYS_ADMIN, which cannot stand beside the required \
                                 allowPrivilegeEscalation: false: remove the capability";
                violate(Field::Own(ADDED_CAPABILITIES), "CAP_SYS_ADMIN", statement.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::RootUser;
    use serde_json::json;

    #[test]
    fn denies_the_effective_user_root() {
        assert_eq!(
            lines(&RootUser::default(), json!({"containers": [{"name": "a", "securityContext": {"runAsUser": 0}}]})),
            [
                "rootUser: container \"a\" (spec.containers[0].securityContext.runAsUser) runs as 0, but containers must \
              not run as root: name a user above 0, such as runAsUser: 1000"
            ]
        );
        assert_eq!(
            lines(
                &RootUser::default(),
                json!({"securityContext": {"runAsUser": 0}, "initContainers": [{"name": "a"}]})
            ),
            ["rootUser: init container \"a\" (spec.securityContext.runAsUser) runs as 0, but containers must not run \
              as root: name a user above 0, such as runAsUser: 1000"]
        );
    }

    #[test]
    fn the_container_overrides_the_pod() {
        let spec = |pod: i64, container: i64| {
            json!({
                "securityContext": {"runAsUser": pod},
                "containers": [{"name": "a", "securityContext": {"runAsUser": container}}],
            })
        };
        assert!(lines(&RootUser::default(), spec(0, 1000)).is_empty());
        assert_eq!(lines(&RootUser::default(), spec(1000, 0)).len(), 1);
    }

    #[test]
    fn denies_the_windows_administrator_in_any_case() {
        let spec = |name: &str| {
            json!({
                "os": {"name": "windows"},
                "securityContext": {"windowsOptions": {"runAsUserName": name}},
                "containers": [{"name": "a"}],
            })
        };
        assert_eq!(lines(&RootUser::default(), spec("containeradministrator")).len(), 1);
        assert!(lines(&RootUser::default(), spec("ContainerUser")).is_empty());
    }

    #[test]
    fn denies_cap_sys_admin_in_the_refused_spelling_only() {
        let spec = |capability: &str| json!({"containers": [{"name": "a", "securityContext": {"capabilities": {"add": ["NET_ADMIN", capability]}}}]});
        assert_eq!(
            lines(&RootUser::default(), spec("CAP_SYS_ADMIN")),
            [
                "rootUser: container \"a\" (spec.containers[0].securityContext.capabilities.add) adds CAP_SYS_ADMIN, which \
              cannot stand beside the required allowPrivilegeEscalation: false: remove the capability"
            ]
        );
        assert!(lines(&RootUser::default(), spec("SYS_ADMIN")).is_empty());
    }
}
