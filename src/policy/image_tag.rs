//! `imageTag`: no image whose content may change unnoticed.
//!
//! Denies an image without tag and digest, one with a forbidden tag (`latest` by default,
//! compared exactly), and a text that is no image reference at all; of every container list and
//! of image volumes. A well-formed digest is enough, whatever the tag.
//!
//! `requireDigest` denies an image without a digest, whatever the tag; `allowedRegistries` one
//! from elsewhere than these registries or parts of them, compared in full: `nginx` is
//! `docker.io/library/nginx`.
//!
//! Where the mutation `images` is still to come, on `/mutate` and in templates, an image is judged
//! as it is after it.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::violation::Listed;
use super::{
    Action, ContainerExclude, Context, Field, Found, Message, PolicyName, Quoted, Rule, RuleExclude, Subject,
    Validation, Violation, null_is_default, truth, words,
};
use crate::pod::{ImageReference, PodSpec, RepositoryPrefix};

/// The settings of `imageTag`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageTag {
    /// What is done about it; `deny` by default.
    pub action: Action,
    /// What is said of it, in place of podgate's own words.
    pub message: Option<Message>,
    /// Whose requests, and which containers, it does not concern.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude: ContainerExclude,
    /// The tags that do not count as a version; `[latest]` by default.
    #[serde(deserialize_with = "tags")]
    #[schemars(with = "super::schema::Tags")]
    pub forbidden: Vec<String>,
    /// Whether every image needs a digest; `false` by default.
    #[serde(deserialize_with = "truth::or_false")]
    #[schemars(with = "Option<bool>")]
    pub require_digest: bool,
    /// The registries, with the beginning of a path or without, from which images may come; all
    /// by default.
    #[serde(deserialize_with = "prefixes")]
    pub allowed_registries: Vec<RepositoryPrefix>,
}

impl Default for ImageTag {
    fn default() -> Self {
        Self {
            action: Action::Deny,
            message: None,
            exclude: ContainerExclude::default(),
            forbidden: vec!["latest".to_owned()],
            require_digest: false,
            allowed_registries: Vec::new(),
        }
    }
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RepositoryPrefix>, D::Error> {
    struct Prefix(RepositoryPrefix);

    impl<'de> Deserialize<'de> for Prefix {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            RepositoryPrefix::parse(&words::text(deserializer)?).map(Self).map_err(D::Error::custom)
        }
    }

    let prefixes = Option::<Vec<Prefix>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(prefixes.into_iter().map(|Prefix(prefix)| prefix).collect())
}

/// What is no tag, and so would forbid nothing.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is no tag, so that no image has it: write one, such as latest, exactly (letters, digits, _ . -, at most 128)"
)]
struct NotATag(String);

fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Tag(String);

    impl<'de> Deserialize<'de> for Tag {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = words::text(deserializer)?;
            let is_tag = ImageReference::parse(&format!("a:{text}")).is_ok_and(|read| read.tag == Some(&text));
            if is_tag { Ok(Self(text)) } else { Err(D::Error::custom(NotATag(text))) }
        }
    }

    match Option::<Vec<Tag>>::deserialize(deserializer)? {
        Some(tags) => Ok(tags.into_iter().map(|Tag(tag)| tag).collect()),
        None => Ok(ImageTag::default().forbidden),
    }
}

impl ImageTag {
    /// What is wrong with an image, and what to do; `written` is what its author wrote, `image`
    /// what the mutations make of it.
    fn complaints(&self, written: &str, image: &str) -> Vec<String> {
        let own = ImageReference::parse(written);
        let reference = if written == image { own.clone() } else { ImageReference::parse(image) };
        match (own, reference) {
            (Ok(own), Ok(reference)) => {
                let of_registry = self.of_registry(written, &own, &reference);
                self.of_version(written, &own, &reference).into_iter().chain(of_registry).collect()
            }
            _ if written.is_empty() => vec!["is missing: name an image with a tag".to_owned()],
            (Err(error), _) | (_, Err(error)) => {
                vec![format!("is {}, which is no image reference: {error}", Quoted(written))]
            }
        }
    }

    /// Judges the image with which the container will run, but speaks of what its author wrote.
    fn of_version(&self, written: &str, own: &ImageReference<'_>, reference: &ImageReference<'_>) -> Option<String> {
        let image = Quoted(written);
        let repository = own.repository;
        match (reference.digest, reference.tag) {
            (Some(_), _) => None,
            (None, tag) if self.require_digest => {
                let tag = tag.filter(|tag| !self.forbids(tag)).unwrap_or("1.4.2");
                Some(format!("is {image}, which has no digest: name one, such as {repository}:{tag}@sha256:…"))
            }
            (None, None) => Some(format!("is {image}, which has no tag: name a version, such as {repository}:1.4.2")),
            (None, Some(tag)) => self.forbids(tag).then(|| {
                format!("is {image}, and the tag {tag} is no version: name a version, such as {repository}:1.4.2")
            }),
        }
    }

    fn of_registry(&self, written: &str, own: &ImageReference<'_>, reference: &ImageReference<'_>) -> Option<String> {
        if self.allowed_registries.is_empty() {
            return None;
        }
        let full = reference.full_repository();
        if self.allowed_registries.iter().any(|allowed| allowed.strip_from(&full).is_some()) {
            return None;
        }
        let seen = if full == own.repository { String::new() } else { format!(", that is {full}") };
        Some(format!("is {}{seen}: allowed are images from {}", Quoted(written), Listed(&self.allowed_registries)))
    }

    /// Whether a tag does not count as a version.
    pub(super) fn forbids(&self, tag: &str) -> bool {
        self.forbidden.iter().any(|forbidden| forbidden == tag)
    }
}

impl Validation for ImageTag {
    const NAME: PolicyName = PolicyName("imageTag");

    fn rule(&self) -> Rule<'_> {
        Rule { action: self.action, message: self.message.as_ref(), exclude: RuleExclude::Container(&self.exclude) }
    }

    fn check<'a>(&self, pod: &'a PodSpec<'a>, context: &Context<'_>, violations: &mut Vec<Violation<'a>>) {
        let containers = pod.all_containers().map(|(list, index, container)| {
            let subject = Subject::Container { list, index, name: &container.name };
            (subject, Field::Own("image"), &*container.image, context.image(container))
        });
        let volumes = pod.volumes.iter().enumerate().filter_map(|(index, volume)| {
            let image = volume.image.as_ref()?;
            let subject = Subject::Volume { index, name: &volume.name };
            Some((subject, Field::Own("image.reference"), &*image.reference, context.volume_image(image)))
        });
        for (subject, field, written, image) in containers.chain(volumes) {
            for statement in self.complaints(written, &image) {
                let found = Found::Value(Cow::Borrowed(written));
                violations.push(Violation { policy: Self::NAME, subject, field, found, statement });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;
    use super::ImageTag;
    use serde_json::{Value, json};

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
        let policy = ImageTag { forbidden: vec!["stable".to_owned()], ..ImageTag::default() };
        let spec = |image: &str| json!({"containers": [{"name": "app", "image": image}]});
        assert_eq!(lines(&policy, spec("a:stable")).len(), 1);
        assert!(lines(&policy, spec("a:latest")).is_empty());
    }

    fn with(settings: Value, image: &str) -> Vec<String> {
        let policy: ImageTag = serde_json::from_value(settings).unwrap();
        lines(&policy, json!({"containers": [{"name": "app", "image": image}]}))
    }

    #[test]
    fn a_digest_can_be_required() {
        let settings = || json!({"requireDigest": true});
        let begin = "imageTag: container \"app\" (spec.containers[0].image) is";
        for (image, example) in
            [("nginx", "nginx:1.4.2"), ("nginx:latest", "nginx:1.4.2"), ("nginx:1.27", "nginx:1.27")]
        {
            assert_eq!(
                with(settings(), image),
                [format!("{begin} \"{image}\", which has no digest: name one, such as {example}@sha256:…")]
            );
        }
        assert!(with(settings(), &format!("nginx@sha256:{}", "0".repeat(64))).is_empty());
    }

    #[test]
    fn registries_can_be_the_only_ones() {
        let settings = || json!({"allowedRegistries": ["quay.io/acme", "registry:5000", "docker.io/library"]});
        for image in ["quay.io/acme/app:1", "registry:5000/a/b:1", "nginx:1", "docker.io/nginx:1", "library/nginx:1"] {
            assert!(with(settings(), image).is_empty(), "{image}");
        }
        let begin = "imageTag: container \"app\" (spec.containers[0].image) is";
        let end = "allowed are images from quay.io/acme, registry:5000, docker.io/library";
        for (image, seen) in [
            ("quay.io/other/app:1", "\"quay.io/other/app:1\""),
            ("quay.io/acme2/app:1", "\"quay.io/acme2/app:1\""),
            ("registry/app:1", "\"registry/app:1\", that is docker.io/registry/app"),
        ] {
            assert_eq!(with(settings(), image), [format!("{begin} {seen}: {end}")]);
        }
        let digest = format!("quay.io/other/app@sha256:{}", "0".repeat(64));
        assert_eq!(with(settings(), &digest).len(), 1, "a digest says nothing of where it is from");
        assert_eq!(with(settings(), "quay.io/other/app").len(), 2);
        assert_eq!(with(settings(), "quay.io/Other").len(), 1);
    }
}
