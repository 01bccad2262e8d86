//! `mirrors` of the mutation `images`: what stands in the place of registries and repositories.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::successors;
use std::ops::Bound;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::words;
use crate::pod::{ImageReference, InvalidPrefix, RepositoryPrefix};

/// Prefixes of repositories, each with what comes in its place. The cost of a look-up hardly
/// grows with their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mirrors {
    /// As the configuration file has them.
    each: Vec<Mirror>,
    /// By source in full: places in the list.
    places: BTreeMap<String, usize>,
}

/// A prefix, and what comes in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    /// The source as the configuration file has it.
    pub(super) written: String,
    source: RepositoryPrefix,
    target: RepositoryPrefix,
}

impl Mirror {
    pub(super) fn target(&self) -> &str {
        self.target.as_str()
    }
}

impl Mirrors {
    pub(super) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    pub(super) fn each(&self) -> &[Mirror] {
        &self.each
    }

    /// The repository that comes in the place of one in full; `None` where it stays.
    pub(super) fn mirrored(&self, full_repository: &str) -> Option<String> {
        let Mirror { source, target, .. } = self.nearest(full_repository)?;
        let mirrored = format!("{target}{}", source.strip_from(full_repository)?);
        let reads_as_itself = ImageReference::parse(&mirrored).is_ok_and(|read| read.full_repository() == mirrored);
        reads_as_itself.then_some(mirrored)
    }

    /// What a repository in full is called after the mirrors.
    pub(super) fn final_repository(&self, full_repository: &str) -> String {
        self.mirrored(full_repository).unwrap_or_else(|| full_repository.to_owned())
    }

    /// The mirror with the longest source of which a repository or prefix in full is part.
    fn nearest(&self, full: &str) -> Option<&Mirror> {
        let mut prefixes = successors(Some(full), |prefix| prefix.rsplit_once('/').map(|(shorter, _)| shorter));
        prefixes.find_map(|prefix| self.places.get(prefix)).map(|place| &self.each[*place])
    }

    /// The first mirror whose source is in full that of another; the other comes second.
    pub(super) fn named_twice(&self) -> Option<(&Mirror, &Mirror)> {
        self.each.iter().enumerate().find_map(|(place, mirror)| {
            let first = *self.places.get(mirror.source.as_str())?;
            (first != place).then(|| (mirror, &self.each[first]))
        })
    }

    /// The first mirror whose target, or a part of it, is the source of another, which comes
    /// second.
    pub(super) fn mirrored_again(&self) -> Option<(&Mirror, &Mirror)> {
        self.each.iter().find_map(|mirror| {
            let again = self.nearest(mirror.target()).or_else(|| self.within(mirror.target()))?;
            Some((mirror, again))
        })
    }

    /// A mirror whose source is a part of this prefix in full.
    fn within(&self, prefix: &str) -> Option<&Mirror> {
        let begin = format!("{prefix}/");
        let (source, place) = self.places.range::<str, _>((Bound::Included(&*begin), Bound::Unbounded)).next()?;
        source.starts_with(&begin).then(|| &self.each[*place])
    }
}

impl<'de> Deserialize<'de> for Mirrors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MirrorsVisitor)
    }
}

struct MirrorsVisitor;

impl<'de> Visitor<'de> for MirrorsVisitor {
    type Value = Mirrors;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map from registries or repositories to others")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Mirrors, A::Error> {
        let mut mirrors = Mirrors::default();
        while let Some(Source { written, prefix }) = map.next_key()? {
            let Target(target) = map.next_value()?;
            mirrors.places.entry(prefix.as_str().to_owned()).or_insert(mirrors.each.len());
            mirrors.each.push(Mirror { written, source: prefix, target });
        }
        Ok(mirrors)
    }
}

struct Source {
    written: String,
    prefix: RepositoryPrefix,
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = words::text(deserializer)?;
        let prefix = RepositoryPrefix::parse(&written).map_err(D::Error::custom)?;
        Ok(Self { written, prefix })
    }
}

/// A prefix that is still one in lower case, in which registries are compared: `LOCAL` names a
/// registry, but `local` would be a part of the path.
struct Target(RepositoryPrefix);

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = words::text(deserializer)?;
        let target = RepositoryPrefix::parse(&written).and_then(|prefix| RepositoryPrefix::parse(prefix.as_str()));
        target.map(Self).map_err(|_: InvalidPrefix| D::Error::custom(InvalidPrefix::of(&written)))
    }
}
