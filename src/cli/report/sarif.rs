//! SARIF 2.1.0 (OASIS), as code scanning takes it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;

use serde_json::{Value, json};

use crate::check::{Report, Severity};
use crate::manifest::Position;

/// The rule of what cannot be read.
const UNREADABLE: &str = "unreadable";

pub(super) fn sarif(report: &Report) -> io::Result<String> {
    let mut results = Vec::new();
    for unreadable in &report.unreadable {
        let position = unreadable.position.unwrap_or(Position::START);
        results.push(result(UNREADABLE, "error", &unreadable.message, &unreadable.file, position));
    }
    for object in &report.objects {
        for violation in &object.violations {
            let level = match violation.severity {
                Severity::Denied => "error",
                Severity::Warning => "warning",
            };
            let message = format!("{}: {}", object.title(), violation.message);
            results.push(result(violation.policy.as_str(), level, &message, &object.file, violation.position));
        }
    }
    let rules: BTreeSet<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    let rules: Vec<Value> = rules.into_iter().map(|id| json!({"id": id, "name": id})).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "podgate", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": report.unreadable.is_empty()}],
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn result(rule: &str, level: &str, message: &str, file: &str, position: Position) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(file)},
                "region": {"startLine": position.line, "startColumn": position.column},
            },
        }],
    })
}

/// A path as a URI reference (RFC 3986): what a path may not have is percent-encoded.
fn uri(file: &str) -> String {
    let mut uri = String::new();
    if file == "-" {
        return "stdin".to_owned();
    }
    if file.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in file.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~') {
            uri.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("a/b c%.yaml"), "a/b%20c%25.yaml");
        assert_eq!(uri("/a/ü.yaml"), "file:///a/%C3%BC.yaml");
        assert_eq!(uri("-"), "stdin");
    }
}
