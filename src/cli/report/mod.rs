//! The reports of `podgate check`: one file a format.

mod github;
mod json;
mod junit;
mod mutated;
mod sarif;
mod text;

use std::fmt::Write as _;
use std::io::{self, Write};

use clap::ValueEnum;

pub(super) use mutated::mutated;
pub(super) use text::text;

use super::terminal::Style;
use crate::check::{Report, Severity};

/// How a report is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Format {
    /// A line for each violation, for people
    Text,
    /// JSON, for programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    // The help shows this as it is.
    #[expect(clippy::doc_markdown, reason = "the help shows backticks as they are")]
    /// JUnit XML, for CI servers
    Junit,
    /// Workflow commands, for GitHub Actions
    Github,
}

impl Format {
    pub(super) fn write(self, report: &Report, style: Style, output: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Text => text(report, style, output),
            Self::Json => json::json(report, output),
            Self::Sarif => sarif::sarif(report, output),
            Self::Junit => junit::junit(report, output),
            Self::Github => github::github(report, output),
        }
    }
}

/// What was found, in a line.
fn summary(report: &Report) -> String {
    let (denied, warnings) = (report.count(Severity::Denied), report.count(Severity::Warning));
    let mut parts = Vec::new();
    let mut add = |count: usize, one: &str, many: &str| {
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    add(denied, "violation", "violations");
    add(warnings, "warning", "warnings");
    add(report.unreadable.len(), "error", "errors");
    let found = if parts.is_empty() { "no violations".to_owned() } else { parts.join(", ") };
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut line = format!("{found} in {} of {}", plural(report.objects.len(), "object"), plural(report.files, "file"));
    if report.others > 0 {
        // Writing to a String does not fail.
        let _ = write!(line, "; {} of other kinds skipped", report.others);
    }
    if report.unjudged > 0 {
        let _ = write!(line, "; {} not judged, for workloads: off", plural(report.unjudged, "workload"));
    }
    if report.without_pods > 0 {
        let _ = write!(line, "; {} not judged, for want of a pod template", plural(report.without_pods, "workload"));
    }
    line
}
