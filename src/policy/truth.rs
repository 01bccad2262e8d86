//! Truth values of the configuration: `true` or `false`, and not a text that looks like one.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// A truth value; `true` for a key without a value.
pub(super) fn or_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(Truth { without_value: true })
}

/// A truth value; `false` for a key without a value.
pub(super) fn or_false<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(Truth { without_value: false })
}

struct Truth {
    without_value: bool,
}

impl Visitor<'_> for Truth {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true or false, without quotes")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(self.without_value)
    }

    fn visit_none<E: Error>(self) -> Result<bool, E> {
        Ok(self.without_value)
    }
}
