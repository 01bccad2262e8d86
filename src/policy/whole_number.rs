//! Whole numbers of the configuration: `5`, or `5.0`, which to JSON is the same, and not in quotes.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// A whole number; `None` for a key without a value. `expected` says what belongs here.
pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Option<u32>, D::Error> {
    deserializer.deserialize_any(WholeNumber(expected))
}

struct WholeNumber(&'static str);

impl WholeNumber {
    fn other<E: Error>(&self, found: impl fmt::Display) -> E {
        E::custom(format_args!("here belongs {}, and this is {found}", self.0))
    }
}

impl Visitor<'_> for WholeNumber {
    type Value = Option<u32>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        u32::try_from(number).map(Some).map_err(|_| self.other(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        u32::try_from(number).map(Some).map_err(|_| self.other(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        let whole = if number.fract() == 0.0 { number.to_string().parse().ok() } else { None };
        whole.map(Some).ok_or_else(|| self.other(number))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Err(self.other(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(self.other(format_args!("{text:?}")))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}
