//! Workflow commands of GitHub Actions, which become annotations of a pull request
//! (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).

use super::summary;
use crate::check::{Report, Severity};
use crate::manifest::Position;

pub(super) fn github(report: &Report) -> String {
    let mut lines = String::new();
    for unreadable in &report.unreadable {
        lines += &command("error", &unreadable.file, unreadable.position, "unreadable", &unreadable.message);
    }
    for object in &report.objects {
        for violation in &object.violations {
            let name = match violation.severity {
                Severity::Denied => "error",
                Severity::Warning => "warning",
            };
            let title = violation.policy.as_str();
            let message = format!("{}: {}", object.title(), violation.message);
            lines += &command(name, &object.file, Some(violation.position), title, &message);
        }
    }
    lines + &summary(report) + "\n"
}

fn command(name: &str, file: &str, position: Option<Position>, title: &str, message: &str) -> String {
    let place = position.map_or_else(String::new, |Position { line, column }| format!(",line={line},col={column}"));
    format!("::{name} file={}{place},title={}::{}\n", property(file), property(title), data(message))
}

/// The text after the second `::`.
fn data(text: &str) -> String {
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
}
