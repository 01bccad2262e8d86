//! Settings that are right each by itself, but not beside each other.

use super::pins::{Pin, Version};
use super::{Action, ImageTag, Images, InvalidSidecar, Policies, PositiveQuantity};
use crate::pod::ResourceName;

/// Two settings of which no pod could do right by both. Mutating twice would not be mutating once,
/// or a mutation would make what is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// A mirror whose target another mirror matches.
    #[error(
        "images from {from:?} are to come from {target}, but a mirror of {again:?} would send those on: name a \
         target that no mirror matches"
    )]
    MirroredAgain {
        /// The mirror's key.
        from: String,
        /// Its target.
        target: String,
        /// The other mirror's key.
        again: String,
    },
    /// A mirror of what another mirrors.
    #[error("{from:?} and {other:?} above are the same: keep one")]
    MirroredTwice {
        /// The mirror's key.
        from: String,
        /// The other mirror's key.
        other: String,
    },
    /// A pin to another version than that of another pin.
    #[error("{pin:?} and {other:?} are both {repository}, but pinned to different versions: keep one")]
    PinsAtOdds {
        /// The pin's key.
        pin: String,
        /// The other pin's key.
        other: String,
        /// What both are in full, after the mirrors.
        repository: String,
    },
    /// A pin to a tag that is no version.
    #[error("{pin:?} is pinned to the tag {tag}, which validations.imageTag.forbidden has: name a version")]
    ForbiddenPin {
        /// The pin's key.
        pin: String,
        /// Its tag.
        tag: String,
    },
    /// A pin to a tag where only digests are allowed.
    #[error("{pin:?} is pinned to the tag {tag}, but validations.imageTag.requireDigest denies tags: name a digest")]
    PinWithoutDigest {
        /// The pin's key.
        pin: String,
        /// Its tag.
        tag: String,
    },
    /// A default request above the default limit.
    #[error("the default request, {request}, is above the default in limits.{name}, {limit}: lower the request", name = name.as_str())]
    RequestAboveLimit {
        /// Of which resource.
        name: ResourceName,
        /// The default request.
        request: PositiveQuantity,
        /// The default limit.
        limit: PositiveQuantity,
    },
    /// An amount that no cluster counts.
    #[error("{amount:?} is {finer}{}", meant.as_ref().map_or_else(String::new, |meant| format!(": is {meant} meant?")))]
    TooFine {
        /// The keys that lead to it.
        path: Vec<&'static str>,
        /// The amount.
        amount: String,
        /// What it is.
        finer: &'static str,
        /// What it is likely meant to be.
        meant: Option<String>,
    },
    /// A sidecar that no pod could have.
    #[error(transparent)]
    Sidecar(InvalidSidecar),
}

impl Contradiction {
    /// The keys that lead to the setting to change, from the root of the configuration file.
    #[must_use]
    pub fn path(&self) -> Vec<&str> {
        let [section, mutation, setting, key] = match self {
            Self::MirroredAgain { from, .. } | Self::MirroredTwice { from, .. } => {
                ["mutations", "images", "mirrors", from]
            }
            Self::PinsAtOdds { pin, .. } | Self::ForbiddenPin { pin, .. } | Self::PinWithoutDigest { pin, .. } => {
                ["mutations", "images", "pins", pin]
            }
            Self::RequestAboveLimit { name, .. } => ["mutations", "resources", "requests", name.as_str()],
            Self::TooFine { path, .. } => return path.clone(),
            Self::Sidecar(invalid) => return invalid.path.iter().map(String::as_str).collect(),
        };
        vec![section, mutation, setting, key]
    }
}

impl Policies {
    /// Two settings that cannot stand beside each other, where there are such.
    #[must_use]
    pub fn contradiction(&self) -> Option<Contradiction> {
        let Self { mutations, validations, .. } = self;
        of_mirrors(&mutations.images)
            .or_else(|| of_pins(&mutations.images, &validations.image_tag))
            .or_else(|| self.amounts().into_iter().find_map(too_fine))
            .or_else(|| mutations.resources.request_above_limit())
            .or_else(|| self.invalid_sidecar().map(Contradiction::Sidecar))
    }
}

/// Cpu is counted in thousandths. Memory is in bytes, and `m` a thousandth of one: a part of a byte beside many
/// does no harm, and an amount of less than one is a slip.
fn too_fine((path, name, amount): (Vec<&'static str>, ResourceName, &PositiveQuantity)) -> Option<Contradiction> {
    let amount = amount.as_quantity();
    let (is_too_fine, finer) = match name {
        ResourceName::Cpu => (amount.nano() % 1_000_000 != 0, "finer than 1m, the least of cpu that Kubernetes counts"),
        ResourceName::Memory => (amount.nano() < 1_000_000_000, "less than a byte of memory"),
    };
    let meant = amount.as_str().strip_suffix('m').filter(|_| name == ResourceName::Memory);
    let meant = meant.map(|number| format!("{number}Mi"));
    is_too_fine.then(|| Contradiction::TooFine { path, amount: amount.as_str().to_owned(), finer, meant })
}

fn of_mirrors(images: &Images) -> Option<Contradiction> {
    let mirrors = images.mirrors();
    if let Some((mirror, other)) = mirrors.named_twice() {
        return Some(Contradiction::MirroredTwice { from: mirror.written.clone(), other: other.written.clone() });
    }
    mirrors.mirrored_again().map(|(mirror, again)| Contradiction::MirroredAgain {
        from: mirror.written.clone(),
        target: mirror.target().to_owned(),
        again: again.written.clone(),
    })
}

fn of_pins(images: &Images, image_tag: &ImageTag) -> Option<Contradiction> {
    if let Some((pin, other, repository)) = images.pins_at_odds() {
        return Some(Contradiction::PinsAtOdds { pin: pin.written.clone(), other: other.written.clone(), repository });
    }
    images.pins().each().find_map(|Pin { written, version, .. }| {
        let Version::Tag(tag) = version else { return None };
        let (pin, tag) = (written.clone(), tag.clone());
        if image_tag.forbids(&tag) {
            return Some(Contradiction::ForbiddenPin { pin, tag });
        }
        let denies_tags = image_tag.require_digest && image_tag.action == Action::Deny;
        denies_tags.then_some(Contradiction::PinWithoutDigest { pin, tag })
    })
}
