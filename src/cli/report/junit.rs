//! `JUnit` XML: a test suite for each file, a test case for each object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::check::{Checked, Report, Severity, Unreadable, Violation};
use crate::cli::terminal::is_printable;

pub(super) fn junit(report: &Report, output: &mut dyn Write) -> io::Result<()> {
    let mut suites: BTreeMap<&str, Suite<'_>> = BTreeMap::new();
    for unreadable in &report.unreadable {
        suites.entry(&unreadable.file).or_default().unreadable.push(unreadable);
    }
    for object in &report.objects {
        suites.entry(&object.file).or_default().objects.push(object);
    }
    let mut total = Counts::default();
    for suite in suites.values() {
        total.add(&suite.counts());
    }
    writeln!(output, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"podgate\" {total}>")?;
    for (file, suite) in suites {
        writeln!(output, "  <testsuite name=\"{}\" {}>", Escaped(file), suite.counts())?;
        for unreadable in suite.unreadable {
            output.write_all(unreadable_case(unreadable).as_bytes())?;
        }
        for object in suite.objects {
            output.write_all(object_case(object).as_bytes())?;
        }
        writeln!(output, "  </testsuite>")?;
    }
    writeln!(output, "</testsuites>")
}

/// What there is of a file.
#[derive(Default)]
struct Suite<'r> {
    unreadable: Vec<&'r Unreadable>,
    objects: Vec<&'r Checked>,
}

impl Suite<'_> {
    fn counts(&self) -> Counts {
        let failures = self.objects.iter().filter(|object| has_failed(object)).count();
        Counts { passed: self.objects.len() - failures, failures, errors: self.unreadable.len() }
    }
}

fn has_failed(object: &Checked) -> bool {
    object.violations.iter().any(|violation| violation.severity == Severity::Denied)
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

fn object_case(object: &Checked) -> String {
    let of = |severity| object.violations.iter().filter(move |violation| violation.severity == severity);
    let lines = |severity| {
        let lines = of(severity).map(|violation| line(&object.file, violation));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut case =
        format!("    <testcase classname=\"{}\" name=\"{}\"", Escaped(&object.file), Escaped(&object.title()));
    if object.violations.is_empty() {
        return case + "/>\n";
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
    case + "    </testcase>\n"
}

fn line(file: &str, violation: &Violation) -> String {
    let Violation { severity, position, message, .. } = violation;
    format!("{file}:{}:{}: {}: {message}", position.line, position.column, severity.as_str())
}

/// Text in XML 1.0, in an element or an attribute; characters that XML does not have, or that
/// would act on a terminal, are replaced.
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
                '\u{fffe}' | '\u{ffff}' => formatter.write_char('\u{fffd}')?,
                other if !is_printable(other) => formatter.write_char('\u{fffd}')?,
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
            Escaped("a<b>&\"c'\n\u{1b}\u{9b}\u{ffff}ü").to_string(),
            "a&lt;b&gt;&amp;&quot;c&apos;&#10;\u{fffd}\u{fffd}\u{fffd}ü"
        );
    }
}
