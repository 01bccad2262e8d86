//! `privileged`: no container with the node's own powers.
//!
//! Denies `securityContext.privileged: true` in any container list, and Windows HostProcess
//! (`windowsOptions.hostProcess: true`), of a container or of the pod as a whole.

use std::borrow::Cow;

use serde::Deserialize;

use super::{
    Action, ContainerExclude, Context, Field, Found, Message, PolicyName, Rule, RuleExclude, Subject, Validation,
    Violation, null_is_default,
};
use crate::pod::{PodSpec, SecurityContext};

const PRIVILEGED: &str = "securityContext.privileged";
const HOST_PROCESS: &str = "securityContext.windowsOptions.hostProcess";

/// The settings of `privileged`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Privileged {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
}

impl Default for Privileged {
    fn default() -> Self {
        Self { action: Action::Deny, message: None, exclude: ContainerExclude::default() }
    }
}

impl Validation for Privileged {
    const NAME: PolicyName = PolicyName("privileged");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Container(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        if is_host_process(pod.security_context.as_ref()) {
            violations.push(violation(
                Subject::Pod,
                HOST_PROCESS,
                "runs its containers as HostProcess, on the node itself: remove it or set it to false",
            ));
        }
        for (list, index, container) in pod.all_containers() {
            let subject = Subject::Container { list, index, name: &container.name };
            if container.is_privileged() {
                violations.push(violation(subject, PRIVILEGED, "is privileged: remove it or set it to false"));
            }
            if is_host_process(container.security_context.as_ref()) {
                violations.push(violation(
                    subject,
                    HOST_PROCESS,
                    "is a HostProcess container, which runs on the node itself: remove it or set it to false",
                ));
            }
        }
    }
}

/// `windowsOptions.hostProcess`.
pub(super) fn is_host_process(context: Option<&SecurityContext<'_>>) -> bool {
    context.and_then(|context| context.windows_options.as_ref()).is_some_and(|windows| windows.host_process)
}

fn violation<'a>(subject: Subject<'a>, field: &'static str, statement: &str) -> Violation<'a> {
    Violation {
        policy: Privileged::NAME,
        subject,
        field: Field::Own(field),
        found: Found::Value(Cow::Borrowed("true")),
        statement: statement.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::Privileged;
    use serde_json::json;

    #[test]
    fn denies_in_every_list() {
        let containers = json!([{"name": "a", "securityContext": {"privileged": true}}]);
        for (list, called) in [
            ("containers", "container"),
            ("initContainers", "init container"),
            ("ephemeralContainers", "ephemeral container"),
        ] {
            assert_eq!(
                lines(&Privileged::default(), json!({ list: containers })),
                [format!(
                    "privileged: {called} \"a\" (spec.{list}[0].securityContext.privileged) is privileged: \
                     remove it or set it to false"
                )]
            );
        }
    }

    #[test]
    fn denies_host_process_of_container_and_pod() {
        let context = json!({"windowsOptions": {"hostProcess": true}});
        assert_eq!(
            lines(
                &Privileged::default(),
                json!({"securityContext": context, "containers": [{"name": "a", "securityContext": context}]})
            ),
            [
                "privileged: the pod (spec.securityContext.windowsOptions.hostProcess) runs its containers as \
                 HostProcess, on the node itself: remove it or set it to false",
                "privileged: container \"a\" (spec.containers[0].securityContext.windowsOptions.hostProcess) is a \
                 HostProcess container, which runs on the node itself: remove it or set it to false",
            ]
        );
    }

    #[test]
    fn allows_false_null_and_nothing() {
        for context in [json!(null), json!({}), json!({"privileged": false}), json!({"privileged": null})] {
            let spec = json!({"containers": [{"name": "a", "securityContext": context}]});
            assert!(lines(&Privileged::default(), spec).is_empty());
        }
    }
}
