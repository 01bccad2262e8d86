//! What is said of a configuration that podgate does not take.

use std::fmt;
use std::path::PathBuf;

use serde_saphyr::{Error, Location};

use crate::policy::suggestion::suggestion;

/// Why a configuration file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is larger than any ConfigMap.
    #[error("{}: the file has more than 1 MiB, which no ConfigMap can hold: is it a configuration?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is no configuration.
    #[error("{}: {fault}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        fault: Fault,
    },
}

/// What is wrong in the text of a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1, and the column, from 1, where they are known.
    place: Option<(u64, u64)>,
    what: String,
    /// The line itself.
    line: Option<String>,
}

impl Fault {
    pub(super) fn new(error: &Error, text: &str) -> Self {
        Self::at(error.location(), what(error), text)
    }

    /// A byte that is no text, after those that are.
    pub(super) fn not_utf8(before: &[u8]) -> Self {
        let before = String::from_utf8_lossy(before);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let place =
            [before.matches('\n').count(), line.chars().count()].map(|count| u64::try_from(count).unwrap_or(0) + 1);
        let what = "this byte is not UTF-8: save the file as UTF-8".to_owned();
        Self { place: Some(place.into()), what, line: Some(line.to_owned()) }
    }

    pub(super) fn at(location: Option<Location>, what: String, text: &str) -> Self {
        let place = location.map(|location| (location.line(), location.column())).filter(|(line, _)| *line > 0);
        let line = place
            .and_then(|(line, _)| text.lines().nth(usize::try_from(line - 1).ok()?))
            .map(|line| line.chars().take(160).collect());
        Self { place, what, line }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(formatter, "line {line}, column {column}: {}", self.what)?,
            None => formatter.write_str(&self.what)?,
        }
        if let (Some((number, _)), Some(line)) = (self.place, &self.line) {
            write!(formatter, "\n    {number} | {line}")?;
        }
        Ok(())
    }
}

/// How the library begins when a value has another type than is due.
const OTHER_TYPE: &str = "invalid type: ";

fn what(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("there is no key {field:?} here: {}", suggestion(field, expected, "keys"))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("{variant:?} is none of the values here: {}", suggestion(variant, expected, "values"))
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key {key:?} is here twice: keep one"),
        Error::Message { msg, .. } if !msg.starts_with(OTHER_TYPE) => msg.clone(),
        other => {
            let message = without_place(&other.to_string());
            other_type(&message).unwrap_or_else(|| in_words(message))
        }
    }
}

/// What the library says of a value of another type than is due, in terms of the file.
fn other_type(message: &str) -> Option<String> {
    let (found, due) = message.strip_prefix(OTHER_TYPE)?.rsplit_once(", expected ")?;
    let found = match found {
        "unit value" => "null",
        "sequence" => "a list",
        "map" => "keys and values",
        _ => found.split_once(' ').map_or(found, |(_, value)| value).trim_matches('`'),
    };
    Some(format!("here belongs {due}, and this is {found}"))
}

/// What the library says in terms of its own, in terms of the file.
pub(super) fn in_words(message: String) -> String {
    if let Some(due) = message.strip_prefix("invalid type: unit value, expected ") {
        return format!("this is null, where the API has a value of type {due}: write one, or remove this");
    }
    let words = match &*message {
        "expected mapping start" => "here belong keys and values, such as action: deny",
        "expected sequence start" => "here belongs a list, such as [a, b]",
        "expected string scalar" => "here belongs a text",
        _ if message.starts_with("cannot deserialize null into string") => {
            "here belongs a text, and there is none: write one, or remove this"
        }
        _ if message.starts_with("invalid u64") || message.starts_with("invalid usize") => {
            "here belongs a whole number, such as 5"
        }
        _ if message.starts_with("multiple YAML documents") => {
            "a configuration is one document: remove what follows the line ---"
        }
        _ => return message,
    };
    words.to_owned()
}

/// The message without the place that the library puts around it: ours stands before it.
fn without_place(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    first.split(" at line ").next().unwrap_or(first).to_owned()
}
