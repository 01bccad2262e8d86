//! A pod, as far as policies read it, borrowed from the review's bytes.
//!
//! Every type here names the Kubernetes API field that it reads. Members that are `null` count
//! as missing, as they do for the API server; what podgate does not read is skipped unseen.

mod container;
mod image_reference;
mod quantity;
mod resources;
mod spec_text;
mod volume;
mod workload;

use serde::de::MapAccess;

use crate::json::{self, Members, Skipped, Text, TextMap};

pub use container::{Container, ContainerList, ContainerPort, NodePort, SecurityContext, WindowsOptions};
pub use image_reference::{ImageReference, InvalidPrefix, InvalidReference, RepositoryPrefix};
pub use quantity::{NotAQuantity, Quantity};
pub(crate) use resources::HUGE_PAGES;
pub use resources::{Amount, ResourceList, ResourceName, ResourceRequirements};
pub use spec_text::{SpecText, WrittenSpec};
pub use volume::{HostPathVolume, ImageVolume, Volume};
pub use workload::{PodTemplateSpec, Workload, WorkloadKind};

/// The annotation by which the kubelet marks the API's copy of a static pod
/// (`k8s.io/api/core/v1.MirrorPodAnnotationKey`).
const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// `terminationGracePeriodSeconds` where it is not set, in seconds
/// (`k8s.io/api/core/v1.DefaultTerminationGracePeriodSeconds`).
const GRACE_PERIOD: i64 = 30;

/// A `v1.Pod`.
#[derive(Debug, Default)]
pub struct Pod<'a> {
    /// `metadata`.
    pub metadata: ObjectMeta<'a>,
    /// `spec`.
    pub spec: Option<PodSpec<'a>>,
}

impl<'de> Members<'de> for Pod<'de> {
    const EXPECTED: &'static str = "a Pod";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "metadata" => self.metadata = json::optional_object(map)?.unwrap_or_default(),
            "spec" => self.spec = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `metadata` (`metav1.ObjectMeta`).
#[derive(Debug, Default)]
pub struct ObjectMeta<'a> {
    /// `name`.
    pub name: Option<Text<'a>>,
    /// `generateName`, of which the API server makes a name after the mutating webhooks.
    pub generate_name: Option<Text<'a>>,
    /// `labels`, which the pod's author writes.
    pub labels: TextMap<'a>,
    /// Whether the annotation `kubernetes.io/config.mirror` is there.
    pub is_mirror: bool,
}

impl<'de> Members<'de> for ObjectMeta<'de> {
    const EXPECTED: &'static str = "an ObjectMeta";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "name" => self.name = map.next_value()?,
            "generateName" => self.generate_name = map.next_value()?,
            "labels" => self.labels = map.next_value::<Option<_>>()?.unwrap_or_default(),
            "annotations" => {
                let annotations = json::optional_object::<Annotations, _>(map)?.unwrap_or_default();
                self.is_mirror = annotations.mirror;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Default)]
struct Annotations {
    mirror: bool,
}

impl<'de> Members<'de> for Annotations {
    const EXPECTED: &'static str = "a map of annotations";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        if key != MIRROR_POD_ANNOTATION {
            return Ok(false);
        }
        map.next_value::<Skipped>()?;
        self.mirror = true;
        Ok(true)
    }
}

/// `spec` of a pod or of a pod template.
#[derive(Debug, Clone, Default)]
pub struct PodSpec<'a> {
    /// `containers`.
    pub containers: Vec<Container<'a>>,
    /// `initContainers`, native sidecars among them.
    pub init_containers: Vec<Container<'a>>,
    /// `ephemeralContainers`.
    pub ephemeral_containers: Vec<Container<'a>>,
    /// `volumes`.
    pub volumes: Vec<Volume<'a>>,
    /// `securityContext`, of which containers inherit what they do not set.
    pub security_context: Option<SecurityContext<'a>>,
    /// `resources`, for the pod as a whole (KEP-2837).
    pub resources: Option<ResourceRequirements<'a>>,
    /// `hostNetwork`.
    pub host_network: bool,
    /// `hostPID`.
    pub host_pid: bool,
    /// `hostIPC`.
    pub host_ipc: bool,
    /// `hostUsers`.
    pub host_users: Option<bool>,
    /// `terminationGracePeriodSeconds`.
    termination_grace_period_seconds: Option<i64>,
    /// `restartPolicy`.
    restart_policy: Option<Text<'a>>,
    /// `os.name`.
    os_name: Option<Text<'a>>,
}

impl<'a> PodSpec<'a> {
    /// A pod with nothing in it, for nodes of that operating system.
    #[must_use]
    pub fn of_os(name: &'a str) -> Self {
        Self { os_name: Some(name.into()), ..Self::default() }
    }

    /// Every container with its place, app containers first, then init and ephemeral ones.
    pub fn all_containers(&self) -> impl Iterator<Item = (ContainerList, usize, &Container<'a>)> {
        ContainerList::ALL
            .into_iter()
            .flat_map(|list| self.list(list).iter().enumerate().map(move |(index, container)| (list, index, container)))
    }

    /// One of the three lists of containers.
    #[must_use]
    pub fn list(&self, list: ContainerList) -> &[Container<'a>] {
        match list {
            ContainerList::Containers => &self.containers,
            ContainerList::InitContainers => &self.init_containers,
            ContainerList::EphemeralContainers => &self.ephemeral_containers,
        }
    }

    /// The same, to add to it.
    pub fn list_mut(&mut self, list: ContainerList) -> &mut Vec<Container<'a>> {
        match list {
            ContainerList::Containers => &mut self.containers,
            ContainerList::InitContainers => &mut self.init_containers,
            ContainerList::EphemeralContainers => &mut self.ephemeral_containers,
        }
    }

    /// The user that a container runs as, where the pod says so: the container's own
    /// `runAsUser`, else the pod's.
    #[must_use]
    pub fn effective_run_as_user(&self, container: &Container<'_>) -> Option<Effective<i64>> {
        self.effective(container, |context| context.run_as_user)
    }

    /// Whether a container runs as the Windows account that the kubelet takes for root, where
    /// the pod names an account.
    #[must_use]
    pub fn effective_administrator(&self, container: &Container<'_>) -> Option<Effective<bool>> {
        self.effective(container, |context| context.windows_options.as_ref()?.runs_as_administrator())
    }

    fn effective<T>(
        &self,
        container: &Container<'_>,
        read: impl Fn(&SecurityContext<'_>) -> Option<T>,
    ) -> Option<Effective<T>> {
        let own = container.security_context.as_ref().and_then(&read).map(Effective::OfContainer);
        own.or_else(|| self.security_context.as_ref().and_then(read).map(Effective::OfPod))
    }

    /// Whether a resource is set for the pod as a whole, of which its containers then share.
    #[must_use]
    pub fn sets_for_all(&self, name: ResourceName) -> bool {
        let resources = self.resources.as_ref();
        resources.is_some_and(|resources| resources.limit(name).is_some() || resources.request(name).is_some())
    }

    /// The same for a resource of any name that a pod can set for all: huge pages, too.
    #[must_use]
    pub fn sets_for_all_by_name(&self, name: &str) -> bool {
        self.resources.as_ref().is_some_and(|resources| resources.names(name))
    }

    /// Whether `restartPolicy` is `Never`.
    #[must_use]
    pub fn never_restarts(&self) -> bool {
        self.restart_policy.as_deref() == Some("Never")
    }

    /// `terminationGracePeriodSeconds`, as the API server defaults it.
    #[must_use]
    pub fn grace_period(&self) -> i64 {
        match self.termination_grace_period_seconds {
            None => GRACE_PERIOD,
            Some(seconds) if seconds < 0 => 1,
            Some(seconds) => seconds,
        }
    }

    /// Whether `os.name` says something.
    #[must_use]
    pub const fn names_os(&self) -> bool {
        self.os_name.is_some()
    }

    /// Whether `os.name` says windows, on which the API server refuses the Linux fields.
    #[must_use]
    pub fn is_windows(&self) -> bool {
        self.os_name.as_deref() == Some("windows")
    }
}

/// A setting in force on a container, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effective<T> {
    /// In the container's own `securityContext`.
    OfContainer(T),
    /// In the pod's `securityContext`, which the container inherits.
    OfPod(T),
}

impl<'de> Members<'de> for PodSpec<'de> {
    const EXPECTED: &'static str = "a PodSpec";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "containers" => self.containers = json::object_list(map)?,
            "initContainers" => self.init_containers = json::object_list(map)?,
            "ephemeralContainers" => self.ephemeral_containers = json::object_list(map)?,
            "volumes" => self.volumes = json::object_list(map)?,
            "securityContext" => self.security_context = json::optional_object(map)?,
            "resources" => self.resources = json::optional_object(map)?,
            "hostNetwork" => self.host_network = flag(map)?,
            "hostPID" => self.host_pid = flag(map)?,
            "hostIPC" => self.host_ipc = flag(map)?,
            "hostUsers" => self.host_users = map.next_value()?,
            "terminationGracePeriodSeconds" => self.termination_grace_period_seconds = map.next_value()?,
            "restartPolicy" => self.restart_policy = map.next_value()?,
            "os" => self.os_name = json::optional_object::<PodOs<'de>, _>(map)?.and_then(|os| os.name),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A boolean, `null` being `false`, as Go decodes it.
fn flag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<bool, A::Error> {
    Ok(map.next_value::<Option<bool>>()?.unwrap_or(false))
}

#[derive(Default)]
struct PodOs<'a> {
    name: Option<Text<'a>>,
}

impl<'de> Members<'de> for PodOs<'de> {
    const EXPECTED: &'static str = "a PodOS";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "name" => self.name = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
