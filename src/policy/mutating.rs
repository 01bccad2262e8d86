//! What the mutations do to one container or volume.

use serde_json::json;

use super::active::ActiveMutations;
use super::{Images, PolicyName, Resources, SecurityContext};
use crate::patch::{Patch, Pointer};
use crate::pod::{Container, ContainerList, PodSpec, Volume};

/// What the mutations make of a pod.
#[derive(Debug)]
pub struct Mutated {
    /// The patch; it changes something.
    pub patch: Patch,
    /// The mutations that are at work in it.
    pub by: Vec<PolicyName>,
}

/// A patch, and who has added to it.
#[derive(Debug, Default)]
pub(super) struct Mutating {
    patch: Patch,
    by: Vec<PolicyName>,
}

impl Mutating {
    pub(super) fn run(&mut self, name: PolicyName, mutate: impl FnOnce(&mut Patch)) {
        let before = self.patch.len();
        mutate(&mut self.patch);
        if self.patch.len() > before && !self.by.contains(&name) {
            self.by.push(name);
        }
    }

    pub(super) fn finish(self) -> Option<Mutated> {
        let Self { patch, by } = self;
        (!patch.is_empty()).then_some(Mutated { patch, by })
    }
}

impl ActiveMutations<'_> {
    /// Changes the container at a place.
    pub(super) fn mutate_container(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        index: usize,
        container: &Container<'_>,
        mutating: &mut Mutating,
    ) {
        if let Some(image) = self.new_image(container) {
            let path = Pointer::container(list, index).member("image");
            mutating.run(Images::NAME, |patch| patch.add(path, image));
        }
        if let Some(security_context) = self.security_context(container) {
            mutating.run(SecurityContext::NAME, |patch| security_context.patch(pod, list, index, container, patch));
        }
        if let Some(resources) = self.resources(container) {
            mutating.run(Resources::NAME, |patch| resources.patch(pod, list, index, container, patch));
        }
    }

    /// Changes the volume at a place.
    pub(super) fn mutate_volume(&self, index: usize, volume: &Volume<'_>, mutating: &mut Mutating) {
        if let Some(image) = volume.image.as_ref().and_then(|image| self.new_volume_image(image)) {
            let path = Pointer::volume(index).member("image").member("reference");
            mutating.run(Images::NAME, |patch| patch.add(path, image));
        }
    }

    /// All of a container as the mutations leave it; `None` where `json` is no container.
    pub(super) fn container_after(
        &self,
        pod: &PodSpec<'_>,
        list: ContainerList,
        container: &Container<'_>,
        json: &serde_json::Value,
    ) -> Option<serde_json::Value> {
        let mut mutating = Mutating::default();
        self.mutate_container(pod, list, 0, container, &mut mutating);
        let mut pod = mutating.patch.applied_to(json!({"spec": {list.field(): [json]}}))?;
        Some(pod.pointer_mut(&format!("/spec/{}/0", list.field()))?.take())
    }

    /// All of a volume as the mutations leave it; `None` where `json` is no volume.
    pub(super) fn volume_after(&self, volume: &Volume<'_>, json: &serde_json::Value) -> Option<serde_json::Value> {
        let mut mutating = Mutating::default();
        self.mutate_volume(0, volume, &mut mutating);
        let mut pod = mutating.patch.applied_to(json!({"spec": {"volumes": [json]}}))?;
        Some(pod.pointer_mut("/spec/volumes/0")?.take())
    }
}
