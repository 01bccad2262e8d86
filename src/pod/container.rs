//! A container, as far as policies read it.

use std::fmt;

use serde::de::MapAccess;

use super::ResourceRequirements;
use crate::json::{self, Members, Text};

/// The one spelling of the capability that the API server itself refuses beside
/// `allowPrivilegeEscalation: false`.
const CAP_SYS_ADMIN: &str = "CAP_SYS_ADMIN";

/// The Windows account that the kubelet takes for root.
const CONTAINER_ADMINISTRATOR: &str = "ContainerAdministrator";

/// The three lists of containers that a pod has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContainerList {
    /// `spec.containers`.
    Containers,
    /// `spec.initContainers`.
    InitContainers,
    /// `spec.ephemeralContainers`.
    EphemeralContainers,
}

impl ContainerList {
    /// All three, in the order in which they are judged.
    pub const ALL: [Self; 3] = [Self::Containers, Self::InitContainers, Self::EphemeralContainers];

    /// The member of `spec` that holds the list.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::InitContainers => "initContainers",
            Self::EphemeralContainers => "ephemeralContainers",
        }
    }
}

/// How a message calls a container of the list.
impl fmt::Display for ContainerList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Containers => "container",
            Self::InitContainers => "init container",
            Self::EphemeralContainers => "ephemeral container",
        })
    }
}

/// A `v1.Container` or `v1.EphemeralContainer`.
#[derive(Debug, Clone, Default)]
pub struct Container<'a> {
    /// `name`.
    pub name: Text<'a>,
    /// `image`; empty where it is missing.
    pub image: Text<'a>,
    /// `securityContext`.
    pub security_context: Option<SecurityContext<'a>>,
    /// `resources`.
    pub resources: Option<ResourceRequirements<'a>>,
    /// `ports`.
    pub ports: Vec<ContainerPort<'a>>,
    /// `restartPolicy`.
    restart_policy: Option<Text<'a>>,
}

impl Container<'_> {
    /// The same, borrowed from nothing.
    #[must_use]
    pub fn into_owned(self) -> Container<'static> {
        Container {
            name: self.name.into_owned(),
            image: self.image.into_owned(),
            security_context: self.security_context.map(SecurityContext::into_owned),
            resources: self.resources.map(ResourceRequirements::into_owned),
            ports: self.ports.into_iter().map(ContainerPort::into_owned).collect(),
            restart_policy: self.restart_policy.map(Text::into_owned),
        }
    }

    /// Whether an init container is a native sidecar (KEP-753).
    #[must_use]
    pub fn restarts_always(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// `securityContext.privileged`.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        self.security_context.as_ref().is_some_and(|context| context.privileged)
    }

    /// Whether `securityContext.capabilities.add` has `CAP_SYS_ADMIN`, spelt so.
    #[must_use]
    pub fn adds_cap_sys_admin(&self) -> bool {
        self.security_context.as_ref().is_some_and(|context| context.adds_cap_sys_admin)
    }
}

impl<'de> Members<'de> for Container<'de> {
    const EXPECTED: &'static str = "a Container";
    // Many times what a node can run, and a container is the largest of what lists hold.
    const LISTED_MAX: usize = 1_000;

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "name" => self.name = map.next_value::<Option<_>>()?.unwrap_or_default(),
            "image" => self.image = map.next_value::<Option<_>>()?.unwrap_or_default(),
            "securityContext" => self.security_context = json::optional_object(map)?,
            "resources" => self.resources = json::optional_object(map)?,
            "ports" => self.ports = json::object_list(map)?,
            "restartPolicy" => self.restart_policy = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.ContainerPort`.
#[derive(Debug, Clone, Default)]
pub struct ContainerPort<'a> {
    /// `containerPort`; 0 where there is none.
    pub container_port: i32,
    /// `hostPort`; 0 where there is none.
    pub host_port: i32,
    /// `hostIP`.
    host_ip: Option<Text<'a>>,
    /// `protocol`.
    protocol: Option<Text<'a>>,
}

impl ContainerPort<'_> {
    fn into_owned(self) -> ContainerPort<'static> {
        ContainerPort {
            host_ip: self.host_ip.map(Text::into_owned),
            protocol: self.protocol.map(Text::into_owned),
            ..self
        }
    }

    /// The port of the node that it takes, if any: where the pod is in the node's network, the API
    /// server makes the `containerPort` the `hostPort` too (`defaultHostNetworkPorts`).
    #[must_use]
    pub fn on_node(&self, is_host_network: bool) -> Option<NodePort<'_>> {
        let number = if self.host_port == 0 && is_host_network { self.container_port } else { self.host_port };
        let protocol = self.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let ip = self.host_ip.as_deref().unwrap_or_default();
        (number != 0).then_some(NodePort { number, protocol, ip })
    }
}

/// A port of the node; no two containers of `spec.containers` may take the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePort<'p> {
    /// From 1 to 65535 where the API server takes it.
    pub number: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: &'p str,
    /// The address of the node; empty for all.
    pub ip: &'p str,
}

impl<'de> Members<'de> for ContainerPort<'de> {
    const EXPECTED: &'static str = "a ContainerPort";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "containerPort" => self.container_port = map.next_value::<Option<_>>()?.unwrap_or(0),
            "hostPort" => self.host_port = map.next_value::<Option<_>>()?.unwrap_or(0),
            "hostIP" => self.host_ip = map.next_value()?,
            "protocol" => self.protocol = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.SecurityContext`, or what a `v1.PodSecurityContext` shares with it.
#[derive(Debug, Clone, Default)]
pub struct SecurityContext<'a> {
    /// `privileged`.
    pub privileged: bool,
    /// `allowPrivilegeEscalation`.
    pub allow_privilege_escalation: Option<bool>,
    /// `runAsNonRoot`.
    pub run_as_non_root: Option<bool>,
    /// `runAsUser`.
    pub run_as_user: Option<i64>,
    /// `windowsOptions`.
    pub windows_options: Option<WindowsOptions<'a>>,
    adds_cap_sys_admin: bool,
}

impl SecurityContext<'_> {
    fn into_owned(self) -> SecurityContext<'static> {
        SecurityContext { windows_options: self.windows_options.map(WindowsOptions::into_owned), ..self }
    }
}

impl<'de> Members<'de> for SecurityContext<'de> {
    const EXPECTED: &'static str = "a SecurityContext";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "privileged" => self.privileged = map.next_value::<Option<_>>()?.unwrap_or(false),
            "allowPrivilegeEscalation" => self.allow_privilege_escalation = map.next_value()?,
            "runAsNonRoot" => self.run_as_non_root = map.next_value()?,
            "runAsUser" => self.run_as_user = map.next_value()?,
            "windowsOptions" => self.windows_options = json::optional_object(map)?,
            "capabilities" => {
                let capabilities = json::optional_object::<Capabilities<'de>, _>(map)?.unwrap_or_default();
                self.adds_cap_sys_admin = capabilities.add.iter().any(|added| &**added == CAP_SYS_ADMIN);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Default)]
struct Capabilities<'a> {
    add: Vec<Text<'a>>,
}

impl<'de> Members<'de> for Capabilities<'de> {
    const EXPECTED: &'static str = "a Capabilities object";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "add" => self.add = json::text_list(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.WindowsSecurityContextOptions`.
#[derive(Debug, Clone, Default)]
pub struct WindowsOptions<'a> {
    /// `hostProcess`.
    pub host_process: bool,
    /// `runAsUserName`.
    pub run_as_user_name: Option<Text<'a>>,
}

impl WindowsOptions<'_> {
    fn into_owned(self) -> WindowsOptions<'static> {
        WindowsOptions { run_as_user_name: self.run_as_user_name.map(Text::into_owned), ..self }
    }

    /// Whether `runAsUserName` is the account that the kubelet takes for root, in any case.
    #[must_use]
    pub fn runs_as_administrator(&self) -> Option<bool> {
        self.run_as_user_name.as_deref().map(|name| name.eq_ignore_ascii_case(CONTAINER_ADMINISTRATOR))
    }
}

impl<'de> Members<'de> for WindowsOptions<'de> {
    const EXPECTED: &'static str = "a WindowsSecurityContextOptions";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "hostProcess" => self.host_process = map.next_value::<Option<_>>()?.unwrap_or(false),
            "runAsUserName" => self.run_as_user_name = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
