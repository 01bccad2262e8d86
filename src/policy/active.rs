//! The mutations that are on for one request, and for each container.

use std::borrow::Cow;

use time::Date;

use super::{Mutations, Requester, Resources, SecurityContext};
use crate::pod::{Container, ContainerList, PodSpec, Quantity, ResourceName};

/// The mutations from which a requester is not excluded.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActiveMutations<'m> {
    security_context: Option<&'m SecurityContext>,
    resources: Option<&'m Resources>,
    today: Date,
}

impl<'m> ActiveMutations<'m> {
    pub(super) fn of(mutations: &'m Mutations, requester: &Requester<'_>) -> Self {
        let Mutations { security_context, resources } = mutations;
        let is_on = |exclude: &super::ContainerExclude| !exclude.requesters().cover(requester);
        Self {
            security_context: Some(security_context).filter(|mutation| is_on(&mutation.exclude)),
            resources: Some(resources).filter(|mutation| is_on(&mutation.exclude)),
            today: requester.today,
        }
    }

    /// The image of a container after the mutations.
    #[expect(clippy::unused_self, reason = "no mutation changes images yet")]
    pub(super) fn image<'c>(&self, container: &'c Container<'_>) -> Cow<'c, str> {
        Cow::Borrowed(&container.image)
    }

    /// `securityContext`, where it concerns a container.
    pub(super) fn security_context(&self, container: &Container<'_>) -> Option<&'m SecurityContext> {
        let image = || self.image(container);
        self.security_context.filter(|on| !on.exclude.covers_container(&container.name, image, self.today))
    }

    /// `resources`, where it concerns a container.
    pub(super) fn resources(&self, container: &Container<'_>) -> Option<&'m Resources> {
        let image = || self.image(container);
        self.resources.filter(|on| !on.exclude.covers_container(&container.name, image, self.today))
    }

    /// `resources`, where it concerns the pod as a whole.
    pub(super) const fn resources_of_pod(&self) -> Option<&'m Resources> {
        self.resources
    }

    /// The limit that a container lacks, where one is due.
    pub(super) fn missing_limit<'q>(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        container: &'q Container<'q>,
        name: ResourceName,
    ) -> Option<&'q Quantity<'q>>
    where
        'm: 'q,
    {
        self.resources(container)?.missing_limit(pod, list, container, name)
    }

    /// The limit that the pod as a whole lacks, where one is due.
    pub(super) fn missing_pod_limit<'q>(&self, pod: &'q PodSpec<'q>, name: ResourceName) -> Option<&'q Quantity<'q>>
    where
        'm: 'q,
    {
        self.resources?.missing_pod_limit(pod, name)
    }
}
