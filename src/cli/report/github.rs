//! Workflow commands of GitHub Actions, which become annotations of a pull request
//! (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).

use std::io::{self, Write};

use super::summary;
use crate::check::{Report, Severity};
use crate::cli::terminal::is_printable;
use crate::manifest::Position;

pub(super) fn github(report: &Report, output: &mut dyn Write) -> io::Result<()> {
    for unreadable in &report.unreadable {
        let command = command("error", &unreadable.file, unreadable.position, "unreadable", &unreadable.message);
        output.write_all(command.as_bytes())?;
    }
    for object in &report.objects {
        for violation in &object.violations {
            let name = match violation.severity {
                Severity::Denied => "error",
                Severity::Warning => "warning",
            };
            let title = violation.policy.as_str();
            let message = format!("{}: {}", object.title(), violation.message);
            let command = command(name, &object.file, Some(violation.position), title, &message);
            output.write_all(command.as_bytes())?;
        }
    }
    writeln!(output, "{}", summary(report))
}

fn command(name: &str, file: &str, position: Option<Position>, title: &str, message: &str) -> String {
    let (title, message) = (property(title), data(message));
    // What is no file has no line that could be annotated.
    if file == "-" {
        let place = position.map_or_else(String::new, |Position { line, column }| format!("{line}:{column}: "));
        return format!("::{name} title={title}::-:{place}{message}\n");
    }
    let place = position.map_or_else(String::new, |Position { line, column }| format!(",line={line},col={column}"));
    format!("::{name} file={}{place},title={title}::{message}\n", property(file))
}

/// The text after the second `::`. Line breaks have a spelling; other characters that would act on the
/// terminal of the log have none.
fn data(text: &str) -> String {
    let is_kept = |one: char| is_printable(one) || matches!(one, '\r' | '\n');
    let text: String = text.chars().map(|one| if is_kept(one) { one } else { '\u{fffd}' }).collect();
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which ends at a comma.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_command() {
        assert_eq!(
            command("error", "a,b:c%.yaml", Some(Position { line: 3, column: 5 }), "x", "50%\r\n::error::no"),
            "::error file=a%2Cb%3Ac%25.yaml,line=3,col=5,title=x::50%25%0D%0A::error::no\n"
        );
    }

    #[test]
    fn nothing_in_a_text_acts_on_the_terminal_of_the_log() {
        assert_eq!(
            command("error", "\u{1b}c.yaml", None, "x", "\u{1b}[2J\u{9b}0m\u{7}\u{202e}ü"),
            "::error file=\u{fffd}c.yaml,title=x::\u{fffd}[2J\u{fffd}0m\u{fffd}\u{fffd}ü\n"
        );
    }
}
