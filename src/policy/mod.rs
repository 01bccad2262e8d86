//! The policies: what podgate changes in a pod, and what it does not let pass.
//!
//! Pure: no IO, no clock, no async. One file a policy, each opening with its contract. A
//! *mutation* says what it would set on a container; a *validation* looks at a pod and names what
//! it does not allow. [`Policies`] is all of them with their settings, as the configuration file
//! has them.

mod action;
mod container_count;
mod context;
mod cpu;
mod exclude;
mod host_ipc;
mod host_network;
mod host_path;
mod host_pid;
mod host_ports;
mod image_tag;
mod memory;
mod patterns;
mod pod_limit;
mod positive_quantity;
mod privileged;
mod promises;
mod resources;
mod root_user;
mod security_context;
mod violation;

use std::fmt;

use serde::Deserialize;

pub use action::{Action, Workloads};
pub use container_count::ContainerCount;
pub use context::Context;
pub use cpu::Cpu;
pub use exclude::{Exclude, Requester};
pub use host_ipc::HostIpc;
pub use host_network::HostNetwork;
pub use host_path::{AllowedPath, HostPath, InvalidAllowedPath};
pub use host_pid::HostPid;
pub use host_ports::HostPorts;
pub use image_tag::ImageTag;
pub use memory::Memory;
pub use patterns::Patterns;
pub use pod_limit::{MissingMax, PodLimit};
pub use positive_quantity::PositiveQuantity;
pub use privileged::Privileged;
pub use promises::Promises;
pub use resources::Resources;
pub use root_user::RootUser;
pub use security_context::SecurityContext;
pub use violation::{Existing, Field, Found, Judgement, Quoted, Subject, Violation};

use crate::patch::Patch;
use crate::pod::{Container, ContainerList, PodSpec};

/// Every policy with its settings; the default is the policy of an empty configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policies {
    /// What `/mutate` sets.
    #[serde(deserialize_with = "null_is_default")]
    pub mutations: Mutations,
    /// What is not allowed.
    #[serde(deserialize_with = "null_is_default")]
    pub validations: Validations,
    /// Whom no policy concerns.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: Exclude,
    /// What is done about a workload whose pods would violate a policy.
    #[serde(deserialize_with = "null_is_default")]
    pub workloads: Workloads,
}

/// What `/mutate` sets on pods.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mutations {
    /// `securityContext`.
    #[serde(deserialize_with = "null_is_default")]
    pub security_context: SecurityContext,
    /// `resources`.
    #[serde(deserialize_with = "null_is_default")]
    pub resources: Resources,
}

/// What is not allowed in a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Validations {
    /// `privileged`.
    #[serde(deserialize_with = "null_is_default")]
    pub privileged: Privileged,
    /// `rootUser`.
    #[serde(deserialize_with = "null_is_default")]
    pub root_user: RootUser,
    /// `imageTag`.
    #[serde(deserialize_with = "null_is_default")]
    pub image_tag: ImageTag,
    /// `hostPath`.
    #[serde(deserialize_with = "null_is_default")]
    pub host_path: HostPath,
    /// `hostNetwork`.
    #[serde(deserialize_with = "null_is_default")]
    pub host_network: HostNetwork,
    /// `hostPID`.
    #[serde(rename = "hostPID", deserialize_with = "null_is_default")]
    pub host_pid: HostPid,
    /// `hostIPC`.
    #[serde(rename = "hostIPC", deserialize_with = "null_is_default")]
    pub host_ipc: HostIpc,
    /// `hostPorts`.
    #[serde(deserialize_with = "null_is_default")]
    pub host_ports: HostPorts,
    /// `containerCount`.
    #[serde(deserialize_with = "null_is_default")]
    pub container_count: ContainerCount,
    /// `cpu`.
    #[serde(deserialize_with = "null_is_default")]
    pub cpu: Cpu,
    /// `memory`.
    #[serde(deserialize_with = "null_is_default")]
    pub memory: Memory,
    /// `promises`.
    #[serde(deserialize_with = "null_is_default")]
    pub promises: Promises,
}

/// A key without a value, as `mutations:` with everything below it commented out, is no key.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A policy's key in the configuration file, and its name in messages, metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyName(&'static str);

impl PolicyName {
    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

/// A policy that names what it does not allow.
pub trait Validation {
    /// The policy's key in the configuration file.
    const NAME: PolicyName;

    /// What is done about a violation.
    fn action(&self) -> Action;

    /// Adds what the policy does not allow in a pod; `mutations` are those that the pod has
    /// been through, or is about to go through.
    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>);
}

/// Which validations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// On `/mutate`, those that judge what the mutations concern.
    Early,
    /// On `/validate`, all.
    Final,
    /// On a workload's template, all but `promises`: its pods will go through `/mutate`.
    Template,
}

impl Stage {
    /// Whether the pod that is judged has yet to go through the mutations.
    const fn is_before_mutations(self) -> bool {
        matches!(self, Self::Early | Self::Template)
    }
}

impl Policies {
    /// The patch that makes a new pod safe; `None` where nothing is to be changed.
    #[must_use]
    pub fn mutate_pod(&self, pod: &PodSpec<'_>) -> Option<Patch> {
        let mut patch = Patch::default();
        self.mutations.resources.patch_pod(pod, &mut patch);
        for (list, index, container) in pod.all_containers() {
            self.mutations.security_context.patch(pod, list, index, container, &mut patch);
            self.mutations.resources.patch(pod, list, index, container, &mut patch);
        }
        patch.or_none()
    }

    /// The patch for the ephemeral containers that an update adds to a pod.
    #[must_use]
    pub fn mutate_added_ephemeral_containers(&self, pod: &PodSpec<'_>, old: &PodSpec<'_>) -> Option<Patch> {
        let list = ContainerList::EphemeralContainers;
        let known: std::collections::HashSet<&str> = old.list(list).iter().map(|container| &*container.name).collect();
        let is_added = |container: &Container<'_>| !known.contains(&*container.name);
        let mut patch = Patch::default();
        for (index, container) in pod.list(list).iter().enumerate().filter(|(_, container)| is_added(container)) {
            self.mutations.security_context.patch(pod, list, index, container, &mut patch);
        }
        patch.or_none()
    }

    /// The denials with which `/mutate` answers at once, where a patch cannot mend the pod.
    #[must_use]
    pub fn deny_early<'a>(&self, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>> {
        let mut judgements = self.judge(Stage::Early, pod, old);
        judgements.retain(|judgement| judgement.action == Action::Deny);
        judgements
    }

    /// Everything that is not allowed in a pod that is about to be stored.
    #[must_use]
    pub fn validate_pod<'a>(&self, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>> {
        self.judge(Stage::Final, pod, old)
    }

    /// Everything that will not be allowed in the pods that a template makes.
    #[must_use]
    pub fn validate_template<'a>(&self, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>> {
        if self.workloads == Workloads::Off {
            return Vec::new();
        }
        let mut judgements = self.judge(Stage::Template, pod, old);
        for judgement in &mut judgements {
            judgement.action = judgement.action.min(self.workloads.action());
        }
        judgements
    }

    fn judge<'a>(&self, stage: Stage, pod: &'a PodSpec<'a>, old: Option<&'a PodSpec<'a>>) -> Vec<Judgement<'a>> {
        let found = self.violations(stage, pod);
        if found.is_empty() {
            return Vec::new();
        }
        let before = old.map(|old| self.violations(stage, old)).unwrap_or_default();
        let existing = Existing::new(before.into_iter().map(|(violation, _)| violation));
        found
            .into_iter()
            .map(|(violation, action)| {
                let softened = if existing.has(&violation) { action.min(Action::Warn) } else { action };
                Judgement { violation, action: softened }
            })
            .collect()
    }

    fn violations<'a>(&self, stage: Stage, pod: &'a PodSpec<'a>) -> Vec<(Violation<'a>, Action)> {
        let context = Context { mutations: &self.mutations, stage };
        let mut check = Check { pod, context, found: Vec::new() };
        let validations = &self.validations;
        check.run(&validations.privileged);
        check.run(&validations.root_user);
        check.run(&validations.image_tag);
        if stage != Stage::Early {
            check.run(&validations.host_path);
            check.run(&validations.host_network);
            check.run(&validations.host_pid);
            check.run(&validations.host_ipc);
            check.run(&validations.host_ports);
            check.run(&validations.container_count);
            check.run(&validations.cpu);
            check.run(&validations.memory);
        }
        if stage == Stage::Final {
            check.run(&validations.promises);
        }
        check.found
    }
}

struct Check<'a, 'p> {
    pod: &'a PodSpec<'a>,
    context: Context<'p>,
    found: Vec<(Violation<'a>, Action)>,
}

impl Check<'_, '_> {
    fn run<V: Validation>(&mut self, validation: &V) {
        let action = validation.action();
        if action == Action::Off {
            return;
        }
        let mut violations = Vec::new();
        validation.check(self.pod, &self.context, &mut violations);
        self.found.extend(violations.into_iter().map(|violation| (violation, action)));
    }
}

#[cfg(test)]
mod testing;
