//! Text: a line for each violation, `FILE:LINE:COLUMN: …`, as compilers write it, and a summary.

use std::fmt::Write as _;
use std::io::IsTerminal;

use super::summary;
use crate::check::{Report, Severity};

/// Whether there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// What the output and the environment ask for: `NO_COLOR` (<https://no-color.org>) before
    /// `CLICOLOR_FORCE` before what a terminal can.
    pub(in crate::cli) fn of(output: &impl IsTerminal) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let has_no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if !has_no_colour && (is_set("CLICOLOR_FORCE") || output.is_terminal()) { Self::Coloured } else { Self::Plain }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        }
    }
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const GREEN: &str = "1;32";
const BOLD: &str = "1";

pub(in crate::cli) fn text(report: &Report, style: Style) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    for unreadable in &report.unreadable {
        let place = match unreadable.position {
            Some(position) => format!("{}:{}:{}", printable(&unreadable.file), position.line, position.column),
            None => printable(&unreadable.file),
        };
        let message = printable(&unreadable.message);
        let _ = writeln!(text, "{}: {}: {message}", style.paint(BOLD, &place), style.paint(RED, "error"));
    }
    for object in &report.objects {
        for violation in &object.violations {
            let place =
                format!("{}:{}:{}", printable(&object.file), violation.position.line, violation.position.column);
            let colour = match violation.severity {
                Severity::Denied => RED,
                Severity::Warning => YELLOW,
            };
            let _ = writeln!(
                text,
                "{}: {}: {}: {}",
                style.paint(BOLD, &place),
                style.paint(colour, violation.severity.as_str()),
                printable(&object.title()),
                violation.message
            );
        }
    }
    let colour = match (report.count(Severity::Denied), &*report.unreadable) {
        (0, []) => GREEN,
        _ => RED,
    };
    let _ = writeln!(text, "{}", style.paint(colour, &summary(report)));
    text
}

/// Text from a file without what would act on a terminal.
fn printable(name: &str) -> String {
    name.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}
