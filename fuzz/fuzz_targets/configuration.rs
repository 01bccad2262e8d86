//! A configuration: taken, and then it judges any pod; or refused, with the place in the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use podgate::admission::{self, Webhook};
use podgate::config;
use time::Date;

/// Breaks every policy, so that each has something to say.
const REVIEW: &[u8] = include_bytes!("breaks_everything.json");

fuzz_target!(|text: &str| {
    let policies = match config::parse(text) {
        Ok(policies) => policies,
        Err(fault) => return check_fault(&fault.to_string(), text),
    };
    for advice in policies.advice(Date::MAX) {
        assert!(!advice.to_string().is_empty());
    }
    for webhook in [Webhook::Mutate, Webhook::Validate] {
        for today in [Date::MIN, Date::MAX] {
            assert_eq!(admission::answer(&policies, webhook, REVIEW, today).status, 200);
        }
    }
});

fn check_fault(fault: &str, text: &str) {
    assert!(!fault.is_empty());
    let Some((line, _)) = fault.strip_prefix("line ").and_then(|rest| rest.split_once(',')) else { return };
    let line: usize = line.parse().unwrap_or_else(|_| panic!("{fault}"));
    // A file may end too early, which shows on the line after its last.
    assert!((1..=text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1).contains(&line), "{fault}");
}
