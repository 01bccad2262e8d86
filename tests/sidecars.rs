//! What `podgate config check` says of each sidecar in `tests/sidecars`. The end-to-end tests ask a
//! real kube-apiserver the same.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "support/sidecar_cases.rs"]
mod sidecar_cases;

use podgate::config::parse;
use sidecar_cases::cases;

#[test]
fn what_the_api_server_refuses_in_every_pod_is_named_with_its_place() {
    let mut wrong = Vec::new();
    for case in cases("refused") {
        let (place, said) = case.fault();
        match parse(&case.text) {
            Ok(_) => wrong.push(format!("{}: was taken", case.name)),
            Err(fault) => {
                let fault = fault.to_string();
                if !fault.starts_with(&place) || !fault.contains(said) {
                    wrong.push(format!("{}: {fault}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_api_server_takes_is_taken() {
    let faults = cases("taken").into_iter().filter_map(|case| {
        let fault = parse(&case.text).err()?;
        Some(format!("{}: {fault}", case.name))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
