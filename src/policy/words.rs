//! Texts of the configuration: what is not written as text is told, and never taken for one.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A text.
pub(super) struct Words(pub(super) String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

/// Reads a text.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Words::deserialize(deserializer).map(|Words(text)| text)
}

struct WordsVisitor;

const QUOTE_IT: &str = "here belongs a text, and this is none without quotes: quote it";

impl Visitor<'_> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Words, E> {
        Err(E::custom(QUOTE_IT))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Words, E> {
        Err(E::custom(QUOTE_IT))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Words, E> {
        Err(E::custom(QUOTE_IT))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Words, E> {
        Err(E::custom(QUOTE_IT))
    }

    fn visit_unit<E: Error>(self) -> Result<Words, E> {
        Err(E::custom("here belongs a text, and there is none: write one, or remove this"))
    }
}
