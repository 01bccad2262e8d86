//! Kubernetes quantities: `500m`, `1Gi`, `1.5G`, `2e3`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Binary suffixes by their power of two.
const BINARY_SUFFIXES: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Decimal suffixes by their power of ten.
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// The most that a quantity with a binary suffix can be, in units of 10⁻⁹: what is larger counts as this.
pub(super) const BINARY_NANO_MAX: i128 = i64::MAX as i128 * 1_000_000_000;

/// The places after the point that a quantity keeps.
const NANO_PLACES: i64 = 9;

/// An amount of a resource, as `k8s.io/apimachinery/pkg/api/resource.Quantity` reads it.
///
/// The amount is exact to 10⁻⁹, rounded away from zero beyond that, and at most 2⁶³-1 with a binary
/// suffix, as the API server does; what exceeds 128 bits of it counts as the largest amount. The text
/// is kept as its author wrote it.
#[derive(Debug, Clone)]
pub struct Quantity<'a> {
    text: Cow<'a, str>,
    nano: i128,
}

impl<'a> Quantity<'a> {
    /// Reads a quantity.
    ///
    /// # Errors
    /// The text is none that the API server would take.
    pub fn parse(text: impl Into<Cow<'a, str>>) -> Result<Self, NotAQuantity> {
        let text = text.into();
        match nano(&text) {
            Some(nano) => Ok(Self { text, nano }),
            None => Err(NotAQuantity { text: text.into_owned() }),
        }
    }

    /// The quantity as its author wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The amount in units of 10⁻⁹.
    #[must_use]
    pub const fn nano(&self) -> i128 {
        self.nano
    }

    /// The quantity with a text of its own.
    #[must_use]
    pub fn into_owned(self) -> Quantity<'static> {
        Quantity { text: Cow::Owned(self.text.into_owned()), nano: self.nano }
    }

    /// Whether the amount is zero, which the API server takes for "no limit".
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.nano == 0
    }

    /// Whether the amount is above zero.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        self.nano > 0
    }
}

/// Quantities compare by amount: `1000m` equals `1`.
impl PartialEq for Quantity<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity<'_> {}

impl PartialOrd for Quantity<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nano.cmp(&other.nano)
    }
}

/// A text that is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity: write a number with an optional suffix, such as 500m, 1 or 1Gi")]
pub struct NotAQuantity {
    text: String,
}

/// The amount in units of 10⁻⁹, or nothing when the text is no quantity.
fn nano(text: &str) -> Option<i128> {
    if text.is_empty() {
        return None;
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after_point) => split_digits(after_point),
        None => ("", rest),
    };
    let scale = scale(suffix)?;
    if whole.is_empty() && fraction.is_empty() && !scale.is_on_the_fast_path() {
        return None;
    }
    let magnitude = match scale {
        Scale::Decimal(exponent) => decimal_nano(whole, fraction, exponent),
        Scale::Binary(exponent) => binary_nano(whole, fraction, exponent),
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

enum Scale {
    /// A power of ten.
    Decimal(i32),
    /// A power of two.
    Binary(u32),
}

impl Scale {
    /// Whether the API server takes a suffix without a number, such as `m`, for zero.
    const fn is_on_the_fast_path(&self) -> bool {
        match *self {
            Self::Decimal(exponent) => exponent >= -9,
            Self::Binary(exponent) => exponent <= 40,
        }
    }
}

fn scale(suffix: &str) -> Option<Scale> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Decimal(*exponent));
    }
    if let Some((_, exponent)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Binary(*exponent));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse().ok().map(Scale::Decimal)
}

/// `whole.fraction` × 10^exponent, in units of 10⁻⁹.
fn decimal_nano(whole: &str, fraction: &str, exponent: i32) -> i128 {
    let digits = || whole.bytes().chain(fraction.bytes());
    let places = to_i64(whole.len()) + i64::from(exponent) + NANO_PLACES;
    let kept = usize::try_from(places).unwrap_or(0);
    let mut amount = fold_digits(digits().take(kept));
    let missing_zeros = places - to_i64(whole.len() + fraction.len());
    if amount > 0 && missing_zeros > 0 {
        let zeros = u32::try_from(missing_zeros).unwrap_or(u32::MAX);
        amount = amount.saturating_mul(10_i128.saturating_pow(zeros));
    }
    let rounded_up = digits().skip(kept).any(|digit| digit != b'0');
    amount.saturating_add(i128::from(rounded_up))
}

/// `whole.fraction` × 2^exponent, in units of 10⁻⁹.
fn binary_nano(whole: &str, fraction: &str, exponent: u32) -> i128 {
    let unit = (1_i128 << exponent) * 1_000_000_000;
    let mut part = 0;
    let mut rounded_up = false;
    // From the last digit to the first, so that the running value stays below one unit and the
    // remainders tell exactly whether anything was cut off.
    for digit in fraction.bytes().rev() {
        let sum = i128::from(digit - b'0') * unit + part;
        rounded_up |= sum % 10 != 0;
        part = sum / 10;
    }
    let amount = fold_digits(whole.bytes()).saturating_mul(unit).saturating_add(part);
    amount.saturating_add(i128::from(rounded_up)).min(BINARY_NANO_MAX)
}

fn fold_digits(digits: impl Iterator<Item = u8>) -> i128 {
    digits.fold(0_i128, |amount, digit| amount.saturating_mul(10).saturating_add(i128::from(digit - b'0')))
}

fn to_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

impl<'de> Deserialize<'de> for Quantity<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

/// A text without the white space around it, as the API server takes it: it trims what JSON has, in which tabs
/// and line breaks are escapes.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|one: char| one.is_whitespace() && !one.is_control())
}

impl<'de> Visitor<'de> for QuantityVisitor {
    type Value = Quantity<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity such as \"500m\" or \"1Gi\"")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Quantity::parse(trimmed(text)).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Quantity::parse(trimmed(text).to_owned()).map_err(E::custom)
    }

    // The API server takes a bare number for a quantity too.
    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Quantity::parse(number.to_string()).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Quantity::parse(number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Quantity::parse(number.to_string()).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Option<i128> {
        Quantity::parse(text).ok().map(|quantity| quantity.nano)
    }

    const ONE: i128 = 1_000_000_000;

    #[test]
    fn reads_what_the_api_server_reads() {
        for (text, expected) in [
            ("0", 0),
            ("1", ONE),
            ("+1", ONE),
            ("-1", -ONE),
            ("500m", ONE / 2),
            ("0.5", ONE / 2),
            (".5", ONE / 2),
            ("1.", ONE),
            ("1.5G", 1_500_000_000 * ONE),
            ("1Gi", (1 << 30) * ONE),
            ("1.5Ki", 1536 * ONE),
            ("10k", 10_000 * ONE),
            ("2e3", 2000 * ONE),
            ("2E3", 2000 * ONE),
            ("2E", 2_000_000_000_000_000_000 * ONE),
            ("1e-3", ONE / 1000),
            ("3n", 3),
            ("0000.0", 0),
            ("0Gi", 0),
            // As the API server has it, strange as it is.
            ("m", 0),
            ("-.Ti", 0),
            ("e-9", 0),
        ] {
            assert_eq!(amount(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn only_spaces_may_be_around_it() {
        let read = |json: &str| serde_json::from_str::<Quantity<'_>>(json).ok().map(|quantity| quantity.nano);
        assert_eq!(read("\" 1 \""), Some(ONE));
        for json in [r#""1\t""#, r#""\n1""#, r#""1\r\n""#, r#"" ""#] {
            assert_eq!(read(json), None, "{json}");
        }
    }

    #[test]
    fn rounds_away_from_zero_below_a_nano() {
        for text in ["1e-12", "0.0000000001", "0.5n", "0.00000000000000000000000000001Gi"] {
            assert_eq!(amount(text), Some(1), "{text}");
        }
        assert_eq!(amount("-0.5n"), Some(-1));
    }

    #[test]
    fn an_enormous_amount_is_the_largest_at_once() {
        for text in ["1e2147483647", &"9".repeat(10_000)] {
            assert_eq!(amount(text), Some(i128::MAX));
        }
        for text in ["8Ei", "9223372036854775807Ki", "999999999999999999999999999999999Ei"] {
            assert_eq!(amount(text), Some(i128::from(i64::MAX) * ONE), "{text}");
        }
        assert_eq!(amount("-8Ei"), Some(-i128::from(i64::MAX) * ONE));
        assert_eq!(amount("0e2147483647"), Some(0));
        assert_eq!(amount("1e-2147483648"), Some(1));
    }

    #[test]
    fn refuses_what_the_api_server_refuses() {
        for text in [
            "",
            " 1",
            "1 ",
            "1 Gi",
            "1gi",
            "1KI",
            "1K",
            "1kb",
            "1GB",
            "abc",
            "1e",
            "1e1.5",
            "0x10",
            "1,5",
            "--1",
            "3e9000000000000000000",
            "\u{661}",
            "Pi",
            "+.Ei",
            "e-10",
        ] {
            assert_eq!(amount(text), None, "{text:?}");
        }
    }

    #[test]
    fn compares_amounts_exactly() {
        let parse = |text| Quantity::parse(text).map_err(|error| error.to_string());
        assert_eq!(parse("1000m"), parse("1"));
        assert_eq!(parse("1024Mi"), parse("1Gi"));
        assert!(parse("1.000000001") > parse("1"));
        assert!(parse("1Gi") > parse("1G"));
    }
}
