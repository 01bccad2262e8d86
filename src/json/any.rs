//! JSON values that podgate reads past.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Keys, Text};

/// How deep a skipped value may nest: with the twelve levels at which the deepest of them can
/// stand, 128 in all, where `serde_json` stops as well.
const SKIPPED_DEPTH_MAX: usize = 116;

/// A value that podgate has no use for, of any type.
///
/// `serde_json` skips without counting depth, which is fast and needs no stack; the depth is
/// looked at afterwards, for what is skipped here may be read with a stack elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let skipped = <&RawValue>::deserialize(deserializer)?;
        if nests_deeper(skipped.get(), SKIPPED_DEPTH_MAX) {
            return Err(D::Error::custom("recursion limit exceeded"));
        }
        Ok(Self)
    }
}

/// Whether JSON text nests deeper than `limit`.
fn nests_deeper(json: &str, limit: usize) -> bool {
    // Each level takes two bytes, so that most values need no look at all; and few brackets, be
    // they in strings, cannot nest deep. '[' and '{' differ in one bit.
    let openings = || json.bytes().filter(|byte| byte | 0x20 == b'{').count();
    json.len() / 2 > limit && openings() > limit && depth(json) > limit
}

fn depth(json: &str) -> usize {
    let mut deepest = 0;
    let mut depth = 0_usize;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => while bytes.next().is_some_and(|byte| is_inside_string(byte, &mut bytes)) {},
            _ => {}
        }
    }
    deepest
}

/// Whether a string goes on after `byte`; what a backslash escapes is taken with it.
fn is_inside_string(byte: u8, rest: &mut impl Iterator<Item = u8>) -> bool {
    if byte == b'\\' {
        rest.next();
    }
    byte != b'"'
}

/// A value of any type in which no object repeats a key, and that nests no deeper than
/// `serde_json` goes; for telling errors apart, off the hot path.
#[derive(Debug, Clone, Copy)]
pub struct WithoutRepeatedKeys;

impl<'de> Deserialize<'de> for WithoutRepeatedKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for WithoutRepeatedKeys {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = Keys::default();
        while let Some((key, _)) = map.next_entry::<Text<'de>, Self>()? {
            keys.insert(key).map_err(A::Error::custom)?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", r#"{"a":["#.repeat(depth / 2), "]}".repeat(depth / 2))
    }

    #[test]
    fn counts_depth_outside_of_strings() {
        assert_eq!(depth(&nested(300)), 300);
        assert_eq!(depth(r#"{"[[[":["\"[{","\\"],"b":[[1]]}"#), 3);
        assert_eq!(depth("1"), 0);
    }

    #[test]
    fn skips_to_a_limit() {
        let skip = |json: &str| serde_json::from_str::<Skipped>(json).is_ok();
        assert!(skip(&nested(SKIPPED_DEPTH_MAX)));
        assert!(!skip(&nested(SKIPPED_DEPTH_MAX + 2)));
        assert!(skip(&format!("[{}]", "[],".repeat(500) + "1")));
        assert!(skip("1e400"));
        assert!(!skip("[1,]"));
    }
}
