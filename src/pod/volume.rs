//! `spec.volumes[]`, as far as policies read it.

use serde::de::MapAccess;

use crate::json::{self, Members, Text};

/// A `v1.Volume`.
#[derive(Debug, Clone, Default)]
pub struct Volume<'a> {
    /// `name`.
    pub name: Text<'a>,
    /// `hostPath`.
    pub host_path: Option<HostPathVolume<'a>>,
    /// `image` (KEP-4639).
    pub image: Option<ImageVolume<'a>>,
}

impl Volume<'_> {
    /// The same, borrowed from nothing.
    #[must_use]
    pub fn into_owned(self) -> Volume<'static> {
        Volume {
            name: self.name.into_owned(),
            host_path: self.host_path.map(|host_path| HostPathVolume { path: host_path.path.into_owned() }),
            image: self.image.map(|image| ImageVolume { reference: image.reference.into_owned() }),
        }
    }
}

impl<'de> Members<'de> for Volume<'de> {
    const EXPECTED: &'static str = "a Volume";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "name" => self.name = map.next_value::<Option<_>>()?.unwrap_or_default(),
            "hostPath" => self.host_path = json::optional_object(map)?,
            "image" => self.image = json::optional_object(map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.HostPathVolumeSource`.
#[derive(Debug, Clone, Default)]
pub struct HostPathVolume<'a> {
    /// `path`; empty where it is missing.
    pub path: Text<'a>,
}

impl<'de> Members<'de> for HostPathVolume<'de> {
    const EXPECTED: &'static str = "a HostPathVolumeSource";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "path" => self.path = map.next_value::<Option<_>>()?.unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A `v1.ImageVolumeSource`.
#[derive(Debug, Clone, Default)]
pub struct ImageVolume<'a> {
    /// `reference`; empty where it is missing.
    pub reference: Text<'a>,
}

impl<'de> Members<'de> for ImageVolume<'de> {
    const EXPECTED: &'static str = "an ImageVolumeSource";

    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "reference" => self.reference = map.next_value::<Option<_>>()?.unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
