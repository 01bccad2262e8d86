//! A tree of values, each with its place in the file.

use std::rc::Rc;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Number;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The first character of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place behind a text that begins here.
    pub(super) fn after(self, text: &str) -> Self {
        match text.rsplit_once('\n') {
            Some((before, last)) => {
                Self { line: self.line + 1 + before.matches('\n').count(), column: last.chars().count() + 1 }
            }
            None => Self { line: self.line, column: self.column + text.chars().count() },
        }
    }
}

/// A value and its place. What an alias stands for is shared.
#[derive(Debug)]
pub struct Node {
    /// Where it begins.
    pub position: Position,
    /// The value.
    pub value: Value,
    /// About the size of all in it, in bytes, every alias counted.
    pub(super) size: usize,
    /// How deep it nests.
    pub(super) depth: usize,
}

/// What a node holds.
#[derive(Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Rc<Node>>),
    /// A mapping, in the order of the file; no key comes twice.
    Mapping(Vec<Entry>),
}

/// A key of a mapping and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub position: Position,
    /// The value.
    pub value: Rc<Node>,
}

impl Value {
    /// What it is, in the words of a message.
    #[must_use]
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

impl Node {
    pub(super) fn scalar(position: Position, value: Value) -> Self {
        let size = match &value {
            Value::Text(text) => text.len() + 2,
            _ => 8,
        };
        Self { position, value, size, depth: 0 }
    }

    pub(super) fn list(position: Position, list: Vec<Rc<Self>>) -> Self {
        let (size, depth) = totals(list.iter().map(|node| &**node));
        Self { position, value: Value::List(list), size, depth }
    }

    pub(super) fn mapping(position: Position, entries: Vec<Entry>) -> Self {
        let (size, depth) = totals(entries.iter().map(|entry| &*entry.value));
        let keys: usize = entries.iter().map(|entry| entry.key.len() + 4).sum();
        Self { position, value: Value::Mapping(entries), size: size.saturating_add(keys), depth }
    }

    /// The entry of a key, in a mapping that has it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The value of a key, in a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &*entry.value)
    }

    /// The string in the node, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Where a field stands, such as `spec.containers[0].image`: its key, or its element. Of a field
    /// that is not there, where the last one stands on the way to it.
    #[must_use]
    pub fn position_of(&self, field: &str) -> Position {
        self.walk(field).0
    }

    /// The node of a field that is there.
    #[must_use]
    pub fn field(&self, field: &str) -> Option<&Self> {
        self.walk(field).1
    }

    fn walk(&self, field: &str) -> (Position, Option<&Self>) {
        let mut position = self.position;
        let mut node = self;
        for step in field.split(['.', '[']) {
            let found = match &node.value {
                Value::List(list) => step
                    .strip_suffix(']')
                    .and_then(|index| list.get(index.parse::<usize>().ok()?))
                    .map(|element| (element.position, &**element)),
                _ => node.entry(step).map(|entry| (entry.position, &*entry.value)),
            };
            let Some((place, next)) = found else { return (position, None) };
            (position, node) = (place, next);
        }
        (position, Some(node))
    }
}

fn totals<'n>(nodes: impl Iterator<Item = &'n Node>) -> (usize, usize) {
    let (size, depth) = nodes.fold((2_usize, 0), |(size, depth), node| {
        (size.saturating_add(node.size).saturating_add(2), depth.max(node.depth))
    });
    (size, depth + 1)
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(value) => value.serialize(serializer),
            Value::Text(value) => serializer.serialize_str(value),
            Value::List(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for element in list {
                    sequence.serialize_element(&**element)?;
                }
                sequence.end()
            }
            Value::Mapping(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for entry in entries {
                    map.serialize_entry(&entry.key, &*entry.value)?;
                }
                map.end()
            }
        }
    }
}
