//! Text: a line for each violation, `FILE:LINE:COLUMN: …`, as compilers write it, and a summary.

use std::io::{self, Write};

use super::{Style, summary};
use crate::check::{Report, Severity};
use crate::cli::terminal::printable;

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const GREEN: &str = "1;32";
const BOLD: &str = "1";

pub(in crate::cli) fn text(report: &Report, style: Style, output: &mut dyn Write) -> io::Result<()> {
    for unreadable in &report.unreadable {
        let place = match unreadable.position {
            Some(position) => format!("{}:{}:{}", printable(&unreadable.file), position.line, position.column),
            None => printable(&unreadable.file),
        };
        let message = printable(&unreadable.message);
        writeln!(output, "{}: {}: {message}", style.paint(BOLD, &place), style.paint(RED, "error"))?;
    }
    for object in &report.objects {
        for violation in &object.violations {
            let place =
                format!("{}:{}:{}", printable(&object.file), violation.position.line, violation.position.column);
            let colour = match violation.severity {
                Severity::Denied => RED,
                Severity::Warning => YELLOW,
            };
            writeln!(
                output,
                "{}: {}: {}: {}",
                style.paint(BOLD, &place),
                style.paint(colour, violation.severity.as_str()),
                printable(&object.title()),
                printable(&violation.message)
            )?;
        }
    }
    let colour = match (report.count(Severity::Denied), &*report.unreadable) {
        (0, []) => GREEN,
        _ => RED,
    };
    writeln!(output, "{}", style.paint(colour, &summary(report)))
}
