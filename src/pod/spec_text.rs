//! The text of a pod's spec, for the few questions that the views do not answer.

use serde::de::MapAccess;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ContainerList;
use crate::json::{self, Members, Object};

/// Where a pod's spec stands in the text of a review. Nothing of it is read again before it is
/// asked for: most pods can be judged by their views alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpecText<'a> {
    review: &'a str,
    object: &'static str,
    root: &'static str,
}

impl<'a> SpecText<'a> {
    /// The spec in a review's `object` or `oldObject`; `root` is where the pod stands in it, such as
    /// `spec.template.`, or nothing.
    #[must_use]
    pub const fn new(review: &'a str, object: &'static str, root: &'static str) -> Self {
        Self { review, object, root }
    }

    /// Finds the containers and volumes in it.
    #[must_use]
    pub fn read(&self) -> WrittenSpec<'a> {
        let root = self.root.split('.').filter(|key| !key.is_empty());
        let path: Vec<&str> = ["request", self.object].into_iter().chain(root).chain(["spec"]).collect();
        json::at::<Object<WrittenSpec<'a>>>(self.review, &path).map(|Object(spec)| spec).unwrap_or_default()
    }
}

/// The containers and volumes of a pod with all that is in them, as their author wrote them.
#[derive(Debug, Default)]
pub struct WrittenSpec<'a> {
    containers: Vec<&'a RawValue>,
    init_containers: Vec<&'a RawValue>,
    ephemeral_containers: Vec<&'a RawValue>,
    volumes: Vec<&'a RawValue>,
}

impl WrittenSpec<'_> {
    /// The container at a place.
    #[must_use]
    pub fn container(&self, list: ContainerList, index: usize) -> Option<Value> {
        let list = match list {
            ContainerList::Containers => &self.containers,
            ContainerList::InitContainers => &self.init_containers,
            ContainerList::EphemeralContainers => &self.ephemeral_containers,
        };
        serde_json::from_str(list.get(index)?.get()).ok()
    }

    /// The volume at a place.
    #[must_use]
    pub fn volume(&self, index: usize) -> Option<Value> {
        serde_json::from_str(self.volumes.get(index)?.get()).ok()
    }
}

impl<'de> Members<'de> for WrittenSpec<'de> {
    const EXPECTED: &'static str = "a PodSpec";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "containers" => self.containers = json::raw_list(map)?,
            "initContainers" => self.init_containers = json::raw_list(map)?,
            "ephemeralContainers" => self.ephemeral_containers = json::raw_list(map)?,
            "volumes" => self.volumes = json::raw_list(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shows_what_views_leave_out() {
        let spec = r#"{"containers": [{"tty": true}], "initContainers": null, "volumes": [1, 2]}"#;
        let text = format!(r#"{{"request": {{"object": {{"spec": {{"template": {{"spec": {spec}}}}}}}}}}}"#);
        let spec = SpecText::new(&text, "object", "spec.template.").read();
        assert_eq!(spec.container(ContainerList::Containers, 0), Some(json!({"tty": true})));
        assert_eq!(spec.container(ContainerList::Containers, 1), None);
        assert_eq!(spec.container(ContainerList::InitContainers, 0), None);
        assert_eq!(spec.volume(1), Some(json!(2)));
        assert_eq!(SpecText::new(&text, "oldObject", "spec.template.").read().volume(0), None);
        assert_eq!(SpecText::new(&text, "object", "").read().volume(0), None);
    }
}
