//! The rules for what podgate is built from, checked on what cargo resolved.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates that are here in two versions, with the reason.
const TWO_VERSIONS: [(&str, &str); 3] = [
    ("base64", "k8s-openapi, serde-saphyr and tower-http have not moved to the version that kube has"),
    ("syn", "macros are on their way from 2 to 3; it is not in the binary"),
    ("untrusted", "aws-lc-rs and rustls-webpki differ; some hundred lines"),
];

/// Crates that must not come in, with what to use instead.
const BANNED: [(&str, &str); 7] = [
    ("ring", "a second crypto provider makes rustls panic at start: aws-lc-rs"),
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
    ("rustls-pemfile", "unmaintained: rustls-pki-types"),
    ("serde_yaml", "unmaintained: serde-saphyr"),
    ("serde_yml", "unsound and unmaintained: serde-saphyr"),
    ("chrono", "time"),
];

/// Licences that may be combined with Apache-2.0.
const LICENCES: [&str; 10] = [
    "Apache-2.0",
    "MIT",
    "MIT-0",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "Zlib",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// The packages that end up in the binary or build it, on any platform: each with its version
/// and licence. `features` decided already, so that optional dependencies that are off are out.
fn shipped(metadata: &Value) -> Vec<(String, String, String)> {
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"], "nodes")
        .iter()
        .map(|node| (node["id"].as_str().unwrap_or_default(), node))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting = vec![metadata["resolve"]["root"].as_str().expect("the package is the root")];
    while let Some(id) = waiting.pop() {
        if !reached.insert(id) {
            continue;
        }
        for dependency in list(nodes[id], "deps") {
            if list(dependency, "dep_kinds").iter().any(|kind| kind["kind"] != "dev") {
                waiting.extend(dependency["pkg"].as_str());
            }
        }
    }
    let text = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    list(metadata, "packages")
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| reached.contains(id)))
        .map(|package| (text(package, "name"), text(package, "version"), text(package, "license")))
        .collect()
}

/// The name and version of each package that `cargo tree` has for this platform: unlike the metadata,
/// without what weak features name and nothing enables, or only a test enables.
fn built_here() -> BTreeSet<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
        })
        .collect()
}

#[test]
fn nothing_banned_comes_in() {
    let built: BTreeSet<String> = built_here().into_iter().map(|(name, _)| name).collect();
    assert!(built.contains("rustls"), "cargo tree lists what is built");
    for (name, instead) in BANNED {
        assert!(!built.contains(name), "{name} is in the tree: {instead}");
    }
}

#[test]
fn no_crate_is_here_twice_without_a_reason() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let all = built_here();
    assert!(all.len() > 100, "cargo tree lists what is built");
    for (name, version) in all {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|name, versions| versions.len() > 1 && !TWO_VERSIONS.iter().any(|(known, _)| known == name));
    assert!(versions.is_empty(), "{versions:?}");
}

#[test]
fn every_licence_goes_with_ours() {
    let accepts = |licence: &str| {
        // SPDX: one side of each OR is enough, every side of an AND is due.
        licence.replace('/', " OR ").replace(['(', ')'], "").split(" AND ").all(|part| {
            part.split(" OR ").any(|one| LICENCES.contains(&one.trim().trim_end_matches(" WITH LLVM-exception")))
        })
    };
    let refused: Vec<_> = shipped(&metadata()).into_iter().filter(|(_, _, licence)| !accepts(licence)).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn json_patch_is_the_one_that_kube_uses() {
    let metadata = metadata();
    let versions: Vec<&str> = list(&metadata, "packages")
        .iter()
        .filter(|package| package["name"] == "json-patch")
        .filter_map(|package| package["version"].as_str())
        .collect();
    assert_eq!(versions.len(), 1, "{versions:?}");
}
