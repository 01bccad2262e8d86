//! A map of strings, such as labels.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{Keys, Text};

/// A JSON object whose values are strings; `null` for one is an empty one, as Go decodes it.
#[derive(Debug, Clone, Default)]
pub struct TextMap<'a>(Vec<(Text<'a>, Text<'a>)>);

impl TextMap<'_> {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| &**known == key).map(|(_, value)| &**value)
    }
}

impl<'de> Deserialize<'de> for TextMap<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TextMapVisitor)
    }
}

struct TextMapVisitor;

impl<'de> Visitor<'de> for TextMapVisitor {
    type Value = TextMap<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextMap<'de>, A::Error> {
        let mut members = Vec::new();
        let mut keys = Keys::default();
        while let Some((key, value)) = map.next_entry::<Text<'de>, Option<Text<'de>>>()? {
            keys.insert(key.clone()).map_err(A::Error::custom)?;
            members.push((key, value.unwrap_or_default()));
        }
        Ok(TextMap(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_strings_and_nothing_else() {
        let map: TextMap<'_> = serde_json::from_str(r#"{"a": "1", "b/\u0063": null}"#).unwrap();
        assert_eq!((map.get("a"), map.get("b/c"), map.get("c")), (Some("1"), Some(""), None));
        for wrong in [r#"{"a": 1}"#, r#"{"a": "1", "a": "1"}"#, "[]", "null"] {
            assert!(serde_json::from_str::<TextMap<'_>>(wrong).is_err(), "{wrong}");
        }
    }
}
