//! `message`: the words of a cluster's administrators in place of podgate's own.
//!
//! A text in which `{container}`, `{path}` and `{found}` are filled in, and `{{` and `}}` are
//! braces. What a denial says besides, the policy's name and `details.causes`, stays.

use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};

use super::words;

/// A message with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(Placeholder),
}

/// What a message can have filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    /// The name of the container, or of the volume; `pod` for the pod as a whole.
    Container,
    /// The path of the field.
    Path,
    /// The value found there.
    Found,
}

impl Placeholder {
    const ALL: [Self; 3] = [Self::Container, Self::Path, Self::Found];

    const fn name(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Path => "path",
            Self::Found => "found",
        }
    }
}

/// Why a text is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    /// There is nothing in it.
    #[error("an empty message tells nobody what to do: write one, or leave it out for podgate's own")]
    Empty,
    /// A control character other than a line break, which a warning has as a space.
    #[error("a message has no control characters but line breaks: remove {0:?}")]
    Control(char),
    /// A name in braces that nothing is filled in for.
    #[error("nothing is filled in for {{{0}}}: there are {{container}}, {{path}} and {{found}}, and {{{{ is a brace")]
    Unknown(String),
    /// A brace without its counterpart.
    #[error("a {{ without its }}, or a }} without its {{: write {{{{ or }}}} for a brace")]
    Unbalanced,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// An empty text, a control character in it, a name in braces that is not known, or a brace without its counterpart.
    pub fn parse(text: &str) -> Result<Self, InvalidMessage> {
        if text.trim().is_empty() {
            return Err(InvalidMessage::Empty);
        }
        // The last line break is that of a block in YAML.
        let text = text.trim_end_matches(['\r', '\n']);
        if let Some(control) = text.chars().find(|one| one.is_control() && *one != '\n') {
            return Err(InvalidMessage::Control(control));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, braced) = rest.split_at(at);
            plain.push_str(before);
            if let Some((brace, after)) =
                ["{{", "}}"].iter().find_map(|pair| Some((&pair[1..], braced.strip_prefix(pair)?)))
            {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let (name, after) =
                braced.strip_prefix('{').and_then(|inner| inner.split_once('}')).ok_or(InvalidMessage::Unbalanced)?;
            let placeholder = Placeholder::ALL.into_iter().find(|known| known.name() == name);
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Placeholder(placeholder.ok_or_else(|| InvalidMessage::Unknown(name.to_owned()))?));
            rest = after;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    /// The message with everything filled in.
    pub(super) fn fill(&self, container: &str, path: &str, found: &str) -> String {
        let mut filled = String::new();
        for part in &self.0 {
            let _ = match part {
                Part::Text(text) => filled.write_str(text),
                Part::Placeholder(Placeholder::Container) => filled.write_str(container),
                Part::Placeholder(Placeholder::Path) => filled.write_str(path),
                Part::Placeholder(Placeholder::Found) => filled.write_str(found),
            };
        }
        filled
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&words::text(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, InvalidMessage> {
        Message::parse(text).map(|message| message.fill("app", "spec.x", "1"))
    }

    #[test]
    fn fills_in_what_it_knows() {
        for (text, expected) in [
            ("plain", "plain"),
            ("{container}", "app"),
            ("{path} is {found}, {container}: {found}", "spec.x is 1, app: 1"),
            ("{{{found}}}", "{1}"),
            ("{{found}}", "{found}"),
            ("安全策略禁止特权容器运行（{container}）", "安全策略禁止特权容器运行（app）"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn refuses_what_it_cannot_fill_in() {
        let said = |text: &str| filled(text).map_err(|error| error.to_string());
        assert_eq!(
            said("{image}"),
            Err("nothing is filled in for {image}: there are {container}, {path} and {found}, and {{ is a brace".into())
        );
        for text in ["{", "}", "a { b", "{container", "container}", "{found}}"] {
            assert_eq!(filled(text), Err(InvalidMessage::Unbalanced), "{text}");
        }
        for text in ["", " \n"] {
            assert_eq!(filled(text), Err(InvalidMessage::Empty));
        }
        assert!(filled("{}").is_err());
        for (text, control) in [("a\u{1b}[31m", '\u{1b}'), ("a\tb", '\t'), ("\u{9b}0m", '\u{9b}')] {
            assert_eq!(filled(text), Err(InvalidMessage::Control(control)), "{text:?}");
        }
        assert_eq!(filled("a block\n").as_deref(), Ok("a block"));
        assert_eq!(filled("two\nlines").as_deref(), Ok("two\nlines"));
    }
}
