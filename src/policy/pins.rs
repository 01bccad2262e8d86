//! `pins` of the mutation `images`: the versions of repositories.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::words;
use crate::pod::ImageReference;

/// Repositories, each with its version, as the configuration file has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pins(Vec<Pin>);

/// A repository with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pin {
    /// The repository as the configuration file has it.
    pub(super) written: String,
    /// The repository in full.
    pub(super) repository: String,
    pub(super) version: Version,
}

/// What names one image of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version {
    Tag(String),
    Digest(String),
}

impl Pins {
    pub(super) fn each(&self) -> impl Iterator<Item = &Pin> {
        self.0.iter()
    }
}

/// What a pin may not be.
#[derive(Debug, thiserror::Error)]
enum InvalidPin {
    #[error("{0:?} is no repository: write one without tag and digest, such as nginx or quay.io/acme/app")]
    Repository(String),
    #[error("{0:?} is neither a tag, such as \"1.27.3\", nor a digest: sha256: and 64 lower-case hexadecimal digits")]
    Version(String),
    #[error("a number is no tag, for YAML does not keep how it is written: quote it, as in \"1.30\"")]
    Unquoted,
    #[error("there is no version: write a tag in quotes, such as \"1.27.3\", or a digest")]
    Missing,
}

impl<'de> Deserialize<'de> for Pins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PinsVisitor)
    }
}

struct PinsVisitor;

impl<'de> Visitor<'de> for PinsVisitor {
    type Value = Pins;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map from repositories to tags or digests")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pins, A::Error> {
        let mut pins = Pins::default();
        while let Some(Repository { written, full }) = map.next_key()? {
            pins.0.push(Pin { written, repository: full, version: map.next_value()? });
        }
        Ok(pins)
    }
}

struct Repository {
    written: String,
    full: String,
}

impl<'de> Deserialize<'de> for Repository {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = words::text(deserializer)?;
        let full = match ImageReference::parse(&written) {
            Ok(reference @ ImageReference { tag: None, digest: None, .. }) => reference.full_repository(),
            _ => return Err(D::Error::custom(InvalidPin::Repository(written))),
        };
        Ok(Self { written, full })
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VersionVisitor)
    }
}

struct VersionVisitor;

impl Visitor<'_> for VersionVisitor {
    type Value = Version;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a tag in quotes, or a digest")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Version, E> {
        if ImageReference::parse(&format!("a:{text}")).is_ok_and(|read| read.tag == Some(text)) {
            return Ok(Version::Tag(text.to_owned()));
        }
        if ImageReference::parse(&format!("a@{text}")).is_ok_and(|read| read.digest == Some(text)) {
            return Ok(Version::Digest(text.to_owned()));
        }
        Err(E::custom(InvalidPin::Version(text.to_owned())))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Version, E> {
        Err(E::custom(InvalidPin::Unquoted))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Version, E> {
        Err(E::custom(InvalidPin::Unquoted))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Version, E> {
        Err(E::custom(InvalidPin::Unquoted))
    }

    fn visit_unit<E: Error>(self) -> Result<Version, E> {
        Err(E::custom(InvalidPin::Missing))
    }
}
