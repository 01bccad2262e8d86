//! The mutations that are on for one request, and for each container.

use std::borrow::Cow;

use time::Date;

use super::{ContainerExclude, ImageTag, Images, Mutations, Policies, Requester, Resources, SecurityContext};
use crate::pod::{Container, ContainerList, ImageVolume, PodSpec, Quantity, ResourceName};

/// The mutations from which a requester is not excluded.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActiveMutations<'m> {
    images: Option<&'m Images>,
    image_tag: &'m ImageTag,
    security_context: Option<&'m SecurityContext>,
    resources: Option<&'m Resources>,
    today: Date,
}

impl<'m> ActiveMutations<'m> {
    pub(super) fn of(policies: &'m Policies, requester: &Requester<'_>) -> Self {
        Self::where_on(policies, requester.today, |exclude| !exclude.requesters().cover(requester))
    }

    /// Those from which nobody is excluded.
    pub(super) fn of_everybody(policies: &'m Policies, today: Date) -> Self {
        Self::where_on(policies, today, |exclude| exclude.requesters().are_none())
    }

    /// All of them.
    pub(super) fn all(policies: &'m Policies, today: Date) -> Self {
        Self::where_on(policies, today, |_| true)
    }

    fn where_on(policies: &'m Policies, today: Date, is_on: impl Fn(&ContainerExclude) -> bool) -> Self {
        let Mutations { sidecars: _, images, security_context, resources } = &policies.mutations;
        Self {
            images: Some(images).filter(|mutation| is_on(&mutation.exclude)),
            image_tag: &policies.validations.image_tag,
            security_context: Some(security_context).filter(|mutation| is_on(&mutation.exclude)),
            resources: Some(resources).filter(|mutation| is_on(&mutation.exclude)),
            today,
        }
    }

    /// The same, but for the amounts that a container lacks.
    pub(super) const fn without_resources(self) -> Self {
        Self { resources: None, ..self }
    }

    /// The image that a container is to get in the place of its own, where one is due.
    pub(super) fn new_image(&self, container: &Container<'_>) -> Option<String> {
        let image = &*container.image;
        let on = self.images.filter(|on| !on.exclude.covers_container(&container.name, || image, self.today))?;
        on.replacement(image, self.image_tag)
    }

    /// The image that a volume is to get in the place of its own, where one is due.
    pub(super) fn new_volume_image(&self, volume: &ImageVolume<'_>) -> Option<String> {
        let image = &*volume.reference;
        let on = self.images.filter(|on| !on.exclude.covers_image(|| image, self.today))?;
        on.replacement(image, self.image_tag)
    }

    /// The image of a container after the mutations.
    pub(super) fn image<'c>(&self, container: &'c Container<'_>) -> Cow<'c, str> {
        self.new_image(container).map_or(Cow::Borrowed(&container.image), Cow::Owned)
    }

    /// The image of a volume after the mutations.
    pub(super) fn volume_image<'v>(&self, volume: &'v ImageVolume<'_>) -> Cow<'v, str> {
        self.new_volume_image(volume).map_or(Cow::Borrowed(&volume.reference), Cow::Owned)
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
