//! Workloads: the objects whose controllers make pods from a template.

use serde::de::MapAccess;

use super::{ObjectMeta, PodSpec};
use crate::json::{self, Members};

/// The kinds that carry a pod template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `v1` ReplicationController.
    ReplicationController,
    /// `batch/v1` Job.
    Job,
    /// `batch/v1` CronJob.
    CronJob,
    /// `v1` PodTemplate.
    PodTemplate,
}

impl WorkloadKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::ReplicationController,
        Self::Job,
        Self::CronJob,
        Self::PodTemplate,
    ];

    /// The kind of that group and version, where it carries a pod template.
    #[must_use]
    pub fn of(group: &str, version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| version == "v1" && known.group() == group && known.as_str() == kind)
    }

    /// The API group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::DaemonSet => "apps",
            Self::ReplicationController | Self::PodTemplate => "",
            Self::Job | Self::CronJob => "batch",
        }
    }

    /// The kind's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicationController => "ReplicationController",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::PodTemplate => "PodTemplate",
        }
    }

    /// The resource's name.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::ReplicaSet => "replicasets",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
            Self::ReplicationController => "replicationcontrollers",
            Self::Job => "jobs",
            Self::CronJob => "cronjobs",
            Self::PodTemplate => "podtemplates",
        }
    }

    /// Where in the object the spec of its pods stands.
    #[must_use]
    pub const fn pod_path(self) -> &'static str {
        match self {
            Self::CronJob => "spec.jobTemplate.spec.template.spec",
            Self::PodTemplate => "template.spec",
            _ => "spec.template.spec",
        }
    }

    /// Where in the object the template stands, with a dot behind it.
    #[must_use]
    pub const fn template_path(self) -> &'static str {
        match self {
            Self::CronJob => "spec.jobTemplate.spec.template.",
            Self::PodTemplate => "template.",
            _ => "spec.template.",
        }
    }
}

/// An object of one of the [`WorkloadKind`]s.
#[derive(Debug, Default)]
pub struct Workload<'a> {
    /// `metadata`.
    pub metadata: ObjectMeta<'a>,
    spec: Option<WorkloadSpec<'a>>,
    /// PodTemplate has its template here.
    template: Option<PodTemplateSpec<'a>>,
}

impl<'a> Workload<'a> {
    /// The template of its pods, where there is one.
    #[must_use]
    pub fn template(&self, kind: WorkloadKind) -> Option<&PodTemplateSpec<'a>> {
        let spec = self.spec.as_ref();
        match kind {
            WorkloadKind::PodTemplate => self.template.as_ref(),
            WorkloadKind::CronJob => spec
                .and_then(|spec| spec.job_template.as_ref())
                .and_then(|job| job.spec.as_ref())
                .and_then(|spec| spec.template.as_ref()),
            _ => spec.and_then(|spec| spec.template.as_ref()),
        }
    }
}

impl<'de> Members<'de> for Workload<'de> {
    const EXPECTED: &'static str = "a workload";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "metadata" => self.metadata = json::optional_object(map)?.unwrap_or_default(),
            "spec" => self.spec = json::optional_object(map)?,
            "template" => self.template = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct WorkloadSpec<'a> {
    template: Option<PodTemplateSpec<'a>>,
    job_template: Option<Box<JobTemplateSpec<'a>>>,
}

impl<'de> Members<'de> for WorkloadSpec<'de> {
    const EXPECTED: &'static str = "a workload's spec";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "template" => self.template = json::optional_object(map)?,
            "jobTemplate" => self.job_template = json::optional_object(map)?.map(Box::new),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct JobTemplateSpec<'a> {
    spec: Option<WorkloadSpec<'a>>,
}

impl<'de> Members<'de> for JobTemplateSpec<'de> {
    const EXPECTED: &'static str = "a JobTemplateSpec";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "spec" => self.spec = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.PodTemplateSpec`.
#[derive(Debug, Default)]
pub struct PodTemplateSpec<'a> {
    /// `metadata`.
    pub metadata: ObjectMeta<'a>,
    /// `spec`, the pod that it asks for.
    pub spec: Option<PodSpec<'a>>,
}

impl<'de> Members<'de> for PodTemplateSpec<'de> {
    const EXPECTED: &'static str = "a PodTemplateSpec";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "metadata" => self.metadata = json::optional_object(map)?.unwrap_or_default(),
            "spec" => self.spec = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
