//! `images`: where images come from, and in which version.
//!
//! `pins` name the tag or the digest of a repository, for images of it that have no digest, and no
//! tag or one that `imageTag` forbids. `mirrors` put another registry, or another beginning of the
//! repository, in the place of one: at the end of an element of the path, the longest source
//! first; tag and digest stay. Both compare in full: `nginx` is `docker.io/library/nginx`. A pin
//! of a repository is one of its mirrored name too, so that an image that went through `/mutate`
//! already gets the same answer. What neither concerns, and what is no image reference, is left
//! as its author wrote it; so is an image whose mirrored name would be none, or another's.
//!
//! All three container lists and image volumes. None by default.

use std::collections::HashMap;

use serde::Deserialize;

use super::mirrors::Mirrors;
use super::pins::{Pin, Pins, Version};
use super::{ContainerExclude, ImageTag, PolicyName, null_is_default};
use crate::pod::ImageReference;

/// The settings of `images`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, schemars::JsonSchema)]
#[serde(from = "Settings")]
pub struct Images {
    mirrors: Mirrors,
    pins: Pins,
    /// By repository in full, as it is after the mirrors.
    #[schemars(skip)]
    versions: HashMap<String, Version>,
    /// Whose requests, and which containers, it does not concern. The images in it are those that
    /// authors write, before this mutation.
    pub exclude: ContainerExclude,
}

/// Where images come from, and in which version.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Settings {
    /// Registries or beginnings of repositories, each with what comes in its place.
    #[serde(deserialize_with = "null_is_default")]
    mirrors: Mirrors,
    /// Repositories, each with the tag or digest of its images that have neither, or a forbidden tag.
    #[serde(deserialize_with = "null_is_default")]
    pins: Pins,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    exclude: ContainerExclude,
}

impl From<Settings> for Images {
    fn from(settings: Settings) -> Self {
        let Settings { mirrors, pins, exclude } = settings;
        let versions =
            pins.each().map(|pin| (mirrors.final_repository(&pin.repository), pin.version.clone())).collect();
        Self { mirrors, pins, versions, exclude }
    }
}

impl Images {
    /// The mutation's key in the configuration file.
    pub(super) const NAME: PolicyName = PolicyName("images");

    /// What comes in the place of an image; `None` where it stays.
    pub(super) fn replacement(&self, image: &str, image_tag: &ImageTag) -> Option<String> {
        if self.mirrors.is_empty() && self.versions.is_empty() {
            return None;
        }
        let reference = ImageReference::parse(image).ok()?;
        let full = reference.full_repository();
        let mirrored = self.mirrors.mirrored(&full);
        let has_version = reference.digest.is_some() || reference.tag.is_some_and(|tag| !image_tag.forbids(tag));
        let pinned = if has_version { None } else { self.versions.get(mirrored.as_ref().unwrap_or(&full)) };
        if mirrored.is_none() && pinned.is_none() {
            return None;
        }
        let (tag, digest) = match pinned {
            Some(Version::Tag(tag)) => (Some(&**tag), None),
            Some(Version::Digest(digest)) => (None, Some(&**digest)),
            None => (reference.tag, reference.digest),
        };
        let repository = mirrored.as_deref().unwrap_or(reference.repository);
        Some(ImageReference { repository, tag, digest }.to_string())
    }

    pub(super) const fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    pub(super) const fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The first two pins that name different versions of what is one repository after the
    /// mirrors; the later one first, then the repository.
    pub(super) fn pins_at_odds(&self) -> Option<(&Pin, &Pin, String)> {
        let mut known: HashMap<String, &Pin> = HashMap::new();
        for pin in self.pins.each() {
            let repository = self.mirrors.final_repository(&pin.repository);
            match known.get(&repository) {
                Some(other) if other.version != pin.version => return Some((pin, other, repository)),
                Some(_) => {}
                None => {
                    known.insert(repository, pin);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::patched;
    use super::super::{ImageTag, Policies, SecurityContext};
    use super::Images;
    use serde_json::{Value, json};

    const DIGEST: &str = "sha256:4f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d377654f1c9a0be2d37765";

    fn images(settings: Value) -> Images {
        serde_json::from_value(settings).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Looks at each image and at what became of it, a second time too.
    fn assert_becomes(images: &Images, expected: &[(&str, &str)]) {
        let policy = ImageTag::default();
        for (image, becomes) in expected {
            let found = images.replacement(image, &policy);
            assert_eq!(found.as_deref().unwrap_or(image), *becomes, "{image}");
            assert_eq!(images.replacement(becomes, &policy), None, "{image} a second time");
        }
    }

    #[test]
    fn a_registry_is_mirrored_in_every_form_of_a_reference() {
        let images = images(json!({"mirrors": {
            "docker.io": "registry.example.com/hub",
            "registry:5000": "[2001:db8::1]:5000/old",
            "[2001:DB8::2]": "registry.example.com:8443",
            "localhost": "registry.example.com/local",
        }}));
        assert_becomes(
            &images,
            &[
                ("nginx", "registry.example.com/hub/library/nginx"),
                ("nginx:1.27", "registry.example.com/hub/library/nginx:1.27"),
                ("library/nginx:1.27", "registry.example.com/hub/library/nginx:1.27"),
                ("docker.io/nginx:1.27", "registry.example.com/hub/library/nginx:1.27"),
                ("Index.Docker.IO/acme/app:1", "registry.example.com/hub/acme/app:1"),
                ("acme/app:latest", "registry.example.com/hub/acme/app:latest"),
                ("registry:5000/app:1", "[2001:db8::1]:5000/old/app:1"),
                ("registry:5001/app:1", "registry:5001/app:1"),
                ("registry/app:1", "registry.example.com/hub/registry/app:1"),
                ("[2001:db8::2]/a/b:1", "registry.example.com:8443/a/b:1"),
                ("[2001:db8::2]:5000/a/b:1", "[2001:db8::2]:5000/a/b:1"),
                ("localhost/app:1", "registry.example.com/local/app:1"),
                ("quay.io/acme/app:1", "quay.io/acme/app:1"),
                ("Nginx:1", "Nginx:1"),
                ("", ""),
            ],
        );
        let tag_and_digest = format!("nginx:1.27@{DIGEST}");
        let mirrored = format!("registry.example.com/hub/library/nginx:1.27@{DIGEST}");
        assert_becomes(&images, &[(&tag_and_digest, &mirrored)]);
    }

    #[test]
    fn the_longest_source_wins_and_ends_with_an_element() {
        let images = images(json!({"mirrors": {
            "quay.io": "r.example.com/quay",
            "quay.io/acme": "r.example.com/ours",
            "quay.io/acme/app": "r.example.com",
        }}));
        assert_becomes(
            &images,
            &[
                ("quay.io/other/app:1", "r.example.com/quay/other/app:1"),
                ("quay.io/acme/tool:1", "r.example.com/ours/tool:1"),
                ("quay.io/acme2/tool:1", "r.example.com/quay/acme2/tool:1"),
                ("quay.io/acme/app/part:1", "r.example.com/part:1"),
                // A registry alone is no repository.
                ("quay.io/acme/app:1", "quay.io/acme/app:1"),
            ],
        );
    }

    #[test]
    fn a_mirrored_name_is_the_name_that_was_meant_or_there_is_none() {
        let long = format!("quay.io/{}", "a".repeat(252));
        let images = images(json!({"mirrors": {"quay.io": "docker.io", "ghcr.io": "registry.example.com/ghcr"}}));
        let too_long = long.replace("quay", "ghcr");
        assert_becomes(
            &images,
            &[
                ("quay.io/acme/app:1", "docker.io/acme/app:1"),
                // docker.io/nginx would be docker.io/library/nginx.
                ("quay.io/nginx:1", "quay.io/nginx:1"),
                (&too_long, &too_long),
            ],
        );
    }

    #[test]
    fn a_pin_is_for_what_has_no_version() {
        let images = images(json!({"pins": {"nginx": "1.27.3", "quay.io/acme/app": DIGEST}}));
        let digest = format!("nginx@{DIGEST}");
        let both = format!("nginx:latest@{DIGEST}");
        let app = format!("quay.io/acme/app@{DIGEST}");
        assert_becomes(
            &images,
            &[
                ("nginx", "nginx:1.27.3"),
                ("nginx:latest", "nginx:1.27.3"),
                ("docker.io/library/nginx:latest", "docker.io/library/nginx:1.27.3"),
                ("nginx:1.26", "nginx:1.26"),
                (&digest, &digest),
                (&both, &both),
                ("quay.io/acme/app:latest", &app),
                ("quay.io/acme/app2:latest", "quay.io/acme/app2:latest"),
                ("acme/nginx", "acme/nginx"),
            ],
        );
    }

    #[test]
    fn what_imagetag_forbids_is_what_is_pinned() {
        let images = images(json!({"pins": {"nginx": "1.27.3"}}));
        let policy = ImageTag { forbidden: vec!["stable".to_owned()], ..ImageTag::default() };
        assert_eq!(images.replacement("nginx:stable", &policy).as_deref(), Some("nginx:1.27.3"));
        assert_eq!(images.replacement("nginx:latest", &policy), None);
    }

    #[test]
    fn a_pin_and_a_mirror_are_one_change() {
        let images = images(json!({
            "mirrors": {"docker.io": "registry.example.com/hub", "quay.io": "registry.example.com/quay"},
            "pins": {"nginx": "1.27.3", "registry.example.com/quay/acme/app": "2"},
        }));
        assert_becomes(
            &images,
            &[
                ("nginx", "registry.example.com/hub/library/nginx:1.27.3"),
                ("registry.example.com/hub/library/nginx", "registry.example.com/hub/library/nginx:1.27.3"),
                ("registry.example.com/hub/library/nginx:latest", "registry.example.com/hub/library/nginx:1.27.3"),
                ("quay.io/acme/app", "registry.example.com/quay/acme/app:2"),
                ("nginx:1.26", "registry.example.com/hub/library/nginx:1.26"),
            ],
        );
    }

    fn mutated(settings: &Value, spec: Value) -> Value {
        let mut policies = Policies::default();
        policies.mutations.images = images(settings.clone());
        policies.mutations.resources = super::super::Resources::off();
        policies.mutations.security_context =
            SecurityContext { allow_privilege_escalation: true, run_as_non_root: false, ..SecurityContext::default() };
        patched(&policies, spec)
    }

    #[test]
    fn concerns_every_list_and_image_volumes() {
        let spec = mutated(
            &json!({"mirrors": {"docker.io": "r.example.com"}, "pins": {"acme/d": "7"}}),
            json!({
                "containers": [{"name": "a", "image": "acme/a:1"}],
                "initContainers": [{"name": "b", "image": "acme/b:1"}],
                "ephemeralContainers": [{"name": "c", "image": "acme/c:1"}],
                "volumes": [
                    {"name": "e", "emptyDir": {}},
                    {"name": "d", "image": {"reference": "acme/d", "pullPolicy": "Always"}},
                    {"name": "f", "image": {"reference": ""}},
                ],
            }),
        );
        assert_eq!(
            spec,
            json!({
                "containers": [{"name": "a", "image": "r.example.com/acme/a:1"}],
                "initContainers": [{"name": "b", "image": "r.example.com/acme/b:1"}],
                "ephemeralContainers": [{"name": "c", "image": "r.example.com/acme/c:1"}],
                "volumes": [
                    {"name": "e", "emptyDir": {}},
                    {"name": "d", "image": {"reference": "r.example.com/acme/d:7", "pullPolicy": "Always"}},
                    {"name": "f", "image": {"reference": ""}},
                ],
            })
        );
    }

    #[test]
    fn is_excluded_by_the_image_that_is_written() {
        let spec = mutated(
            &json!({
                "mirrors": {"docker.io": "r.example.com"},
                "exclude": {"images": ["acme/a", "r.example.com/acme/b"], "containers": ["c"]},
            }),
            json!({
                "containers": [
                    {"name": "a", "image": "acme/a:1"},
                    {"name": "b", "image": "acme/b:1"},
                    {"name": "c", "image": "acme/c:1"},
                ],
                "volumes": [{"name": "c", "image": {"reference": "acme/a:1"}}],
            }),
        );
        let found: Vec<_> =
            spec["containers"].as_array().into_iter().flatten().map(|container| &container["image"]).collect();
        assert_eq!(found, ["acme/a:1", "r.example.com/acme/b:1", "acme/c:1"]);
        assert_eq!(spec["volumes"][0]["image"]["reference"], "acme/a:1");
    }
}
