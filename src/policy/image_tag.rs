//! `imageTag`: no image whose content may change unnoticed.
//!
//! Denies an image without tag and digest, one with a forbidden tag (`latest` by default,
//! compared exactly), and a text that is no image reference at all; of every container list and
//! of image volumes. A well-formed digest always passes, whatever the tag.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Action, Field, Found, Mutations, PolicyName, Quoted, Subject, Validation, Violation};
use crate::pod::{ImageReference, PodSpec};

/// The settings of `imageTag`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageTag {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// The tags that do not count as a version; `[latest]` by default.
    pub forbidden: Vec<String>,
}

impl Default for ImageTag {
    fn default() -> Self {
        Self { action: Action::Deny, forbidden: vec!["latest".to_owned()] }
    }
}

impl ImageTag {
    /// What is wrong with an image, and what to do.
    fn complaint(&self, image: &str) -> Option<String> {
        let reference = match ImageReference::parse(image) {
            Ok(reference) => reference,
            Err(_) if image.is_empty() => return Some("is missing: name an image with a tag".to_owned()),
            Err(error) => return Some(format!("is {}, which is no image reference: {error}", Quoted(image))),
        };
        let advice = format_args!("name a version, such as {}:1.4.2", reference.repository).to_string();
        match (reference.digest, reference.tag) {
            (Some(_), _) => None,
            (None, None) => Some(format!("is {}, which has no tag: {advice}", Quoted(image))),
            (None, Some(tag)) => self
                .forbidden
                .iter()
                .any(|forbidden| forbidden == tag)
                .then(|| format!("is {}, and the tag {tag} is no version: {advice}", Quoted(image))),
        }
    }
}

impl Validation for ImageTag {
    const NAME: PolicyName = PolicyName("imageTag");

    fn action(&self) -> Action {
        self.action
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, _: &Mutations, violations: &mut Vec<Violation<'a>>) {
        let containers = pod.all_containers().map(|(list, index, container)| {
            (Subject::Container { list, index, name: &container.name }, Field::Own("image"), &*container.image)
        });
        let volumes = pod.volumes.iter().enumerate().filter_map(|(index, volume)| {
            let image = volume.image.as_ref()?;
            Some((Subject::Volume { index, name: &volume.name }, Field::Own("image.reference"), &*image.reference))
        });
        for (subject, field, image) in containers.chain(volumes) {
            if let Some(statement) = self.complaint(image) {
                let found = Found::Value(Cow::Borrowed(image));
                violations.push(Violation { policy: Self::NAME, subject, field, found, statement });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::{Action, ImageTag};
    use serde_json::json;

    fn complaints(image: &str) -> Vec<String> {
        lines(&ImageTag::default(), json!({"containers": [{"name": "app", "image": image}]}))
    }

    #[test]
    fn says_what_is_missing_and_what_to_write() {
        assert_eq!(
            complaints("registry:5000/app"),
            [
                "imageTag: container \"app\" (spec.containers[0].image) is \"registry:5000/app\", which has no tag: name \
              a version, such as registry:5000/app:1.4.2"
            ]
        );
        assert_eq!(
            complaints("nginx:latest"),
            ["imageTag: container \"app\" (spec.containers[0].image) is \"nginx:latest\", and the tag latest is no \
              version: name a version, such as nginx:1.4.2"]
        );
        assert_eq!(
            complaints("cache@7.2.5"),
            [
                "imageTag: container \"app\" (spec.containers[0].image) is \"cache@7.2.5\", which is no image reference: \
              \"7.2.5\" is no digest: sha256: and 64 lower-case hexadecimal digits"
            ]
        );
        assert_eq!(
            complaints(""),
            ["imageTag: container \"app\" (spec.containers[0].image) is missing: name an image with a tag"]
        );
    }

    #[test]
    fn a_tag_or_a_digest_is_enough() {
        let digest = "0".repeat(64);
        for image in ["nginx:1.27", "nginx:LATEST", "nginx:latest-alpine"] {
            assert!(complaints(image).is_empty(), "{image}");
        }
        for image in [format!("a@sha256:{digest}"), format!("a:latest@sha256:{digest}")] {
            assert!(complaints(&image).is_empty(), "{image}");
        }
    }

    #[test]
    fn looks_at_every_list_and_at_image_volumes() {
        let found = lines(
            &ImageTag::default(),
            json!({
                "containers": [{"name": "a", "image": "a:1"}],
                "initContainers": [{"name": "b", "image": "b"}],
                "ephemeralContainers": [{"name": "c", "image": "c:latest"}],
                "volumes": [{"name": "d", "image": {"reference": "d"}}, {"name": "e", "emptyDir": {}}],
            }),
        );
        assert_eq!(found.len(), 3);
        assert!(found[2].starts_with("imageTag: volume \"d\" (spec.volumes[0].image.reference) is \"d\""), "{found:?}");
    }

    #[test]
    fn other_tags_can_be_forbidden() {
        let policy = ImageTag { action: Action::Deny, forbidden: vec!["stable".to_owned()] };
        let spec = |image: &str| json!({"containers": [{"name": "app", "image": image}]});
        assert_eq!(lines(&policy, spec("a:stable")).len(), 1);
        assert!(lines(&policy, spec("a:latest")).is_empty());
    }
}
