//! Where in a file a setting stands.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// Where the value stands to which the keys of a path lead.
pub(super) fn of(text: &str, path: &[&str]) -> Option<Location> {
    serde_saphyr::with_deserializer_from_str(text, |deserializer| At(path).deserialize(deserializer)).ok().flatten()
}

/// What is left of a path.
struct At<'p>(&'p [&'p str]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<Location>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return Ok(Some(Spanned::<IgnoredAny>::deserialize(deserializer)?.referenced));
        }
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<Location>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            match self.0 {
                [first, rest @ ..] if *first == key => found = map.next_value_seed(At(rest))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}
