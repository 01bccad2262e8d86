//! SARIF 2.1.0 (OASIS), as code scanning takes it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::json::{Each, write};
use crate::check::{Checked, Report, Severity, Unreadable, Violation};
use crate::manifest::Position;

/// The rule of what cannot be read.
const UNREADABLE: &str = "unreadable";

/// A `sarifLog` (section 3.13), whose results are never in memory as a whole.
#[derive(Serialize)]
struct Log<R> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<R>; 1],
}

/// A `run` (section 3.14).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<R> {
    tool: Value,
    column_kind: &'static str,
    invocations: [Value; 1],
    results: R,
}

pub(super) fn sarif(report: &Report, output: &mut dyn Write) -> io::Result<()> {
    let violations = || {
        let objects = report.objects.iter();
        objects.flat_map(|object| object.violations.iter().map(move |violation| (object, violation)))
    };
    let mut rules: BTreeSet<&str> = violations().map(|(_, violation)| violation.policy.as_str()).collect();
    if !report.unreadable.is_empty() {
        rules.insert(UNREADABLE);
    }
    let rules: Vec<Value> = rules.into_iter().map(|id| json!({"id": id, "name": id})).collect();
    let results = Each(|| {
        let unreadable = report.unreadable.iter().map(unreadable);
        unreadable.chain(violations().map(|(object, violation)| violated(object, violation)))
    });
    let run = Run {
        tool: json!({"driver": {"name": "podgate", "version": env!("CARGO_PKG_VERSION"), "rules": rules}}),
        column_kind: "unicodeCodePoints",
        invocations: [json!({"executionSuccessful": report.unreadable.is_empty()})],
        results,
    };
    write(&Log { schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] }, output)
}

fn unreadable(unreadable: &Unreadable) -> Value {
    result(UNREADABLE, "error", &unreadable.message, &unreadable.file, unreadable.position)
}

fn violated(object: &Checked, violation: &Violation) -> Value {
    let level = match violation.severity {
        Severity::Denied => "error",
        Severity::Warning => "warning",
    };
    let message = format!("{}: {}", object.title(), violation.message);
    result(violation.policy.as_str(), level, &message, &object.file, Some(violation.position))
}

fn result(rule: &str, level: &str, message: &str, file: &str, position: Option<Position>) -> Value {
    let Position { line, column } = position.unwrap_or(Position::START);
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(file)},
                "region": {"startLine": line, "startColumn": column},
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
