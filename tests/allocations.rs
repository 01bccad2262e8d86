//! How many allocations an answer takes. A count, unlike a time, is the same on every machine.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../benches/reviews.rs"]
mod reviews;

use allocation_counter::measure;
use podgate::admission::{self, Verdict, Webhook};
use serde_json::{Value, json};

/// The allocations of an answer that has this verdict.
fn allocations(webhook: Webhook, review: &Value, verdict: Verdict) -> u64 {
    let (policies, body, today) = (reviews::policies(), reviews::body(review), reviews::today());
    // What is made once and for all is there after the first answer.
    let mut answer = admission::answer(&policies, webhook, &body, today);
    assert_eq!(answer.verdict, verdict);
    measure(|| answer = admission::answer(&policies, webhook, &body, today)).count_total
}

#[test]
fn an_answer_takes_few() {
    let patched = allocations(Webhook::Mutate, &reviews::small(), Verdict::Patched);
    assert!(patched <= 18, "{patched}");
    let allowed = allocations(Webhook::Validate, &reviews::hardened(&reviews::small()), Verdict::Allowed);
    assert!(allowed <= 7, "{allowed}");
    let updated = allocations(Webhook::Validate, &reviews::update(&reviews::small()), Verdict::Allowed);
    assert!(updated <= 11, "{updated}");
}

#[test]
fn a_denial_takes_few() {
    let mut review = reviews::hardened(&reviews::small());
    review["request"]["object"]["spec"]["hostNetwork"] = true.into();
    let denied = allocations(Webhook::Validate, &review, Verdict::Denied);
    assert!(denied <= 50, "{denied}");
}

#[test]
fn what_podgate_does_not_judge_takes_as_good_as_none() {
    let mut review = reviews::small();
    review["request"]["kind"] = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    review["request"]["resource"] = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let passed = allocations(Webhook::Validate, &review, Verdict::Allowed);
    assert!(passed <= 4, "{passed}");
}

#[test]
fn a_container_more_takes_few_more() {
    let of = |count| allocations(Webhook::Mutate, &reviews::with_containers(count), Verdict::Patched);
    let (few, many) = (of(10), of(210));
    assert!(many - few <= 200 * 5, "{few} and {many}");
    let of = |count| {
        let review = reviews::hardened(&reviews::with_containers(count));
        allocations(Webhook::Validate, &review, Verdict::Allowed)
    };
    let (few, many) = (of(10), of(210));
    // The list that grows, and nothing for each container.
    assert!(many - few <= 10, "{few} and {many}");
}

#[test]
fn what_is_skipped_takes_none() {
    for webhook in [Webhook::Mutate, Webhook::Validate] {
        let of = |bytes| {
            let review = reviews::with_environment(bytes);
            match webhook {
                Webhook::Mutate => allocations(webhook, &review, Verdict::Patched),
                Webhook::Validate => allocations(webhook, &reviews::hardened(&review), Verdict::Allowed),
            }
        };
        assert_eq!(of(1 << 10), of(1 << 20));
    }
}
