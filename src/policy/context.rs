//! What a validation may ask besides the pod itself.

use std::borrow::Cow;

use time::Date;

use super::Prepared;
use super::active::ActiveMutations;
use super::in_force::Stage;
use super::resources::LimitSource;
use crate::pod::{Amount, Container, ContainerList, ImageVolume, PodSpec, Quantity, ResourceName};

/// What a validation may ask besides the pod itself: which mutations concern it, and what they
/// make of it, where it has yet to go through them.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    pub(super) mutations: ActiveMutations<'c>,
    pub(super) stage: Stage,
    pub(super) today: Date,
    pub(super) prepared: &'c Prepared<'c>,
}

impl Context<'_> {
    /// The image with which a container will run.
    pub(super) fn image<'a>(&self, container: &'a Container<'_>) -> Cow<'a, str> {
        if self.stage.is_before_mutations() { self.mutations.image(container) } else { Cow::Borrowed(&container.image) }
    }

    /// The image with which a volume will be filled.
    pub(super) fn volume_image<'a>(&self, volume: &'a ImageVolume<'_>) -> Cow<'a, str> {
        if self.stage.is_before_mutations() {
            self.mutations.volume_image(volume)
        } else {
            Cow::Borrowed(&volume.reference)
        }
    }

    /// The limit under which a container will run; `None` where there is none.
    pub(super) fn limit(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        container: &Container<'_>,
        name: ResourceName,
    ) -> Option<Amount> {
        let written = container.resources.as_ref().and_then(|resources| resources.limit(name));
        let filled = || self.mutations.missing_limit(pod, list, container, name);
        self.effective(written, filled).map(|limit| Amount::of(name, limit))
    }

    /// The limit under which the pod as a whole will run; `None` where there is none.
    pub(super) fn pod_limit(&self, pod: &PodSpec<'_>, name: ResourceName) -> Option<Amount> {
        let written = pod.resources.as_ref().and_then(|resources| resources.limit(name));
        let filled = || self.mutations.missing_pod_limit(pod, name);
        self.effective(written, filled).map(|limit| Amount::of(name, limit))
    }

    /// Where the limit of a container may come from, if nobody wrote it.
    pub(super) fn source_of_limit(
        &self,
        pod: &PodSpec<'_>,
        container: &Container<'_>,
        name: ResourceName,
        limit: Amount,
    ) -> Option<LimitSource> {
        let mutation = self.mutations.resources(container).filter(|_| !pod.sets_for_all(name))?;
        mutation.source(limit, container.resources.as_ref(), name)
    }

    /// Where the limit of the pod as a whole may come from, if nobody wrote it.
    pub(super) fn source_of_pod_limit(
        &self,
        pod: &PodSpec<'_>,
        name: ResourceName,
        limit: Amount,
    ) -> Option<LimitSource> {
        self.mutations.resources_of_pod()?.source(limit, pod.resources.as_ref(), name)
    }

    /// The API server takes a zero limit for none.
    fn effective<'q>(
        &self,
        written: Option<&'q Quantity<'q>>,
        filled: impl FnOnce() -> Option<&'q Quantity<'q>>,
    ) -> Option<&'q Quantity<'q>> {
        let filled = if self.stage.is_before_mutations() { filled() } else { None };
        filled.or_else(|| written.filter(|limit| !limit.is_zero()))
    }
}
