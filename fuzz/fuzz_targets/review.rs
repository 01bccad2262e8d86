//! The bytes of a review through both webhooks, under the default policy and under one with
//! everything on: no panic, never a 5xx, an answer that is JSON, and a patch that applies and after
//! which there is nothing more to patch.

#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use podgate::admission::{self, Verdict, Webhook};
use podgate::config;
use podgate::policy::Policies;
use serde_json::Value;
use time::Date;

/// Everything that is off by default, in a configuration that denies all it can.
const EVERYTHING: &str = include_str!("everything.yaml");

static POLICIES: LazyLock<[Policies; 2]> = LazyLock::new(|| {
    [Policies::default(), config::parse(EVERYTHING).unwrap_or_else(|fault| panic!("everything.yaml: {fault}"))]
});

fuzz_target!(|body: &[u8]| {
    for policies in &*POLICIES {
        check_validate(policies, body);
        check_mutate(policies, body);
    }
});

/// Answers, and reads what every answer has to be.
fn answer(policies: &Policies, webhook: Webhook, body: &[u8]) -> Value {
    let answer = admission::answer(policies, webhook, body, Date::MIN);
    let whole: Value = serde_json::from_slice(&answer.body).expect("an answer is JSON");
    match answer.verdict {
        Verdict::Malformed => {
            assert_eq!(answer.status, 400);
            assert_eq!(whole["kind"], "Status");
            assert_ne!(whole["message"], "");
            return Value::Null;
        }
        Verdict::Denied | Verdict::Invalid => {
            assert_eq!(whole["response"]["allowed"], false);
            assert_ne!(whole["response"]["status"]["message"], "");
            assert!(answer.event.is_some(), "a denial is logged");
        }
        Verdict::Allowed | Verdict::Patched => assert_eq!(whole["response"]["allowed"], true),
    }
    assert_eq!(answer.status, 200);
    assert_ne!(whole["response"]["uid"], "");
    assert_eq!(whole["response"].get("patch").is_some(), answer.verdict == Verdict::Patched);
    whole["response"].clone()
}

fn check_validate(policies: &Policies, body: &[u8]) {
    let response = answer(policies, Webhook::Validate, body);
    assert!(response.get("patch").is_none(), "only /mutate patches");
}

fn check_mutate(policies: &Policies, body: &[u8]) {
    let response = answer(policies, Webhook::Mutate, body);
    let Some(patch) = response.get("patch").and_then(Value::as_str) else { return };
    // A number too large for a Value, in a member that podgate skips, is no fault of the patch.
    let Ok(mut review) = serde_json::from_slice::<Value>(body) else { return };
    let patch = STANDARD.decode(patch).expect("a patch is base64");
    let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch is a JSON Patch");
    json_patch::patch(&mut review["request"]["object"], &patch).expect("the patch applies");
    let again = answer(policies, Webhook::Mutate, review.to_string().as_bytes());
    assert_eq!(again["allowed"], true, "what was patched is allowed again: {again}");
    assert!(again.get("patch").is_none(), "twice is not once: {patch}");
}
