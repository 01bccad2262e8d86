//! JSON: the whole report, for programs.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::check::{Checked, Report, Severity, Unreadable};
use crate::cli::terminal::is_printable;

pub(super) fn json(report: &Report, output: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Json<S, O, U> {
        summary: S,
        objects: O,
        unreadable: U,
    }
    let summary = json!({
        "files": report.files,
        "objects": report.objects.len(),
        "others": report.others,
        "unjudged": report.unjudged + report.without_pods,
        "denied": report.count(Severity::Denied),
        "warnings": report.count(Severity::Warning),
        "unreadable": report.unreadable.len(),
    });
    let objects = Each(|| report.objects.iter().map(object));
    write(&Json { summary, objects, unreadable: Each(|| report.unreadable.iter().map(unreadable)) }, output)
}

/// Writes a value as JSON on a terminal may be: characters that would act on it are escaped.
pub(super) fn write(value: &impl Serialize, output: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(Escaping(output), value)?;
    output.write_all(b"\n")
}

/// A list that is never in memory as a whole.
pub(super) struct Each<F>(pub(super) F);

impl<F: Fn() -> I, I: Iterator<Item = Value>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// JSON in which what is not printable is escaped: it can be in strings only, and `serde_json` leaves the
/// characters from U+007F on to us.
struct Escaping<'o>(&'o mut dyn Write);

impl Write for Escaping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is written at a time is a token or a part of one, and so text.
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        let is_escaped = |one: char| one > '\u{7e}' && !is_printable(one);
        let mut rest = text;
        while let Some((at, one)) = rest.char_indices().find(|(_, one)| is_escaped(*one)) {
            write!(self.0, "{}\\u{:04x}", &rest[..at], u32::from(one))?;
            rest = &rest[at + one.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
        "file": &*object.file,
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

#[cfg(test)]
mod tests {
    use super::write;

    #[test]
    fn what_would_act_on_a_terminal_is_escaped_and_nothing_is_lost() {
        let text = "a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\n\"ü😀";
        let mut output = Vec::new();
        write(&text, &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        assert_eq!(output, "\"a\\u001b[31m\\u007f\\u009b2J\\u202e\\n\\\"ü😀\"\n");
        assert_eq!(serde_json::from_str::<String>(&output).unwrap(), text);
    }
}
