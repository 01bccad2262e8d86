//! A quantity above zero, as settings have it.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::pod::Quantity;

/// A quantity above zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositiveQuantity(Quantity<'static>);

impl PositiveQuantity {
    /// Reads one; `None` where the text is no quantity, or one of zero or less.
    #[must_use]
    pub fn parse(text: &'static str) -> Option<Self> {
        Quantity::parse(text).ok().filter(Quantity::is_positive).map(Self)
    }

    /// The same, as a quantity.
    #[must_use]
    pub const fn as_quantity(&self) -> &Quantity<'static> {
        &self.0
    }
}

impl fmt::Display for PositiveQuantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for PositiveQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let quantity =
            Quantity::deserialize(deserializer).map_err(|error| serde::de::Error::custom(error.to_string()))?;
        if !quantity.is_positive() {
            return Err(serde::de::Error::custom(format_args!(
                "{} is nothing: write an amount above zero, or leave it out",
                quantity.as_str()
            )));
        }
        Ok(Self(quantity.into_owned()))
    }
}
