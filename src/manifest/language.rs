//! What a file is written in: YAML, or JSON, of which it may have several values one after the other.

use std::path::Path;
use std::rc::Rc;

use serde::de::IgnoredAny;

use super::builder::{Documents, template_lines};
use super::{Fault, Node, Position, Problem};

/// What a file is meant to be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// YAML, or JSON.
    Yaml,
    /// JSON; YAML in braces is taken too, as kubectl does.
    Json,
}

impl Language {
    /// What the ending of a file's name says.
    #[must_use]
    pub fn of(file: &str) -> Self {
        match Path::new(file).extension() {
            Some(ending) if ending.eq_ignore_ascii_case("json") => Self::Json,
            _ => Self::Yaml,
        }
    }
}

/// Reads the documents of a file, one after the other; empty ones are left out. A fault ends its document only.
#[must_use]
pub fn documents(bytes: &[u8], language: Language) -> Box<dyn Iterator<Item = Result<Rc<Node>, Fault>> + '_> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => return Box::new(std::iter::once(Err(not_utf8(&bytes[..error.valid_up_to()])))),
    };
    if !text.trim_start().starts_with(['{', '[']) && language == Language::Yaml {
        return Box::new(Documents::new(text, Position::START));
    }
    let (values, fault) = json_values(text);
    let values = values.into_iter().flat_map(|(text, origin)| Documents::new(text, origin));
    let Some((fault, rest)) = fault else { return Box::new(values) };
    let as_yaml: Vec<_> = Documents::new(text, Position::START).collect();
    let has_documents = rest.trim_start().starts_with("---");
    let is_yaml = !as_yaml.iter().any(|document| matches!(document, Err(Fault { problem: Problem::Syntax(_), .. })));
    if is_yaml || !(language == Language::Json || looks_like_json(text) && !has_documents) {
        return Box::new(as_yaml.into_iter());
    }
    Box::new(values.chain(std::iter::once(Err(fault))))
}

/// Whether a text begins as an object does in JSON, and hardly in YAML: with a key in quotes.
fn looks_like_json(text: &str) -> bool {
    text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'))
}

/// What is no JSON, and what is wrong in it.
type NoJson<'t> = (Fault, &'t str);

/// The values of a text in JSON, each with the place where it begins, up to what is none.
fn json_values(text: &str) -> (Vec<(&str, Position)>, Option<NoJson<'_>>) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut values = Vec::new();
    let (mut position, mut begin) = (Position::START, 0);
    loop {
        let after_last = stream.byte_offset();
        let next = stream.next();
        let end = stream.byte_offset();
        let value = text[after_last..end].trim_start();
        let at = end - value.len();
        match next {
            None => return (values, None),
            Some(Ok(_)) => {
                position = position.after(&text[begin..at]);
                begin = at;
                values.push((value, position));
            }
            Some(Err(error)) => {
                let message = error.to_string();
                let problem = Problem::NotJson(message.split(" at line ").next().unwrap_or_default().to_owned());
                let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
                // The library counts bytes.
                let before = line.bytes().take(error.column()).filter(|byte| byte & 0xC0 != 0x80).count();
                let place = Position { line: error.line().max(1), column: before.max(1) };
                let first_line = position.after(&text[begin..after_last]).line;
                let fault = Fault::new(place, problem).near_template(&template_lines(text, 1), first_line);
                return (values, Some((fault, &text[after_last..])));
            }
        }
    }
}

fn not_utf8(before: &[u8]) -> Fault {
    let before = String::from_utf8_lossy(before);
    Fault::new(Position::START.after(&before), Problem::NotUtf8)
}
