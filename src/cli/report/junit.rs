//! `JUnit` XML: a test suite for each file, a test case for each object.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::check::{Checked, Report, Severity, Unreadable, Violation};

pub(super) fn junit(report: &Report) -> String {
    let mut suites = String::new();
    let mut total = Counts::default();
    let files: BTreeSet<&str> = report
        .objects
        .iter()
        .map(|object| &*object.file)
        .chain(report.unreadable.iter().map(|unreadable| &*unreadable.file))
        .collect();
    for file in files {
        let mut cases = String::new();
        let mut counts = Counts::default();
        for unreadable in report.unreadable.iter().filter(|unreadable| unreadable.file == file) {
            counts.errors += 1;
            cases += &unreadable_case(unreadable);
        }
        for object in report.objects.iter().filter(|object| object.file == file) {
            let (case, has_failed) = object_case(object);
            counts.failures += usize::from(has_failed);
            counts.passed += usize::from(!has_failed);
            cases += &case;
        }
        total.add(&counts);
        // Writing to a String does not fail.
        let _ = write!(suites, "  <testsuite name=\"{}\" {counts}>\n{cases}  </testsuite>\n", Escaped(file));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"podgate\" {total}>\n{suites}</testsuites>\n"
    )
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failures: usize,
    errors: usize,
}

impl Counts {
    const fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failures += other.failures;
        self.errors += other.errors;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { passed, failures, errors } = self;
        write!(formatter, "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", passed + failures + errors)
    }
}

fn unreadable_case(unreadable: &Unreadable) -> String {
    let (name, place) = match unreadable.position {
        Some(position) => {
            let place = format!("{}:{}:{}", unreadable.file, position.line, position.column);
            (format!("line {}, column {}", position.line, position.column), place)
        }
        None => ("file".to_owned(), unreadable.file.clone()),
    };
    format!(
        "    <testcase classname=\"{}\" name=\"{}\">\n      <error type=\"unreadable\" message=\"{}\">{}</error>\n    \
         </testcase>\n",
        Escaped(&unreadable.file),
        Escaped(&name),
        Escaped(&unreadable.message),
        Escaped(&place)
    )
}

/// The test case, and whether it has failed.
fn object_case(object: &Checked) -> (String, bool) {
    let of = |severity| object.violations.iter().filter(move |violation| violation.severity == severity);
    let lines = |severity| {
        let lines = of(severity).map(|violation| line(&object.file, violation));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut case =
        format!("    <testcase classname=\"{}\" name=\"{}\"", Escaped(&object.file), Escaped(&object.title()));
    if object.violations.is_empty() {
        return (case + "/>\n", false);
    }
    case += ">\n";
    let policies: BTreeSet<&str> = of(Severity::Denied).map(|violation| violation.policy.as_str()).collect();
    let policies = policies.into_iter().collect::<Vec<_>>().join(", ");
    // Writing to a String does not fail.
    if !policies.is_empty() {
        let text = lines(Severity::Denied);
        let _ =
            writeln!(case, "      <failure type=\"{policies}\" message=\"{policies}\">{}</failure>", Escaped(&text));
    }
    let warnings = lines(Severity::Warning);
    if !warnings.is_empty() {
        let _ = writeln!(case, "      <system-out>{}</system-out>", Escaped(&warnings));
    }
    (case + "    </testcase>\n", !policies.is_empty())
}

fn line(file: &str, violation: &Violation) -> String {
    let Violation { severity, position, message, .. } = violation;
    format!("{file}:{}:{}: {}: {message}", position.line, position.column, severity.as_str())
}

/// Text in XML 1.0, in an element or an attribute; characters that XML does not have are replaced.
struct Escaped<'t>(&'t str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&apos;")?,
                '\n' | '\t' => write!(formatter, "&#{};", u32::from(character))?,
                '\u{fffe}' | '\u{ffff}' | '\0'..='\u{1f}' => formatter.write_char('\u{fffd}')?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(
            Escaped("a<b>&\"c'\n\u{1b}\u{ffff}ü").to_string(),
            "a&lt;b&gt;&amp;&quot;c&apos;&#10;\u{fffd}\u{fffd}ü"
        );
    }
}
