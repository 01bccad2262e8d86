//! JSON: the whole report, for programs.

use std::io;

use serde_json::{Value, json};

use crate::check::{Checked, Report, Severity, Unreadable};

pub(super) fn json(report: &Report) -> io::Result<String> {
    let report = json!({
        "summary": {
            "files": report.files,
            "objects": report.objects.len(),
            "others": report.others,
            "denied": report.count(Severity::Denied),
            "warnings": report.count(Severity::Warning),
            "unreadable": report.unreadable.len(),
        },
        "objects": report.objects.iter().map(object).collect::<Vec<_>>(),
        "unreadable": report.unreadable.iter().map(unreadable).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn object(object: &Checked) -> Value {
    let violations = object.violations.iter().map(|violation| {
        json!({
            "severity": violation.severity.as_str(),
            "policy": violation.policy.as_str(),
            "field": violation.field,
            "line": violation.position.line,
            "column": violation.position.column,
            "message": violation.message,
        })
    });
    json!({
        "file": object.file,
        "line": object.position.line,
        "column": object.position.column,
        "kind": object.kind,
        "namespace": object.namespace,
        "name": object.name,
        "violations": violations.collect::<Vec<_>>(),
    })
}

fn unreadable(unreadable: &Unreadable) -> Value {
    json!({
        "file": unreadable.file,
        "line": unreadable.position.map(|position| position.line),
        "column": unreadable.position.map(|position| position.column),
        "message": unreadable.message,
    })
}
