//! `hostPorts`: no container behind a port of the node.
//!
//! Denies a `hostPort` above 0 in the ports of any container list. In a pod with
//! `hostNetwork: true` the API server makes each `containerPort` a `hostPort`, so that these are
//! denied too, before it did and after; the message names `hostNetwork` then. Off by default.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;

use super::{
    Action, ContainerExclude, Context, Field, Found, Message, PolicyName, Rule, RuleExclude, Subject, Validation,
    Violation, null_is_default,
};
use crate::pod::{NodePort, PodSpec};

/// The settings of `hostPorts`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostPorts {
    /// What is done about it; `off` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
}

impl Default for HostPorts {
    fn default() -> Self {
        Self { action: Action::Off, message: None, exclude: ContainerExclude::default() }
    }
}

impl Validation for HostPorts {
    const NAME: PolicyName = PolicyName("hostPorts");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Container(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        for (list, index, container) in pod.all_containers() {
            // With several protocols, a port has several entries.
            let mut of_network = HashSet::new();
            for (place, port) in container.ports.iter().enumerate() {
                let Some(NodePort { number, .. }) = port.on_node(pod.host_network) else { continue };
                let is_of_network = pod.host_network && number == port.container_port;
                if is_of_network && !of_network.insert(number) {
                    continue;
                }
                let (field, statement) = if is_of_network {
                    let statement = format!(
                        "takes port {number} of the node, for its pod is in the node's network: remove hostNetwork"
                    );
                    (Field::OfPod("hostNetwork"), statement)
                } else {
                    let statement =
                        format!("takes port {number} of the node: remove hostPort and reach the pod through a Service");
                    (Field::HostPort(place), statement)
                };
                violations.push(Violation {
                    policy: Self::NAME,
                    subject: Subject::Container { list, index, name: &container.name },
                    field,
                    found: Found::Value(Cow::Owned(number.to_string())),
                    statement,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::{Action, HostPorts};
    use serde_json::json;

    #[test]
    fn denies_host_ports_in_every_list() {
        let ports = json!([{"containerPort": 80}, {"containerPort": 443, "hostPort": 8443}]);
        for (list, called) in [
            ("containers", "container"),
            ("initContainers", "init container"),
            ("ephemeralContainers", "ephemeral container"),
        ] {
            assert_eq!(
                lines(
                    &HostPorts { action: Action::Deny, ..HostPorts::default() },
                    json!({ list: [{"name": "a", "ports": ports}] })
                ),
                [format!(
                    "hostPorts: {called} \"a\" (spec.{list}[0].ports[1].hostPort) takes port 8443 of the node: remove \
                     hostPort and reach the pod through a Service"
                )]
            );
        }
    }

    #[test]
    fn in_the_nodes_network_each_port_is_one_of_the_node() {
        let ports = json!([{"containerPort": 80}, {"containerPort": 443, "hostPort": 443}]);
        let spec = json!({"hostNetwork": true, "containers": [{"name": "a", "ports": ports}]});
        let line = |port: u16| {
            format!(
                "hostPorts: container \"a\" (spec.hostNetwork) takes port {port} of the node, for its pod is in the node's \
                 network: remove hostNetwork"
            )
        };
        let settings = HostPorts { action: Action::Deny, ..HostPorts::default() };
        assert_eq!(lines(&settings, spec), [line(80), line(443)]);
    }

    #[test]
    fn zero_and_null_are_none() {
        for ports in [json!(null), json!([]), json!([{"hostPort": 0}, {"hostPort": null}, {}])] {
            let spec = json!({"containers": [{"name": "a", "ports": ports}]});
            assert!(lines(&HostPorts { action: Action::Deny, ..HostPorts::default() }, spec).is_empty());
        }
    }
}
