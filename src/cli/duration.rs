//! Durations as the command line takes them.

use std::time::Duration;

/// Reads a duration: a whole number and its unit, `ms`, `s`, `m`, `h` or `d`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    number
        .parse::<u64>()
        .ok()
        .zip(milliseconds)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .map(Duration::from_millis)
        .ok_or_else(|| "write a whole number and its unit, such as 500ms, 5s, 1m or 90d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_are_a_duration() {
        for (text, milliseconds) in
            [("0s", 0), ("500ms", 500), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000), ("90d", 7_776_000_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for text in ["", "5", "s", "5 s", "-5s", "1.5s", "5w", "99999999999999999999s", "18446744073709551615m", "５s"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
