//! The policies: what podgate changes in a pod, and what it does not let pass.
//!
//! Pure: no IO, no clock, no async. One file a policy, each opening with its contract. A
//! *mutation* says what it would set on a container; a *validation* looks at a pod and names what
//! it does not allow. [`Policies`] is all of them with their settings, as the configuration file
//! has them.

mod action;
mod active;
mod advice;
mod at_odds;
mod container_count;
mod context;
mod contradiction;
mod cpu;
mod exclude;
mod exclusions;
mod host_ipc;
mod host_network;
mod host_path;
mod host_pid;
mod host_ports;
mod image_tag;
mod images;
mod in_force;
mod memory;
mod message;
mod mirrors;
mod mutating;
mod namespace_quota;
mod patterns;
mod pins;
mod pod_limit;
mod positive_quantity;
mod privileged;
mod promises;
mod resources;
mod root_user;
mod rule;
mod schema;
mod security_context;
mod sidecars;
pub(crate) mod suggestion;
mod truth;
mod violation;
mod whole_number;
mod words;

use std::fmt;

use serde::Deserialize;

pub use action::{Action, Workloads};
pub use advice::Advice;
pub use container_count::ContainerCount;
pub use context::Context;
pub use contradiction::Contradiction;
pub use cpu::Cpu;
pub use exclude::{ContainerExclude, Exclude, PodExclude, Requester, RuleExclude};
pub use exclusions::{EmptyName, Exclusions, GlobWithoutRegistry, ImageExclusions, NotADate};
pub use host_ipc::HostIpc;
pub use host_network::HostNetwork;
pub use host_path::{AllowedPath, HostPath, InvalidAllowedPath};
pub use host_pid::HostPid;
pub use host_ports::HostPorts;
pub use image_tag::ImageTag;
pub use images::Images;
pub use in_force::InForce;
pub use memory::Memory;
pub use message::{InvalidMessage, Message};
pub use mutating::Mutated;
pub use namespace_quota::{NamespacePatterns, NamespaceQuota, NoNamespace, PodCount};
pub use pod_limit::{MissingMax, PodLimit};
pub use positive_quantity::PositiveQuantity;
pub use privileged::Privileged;
pub use promises::Promises;
pub use resources::Resources;
pub use root_user::RootUser;
pub use rule::Rule;
pub use security_context::SecurityContext;
pub use sidecars::{Candidate, InvalidSidecar, Prepared, SidecarFault, Sidecars};
pub use violation::{Existing, Field, Found, Judgement, Quoted, Shown, Subject, Violation};

use crate::pod::PodSpec;

/// Every policy with its settings; the default is the policy of an empty configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
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
    /// The most pods in a namespace; no quota by default.
    pub namespace_quota: Option<NamespaceQuota>,
}

/// What `/mutate` sets on pods.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mutations {
    /// `sidecars`.
    #[serde(deserialize_with = "null_is_default")]
    pub sidecars: Sidecars,
    /// `images`.
    #[serde(deserialize_with = "null_is_default")]
    pub images: Images,
    /// `securityContext`.
    #[serde(deserialize_with = "null_is_default")]
    pub security_context: SecurityContext,
    /// `resources`.
    #[serde(deserialize_with = "null_is_default")]
    pub resources: Resources,
}

impl Mutations {
    /// Whom each does not concern.
    fn excludes(&self) -> [(PolicyName, &ContainerExclude); 3] {
        [
            (Images::NAME, &self.images.exclude),
            (SecurityContext::NAME, &self.security_context.exclude),
            (Resources::NAME, &self.resources.exclude),
        ]
    }
}

/// What is not allowed in a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
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

impl Validations {
    /// What each has in common with the others.
    fn rules(&self) -> [(PolicyName, Rule<'_>); 12] {
        fn of<V: Validation>(validation: &V) -> (PolicyName, Rule<'_>) {
            (V::NAME, validation.rule())
        }
        [
            of(&self.privileged),
            of(&self.root_user),
            of(&self.image_tag),
            of(&self.host_path),
            of(&self.host_network),
            of(&self.host_pid),
            of(&self.host_ipc),
            of(&self.host_ports),
            of(&self.container_count),
            of(&self.cpu),
            of(&self.memory),
            of(&self.promises),
        ]
    }
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

    /// What is done about a violation, and in whose words.
    fn rule(&self) -> Rule<'_>;

    /// Adds what the policy does not allow in a pod; `mutations` are those that the pod has
    /// been through, or is about to go through.
    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>);
}

#[cfg(test)]
mod testing;
