//! The value to which the keys of a path lead, in JSON text that was read before.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Text;

/// Reads the value to which the keys of a path lead; `None` where there is none, or none that can
/// be read as that.
#[must_use]
pub fn at<'de, T: Deserialize<'de>>(text: &'de str, path: &[&str]) -> Option<T> {
    At { path, value: PhantomData }.deserialize(&mut serde_json::Deserializer::from_str(text)).ok().flatten()
}

/// What is left of a path.
struct At<'p, T> {
    path: &'p [&'p str],
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for At<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        if self.path.is_empty() { T::deserialize(deserializer).map(Some) } else { deserializer.deserialize_map(self) }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for At<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.path {
                [first, rest @ ..] if **first == *key => {
                    found = map.next_value_seed(At { path: rest, value: PhantomData })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there() {
        let text = r#"{"a": {"x": [1], "b\u0063": {"d": 7}}, "e": null}"#;
        assert_eq!(at::<u8>(text, &["a", "bc", "d"]), Some(7));
        assert_eq!(at::<Vec<u8>>(text, &["a", "x"]), Some(vec![1]));
        for path in [&["a", "d"][..], &["e", "d"], &["a", "x", "0"], &["a", "bc"]] {
            assert_eq!(at::<u8>(text, path), None, "{path:?}");
        }
    }
}
