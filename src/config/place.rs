//! Where in a file a setting stands.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// Where the value stands to which the keys of a path lead, or its key, where that is on another
/// line; of a value that is missing, the last on the way to it that is there. An element of a list
/// is named by its place, counted from 0.
pub(super) fn of(text: &str, path: &[&str]) -> Option<Location> {
    (0..=path.len()).rev().find_map(|length| exactly(text, &path[..length]))
}

fn exactly(text: &str, path: &[&str]) -> Option<Location> {
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
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<Location>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            match self.0 {
                [first, rest @ ..] if *first == key.value => {
                    found = map.next_value_seed(At(rest))?;
                    let is_below = |value: &Location| rest.is_empty() && value.line() != key.referenced.line();
                    if found.as_ref().is_some_and(is_below) {
                        found = Some(key.referenced);
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let [first, rest @ ..] = self.0 else { return Ok(None) };
        let mut found = None;
        let mut index = 0;
        while let Some(place) = list.next_element_seed(Element(first.parse() == Ok(index), At(rest)))? {
            found = found.or(place);
            index += 1;
        }
        Ok(found)
    }
}

/// An element of a list, and whether it is the one to look into.
struct Element<'p>(bool, At<'p>);

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = Option<Location>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let Self(is_wanted, at) = self;
        if is_wanted { at.deserialize(deserializer) } else { IgnoredAny::deserialize(deserializer).map(|_| None) }
    }
}
