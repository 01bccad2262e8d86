//! The quick reader: JSON as kube-apiserver writes it, read strictly and in one pass.
//!
//! Nearly all that an answer costs is the reading of the body, and most of that the stepping over
//! members that no policy looks at. This reader does it in half of what `serde_json` takes: the ends
//! of strings are found for 64 bytes at a time, nothing is kept of what is skipped, and no error is
//! ever told. What it does not take it gives up on, and the caller reads the text with `serde_json`
//! instead, which either takes it or tells what is wrong. So it must take nothing that `serde_json`
//! refuses, and read it alike; it may give up on anything.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::scanner::Scanner;
pub use super::scanner::Unusual;

impl Error for Unusual {
    // What is wrong is told by the one that reads the text after this.
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Reads a text of one JSON value.
///
/// # Errors
/// When it is not of the plain kind that kube-apiserver writes, or of another type than wanted.
pub fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Unusual> {
    let mut scanner = Scanner::new(text);
    let value = T::deserialize(&mut scanner)?;
    match scanner.peek() {
        None => Ok(value),
        Some(_) => Err(Unusual),
    }
}

impl<'de> Deserializer<'de> for &mut Scanner<'de> {
    type Error = Unusual;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        match self.peek().ok_or(Unusual)? {
            b'{' => within(self, |elements| visitor.visit_map(elements)),
            b'[' => within(self, |elements| visitor.visit_seq(elements)),
            b'"' => self.deserialize_str(visitor),
            b't' => {
                self.take_word("true")?;
                visitor.visit_bool(true)
            }
            b'f' => {
                self.take_word("false")?;
                visitor.visit_bool(false)
            }
            b'n' => {
                self.take_word("null")?;
                visitor.visit_unit()
            }
            _ => match self.take_number()? {
                // Less than nothing is minus nothing as well, which is no integer to `serde_json`.
                (number, true) if number != "-0" => match number.parse() {
                    Ok(number) => visitor.visit_u64(number),
                    Err(_) => visitor.visit_i64(number.parse().map_err(|_| Unusual)?),
                },
                _ => Err(Unusual),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        if self.peek() == Some(b'n') {
            self.take_word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        let string = self.take_string()?;
        if string.has_escapes {
            return visitor.visit_string(string.unescaped()?);
        }
        visitor.visit_borrowed_str(string.inside)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// Reads a list or an object, from its first bracket to its last.
fn within<'de, T>(
    scanner: &mut Scanner<'de>,
    visit: impl FnOnce(Elements<'_, 'de>) -> Result<T, Unusual>,
) -> Result<T, Unusual> {
    let depth = scanner.depth();
    scanner.enter()?;
    let value = visit(Elements { scanner, is_first: true })?;
    // Not so when the visitor left before the last bracket.
    if scanner.depth() == depth { Ok(value) } else { Err(Unusual) }
}

/// What is left of a list or an object.
struct Elements<'r, 'de> {
    scanner: &'r mut Scanner<'de>,
    is_first: bool,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Unusual;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Unusual> {
        if !self.scanner.step(b']', &mut self.is_first)? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.scanner).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = Unusual;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Unusual> {
        if !self.scanner.step(b'}', &mut self.is_first)? {
            return Ok(None);
        }
        // A key is a string, whatever the one that wants it would take.
        match self.scanner.peek() {
            Some(b'"') => seed.deserialize(&mut *self.scanner).map(Some),
            _ => Err(Unusual),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Unusual> {
        self.scanner.take(b':')?;
        seed.deserialize(&mut *self.scanner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;

    use super::*;
    use crate::json::scanner::DEPTH_MAX;

    /// What the quick reader takes, `serde_json` takes as well, and reads alike.
    fn check(text: &str) {
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        assert!(is_json || read::<IgnoredAny>(text).is_err(), "skipped, and no JSON: {text}");
        if let Ok(value) = read::<Value>(text) {
            assert_eq!(serde_json::from_str::<Value>(text).ok(), Some(value), "{text}");
        }
    }

    #[test]
    fn reads_plain_json() {
        for text in [
            "null",
            " true\n",
            "[false,\t0, -1]",
            "18446744073709551615",
            "-9223372036854775808",
            "\"\"",
            r#""\ud83d\ude00 \"\\\/\b\f\n\r\t\u0041""#,
            "\"caf\u{e9} \u{1f600} \u{7f}\"",
            r#"{"a": {"b": [[], {}, {"c": [1, "2", null]}]}, "": ""}"#,
        ] {
            assert_eq!(read::<Value>(text).ok(), serde_json::from_str(text).ok(), "{text}");
            assert!(read::<IgnoredAny>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn gives_up_on_what_is_no_json() {
        for text in [
            "",
            " ",
            "nul",
            "nulll",
            "truefalse",
            "+1",
            "01",
            "-",
            "-01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "0x1",
            "1 2",
            "[",
            "]",
            "[1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{",
            "{]",
            "{1:2}",
            "{null:1}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a" 1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{,"a":1}"#,
            "\"",
            "\"\\",
            r#""\u12"#,
            r#""\u12g4""#,
            r#""\x""#,
            "\"a\nb\"",
            "\"1234567\u{1f}\"",
            "'a'",
            "[1]]",
            "\u{feff}1",
            "[1]\u{a0}",
            "\u{c}1",
        ] {
            assert_eq!(read::<IgnoredAny>(text).err(), Some(Unusual), "{text:?}");
            assert!(read::<Value>(text).is_err(), "{text:?}");
            check(text);
        }
    }

    #[test]
    fn leaves_numbers_that_are_no_integers_to_others() {
        for text in ["1.5", "1e3", "-0", "18446744073709551616", "1e400"] {
            assert!(read::<Value>(text).is_err(), "{text}");
            assert!(read::<IgnoredAny>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn nests_no_deeper_than_serde_json() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let limit = DEPTH_MAX as usize;
            assert!(read::<Value>(&nested(limit)).is_ok());
            assert!(read::<IgnoredAny>(&nested(limit - 1)).is_ok());
            for depth in limit + 1..limit + 4 {
                assert!(read::<Value>(&nested(depth)).is_err(), "{depth}");
                assert!(read::<IgnoredAny>(&nested(depth)).is_err(), "{depth}");
            }
            check(&nested(limit + 1));
        }
        assert!(read::<IgnoredAny>(&format!("[{}1]", "[[]],".repeat(1000))).is_ok());
        assert!(read::<IgnoredAny>(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn finds_the_end_of_a_string_wherever_it_stands() {
        for length in 0..40 {
            for filler in ["a", "\u{e9}", "\u{ff}", "!", "#", "[", "]", "\u{7f}"] {
                let text = filler.repeat(length);
                assert_eq!(read::<Value>(&format!("\"{text}\"")), Ok(Value::from(text.clone())));
                for wrong in ["\u{0}", "\u{1f}", "\n"] {
                    assert!(read::<IgnoredAny>(&format!("\"{text}{wrong}{text}\"")).is_err(), "{text}{wrong:?}");
                }
            }
        }
    }

    #[test]
    fn gives_up_where_not_all_elements_are_wanted() {
        assert_eq!(read::<Vec<u8>>("[1, 2]"), Ok(vec![1, 2]));
        assert_eq!(read::<(u8, u8)>("[1, 2]"), Err(Unusual));
        assert_eq!(read::<(u8,)>("[1, 2]"), Err(Unusual));
    }

    /// Values of all types, small and nested.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ -~]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,9}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn takes_what_is_written_as_json(value in value(), is_spaced: bool) {
            let text = if is_spaced { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            prop_assert!(read::<IgnoredAny>(&text).is_ok());
            check(&text);
        }

        #[test]
        fn takes_nothing_that_serde_json_refuses(
            value in value(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..2_usize, "[\\[\\]{}:,\"\\\\0-9eE+.tfnu \n\u{1}a-]{0,2}"), 1..4),
        ) {
            let mut characters: Vec<char> = value.to_string().chars().collect();
            for (index, removed, inserted) in changes {
                let at = index.index(characters.len() + 1);
                let end = (at + removed).min(characters.len());
                characters.splice(at..end, inserted.chars());
            }
            check(&characters.into_iter().collect::<String>());
        }
    }
}
