//! Scalars, as kubectl reads them: YAML 1.1 with Go's integers (`go.yaml.in/yaml/v2`, which
//! `sigs.k8s.io/yaml` uses).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Number;

use super::{Problem, Value};

/// What a plain scalar without a tag stands for.
///
/// # Errors
/// A number that JSON does not have.
pub(super) fn plain(text: &str) -> Result<Value, Problem> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => return Err(Problem::NotANumber(text.to_owned())),
        _ => match number(text) {
            Some(number) => Value::Number(number),
            None => Value::Text(text.to_owned()),
        },
    })
}

/// What a scalar with a tag of YAML's own schema stands for.
///
/// # Errors
/// A value that the tag does not fit.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Value, Problem> {
    let wrong = || Problem::WrongTag { tag: tag.to_owned(), value: text.chars().take(80).collect() };
    let value = match tag {
        "null" | "bool" | "int" | "float" => plain(text)?,
        "binary" => {
            let base64: String = text.split_ascii_whitespace().collect();
            let bytes = STANDARD.decode(base64).map_err(|_| wrong())?;
            Value::Text(String::from_utf8(bytes).map_err(|_| wrong())?)
        }
        _ => Value::Text(text.to_owned()),
    };
    let fits = match (tag, &value) {
        ("null", Value::Null) | ("bool", Value::Bool(_)) | ("float", Value::Number(_)) => true,
        ("int", Value::Number(number)) => !number.is_f64(),
        ("null" | "bool" | "int" | "float", _) => false,
        _ => true,
    };
    fits.then_some(value).ok_or_else(wrong)
}

fn number(text: &str) -> Option<Number> {
    let first = *text.as_bytes().first()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| float(&plain))
}

/// An integer with Go's prefixes: `0x`, `0b`, `0o`, and `0` for octal.
fn integer(text: &str) -> Option<Number> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(_) if digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // What from_str_radix takes and Go does not.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if is_negative { Some(i64::try_from(-i128::from(magnitude)).ok()?.into()) } else { Some(magnitude.into()) }
}

fn float(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_written_so = are_digits(whole)
        && are_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && are_digits(exponent));
    if !is_written_so {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    // Go writes a float without fraction as an integer, which the API's integers take, in as few digits as tell
    // it from others, as Rust does; from 10²¹ on with an exponent.
    let integer = if value.fract() == 0.0 && value.abs() < 1e21 { value.to_string().parse().ok() } else { None };
    integer.and_then(Number::from_i128).or_else(|| Number::from_f64(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        match plain(text) {
            Ok(Value::Null) => "null".to_owned(),
            Ok(Value::Bool(value)) => value.to_string(),
            Ok(Value::Number(number)) => number.to_string(),
            Ok(Value::Text(text)) => format!("{text:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn plain_scalars_are_those_of_kubectl() {
        for (text, is) in [
            ("", "null"),
            ("~", "null"),
            ("yes", "true"),
            ("on", "true"),
            ("Off", "false"),
            ("n", "false"),
            ("yEs", "\"yEs\""),
            ("1.2", "1.2"),
            ("1.10", "1.1"),
            ("1.0", "1"),
            ("1e3", "1000"),
            ("1e15", "1000000000000000"),
            ("1152921504606846976.0", "1152921504606847000"),
            ("1e25", "1e+25"),
            ("-.5", "-0.5"),
            ("0644", "420"),
            ("0899", "899"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0b11", "3"),
            ("-0x10", "-16"),
            ("+7", "7"),
            ("1_000", "1000"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.2.3", "\"1.2.3\""),
            ("1:30", "\"1:30\""),
            ("2026-01-31", "\"2026-01-31\""),
            ("1Gi", "\"1Gi\""),
            ("100m", "\"100m\""),
            ("--1", "\"--1\""),
            ("0x", "\"0x\""),
            (".", "\".\""),
            ("-", "\"-\""),
            ("1e", "\"1e\""),
            ("0", "0"),
            ("００", "\"００\""),
        ] {
            assert_eq!(json(text), is, "{text}");
        }
        assert_eq!(plain(".inf").map(|_| ()), Err(Problem::NotANumber(".inf".to_owned())));
    }

    #[test]
    fn tags_of_yaml_decide() {
        assert!(matches!(tagged("str", "1.2"), Ok(Value::Text(text)) if text == "1.2"));
        assert!(matches!(tagged("binary", "bmdp\nbng="), Ok(Value::Text(text)) if text == "nginx"));
        for (tag, text) in [("int", "a"), ("int", "1.5"), ("bool", "1"), ("binary", "%"), ("null", "x")] {
            assert!(matches!(tagged(tag, text), Err(Problem::WrongTag { .. })), "{tag} {text}");
        }
    }
}
