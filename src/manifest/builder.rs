//! From the parser's events to trees.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::{Entry, Fault, Node, Position, Problem, Value, scalar};

/// The most that aliases may add to a file, in bytes: far more than any that is meant.
const ALIASED_MAX: usize = 16 << 20;

/// How deep a document may nest: the review around it may nest 128 levels.
const DEPTH_MAX: usize = 100;

/// What the tags of YAML's own types begin with (<https://yaml.org/type/>).
const YAML_TAG: &str = "tag:yaml.org,2002:";

/// The documents of a text in YAML, one after the other; empty ones are left out. A fault ends its document
/// only.
pub(super) struct Documents<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// Where the text begins in its file.
    origin: Position,
    /// Where the document begins that is being read.
    first_line: usize,
    template_lines: Vec<usize>,
    /// What aliases have added up to here, in bytes.
    aliased: usize,
    is_over: bool,
}

impl<'t> Documents<'t> {
    /// The documents of `text`, which begins at `origin` in its file.
    pub(super) fn new(text: &'t str, origin: Position) -> Self {
        let mut options = granit_parser::Options::default();
        options.set_emit_comments(false);
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            origin,
            first_line: origin.line,
            template_lines: template_lines(text, origin.line),
            aliased: 0,
            is_over: false,
        }
    }

    fn place(&self, mark: &Marker) -> Position {
        let column = mark.col() + if mark.line() == 1 { self.origin.column } else { 1 };
        Position { line: mark.line() + self.origin.line - 1, column }
    }

    /// Reads up to the end of the next document; `None` at the end of the text.
    fn read(&mut self) -> Result<Option<Rc<Node>>, Fault> {
        let mut builder = Builder { aliased: self.aliased, ..Builder::default() };
        while let Some(next) = self.parser.next() {
            let (event, span) = next.map_err(|error| self.fault(&error))?;
            let place = self.place(&span.start);
            match event {
                Event::DocumentStart(..) => self.first_line = place.line,
                Event::DocumentEnd => return Ok(Some(builder.finish(place))),
                Event::StreamEnd => return Ok(None),
                event => builder.event(event, place)?,
            }
            self.aliased = builder.aliased;
        }
        Ok(None)
    }

    fn fault(&self, error: &ScanError) -> Fault {
        let problem = match error.kind() {
            ErrorKind::RecursionLimitExceeded => Problem::TooDeep(DEPTH_MAX),
            kind => Problem::Syntax(kind.to_string()),
        };
        Fault::new(self.place(error.marker()), problem)
    }
}

impl Iterator for Documents<'_> {
    type Item = Result<Rc<Node>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.read() {
                Ok(Some(root)) if matches!(root.value, Value::Null) => {}
                Ok(Some(root)) => return Some(Ok(root)),
                Ok(None) => self.is_over = true,
                Err(fault) => {
                    let fault = fault.near_template(&self.template_lines, self.first_line);
                    self.first_line = fault.position.line;
                    self.is_over = !matches!(self.parser.proceed_next_document(), Ok(true));
                    return Some(Err(fault));
                }
            }
        }
        None
    }
}

/// The lines that have `{{`, as templates do; the first of the text is `first_line`.
pub(super) fn template_lines(text: &str, first_line: usize) -> Vec<usize> {
    text.lines().zip(first_line..).filter(|(line, _)| line.contains("{{")).map(|(_, number)| number).collect()
}

/// A document that is being read.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Rc<Node>>,
    /// What each anchor stands for; `None` as long as it is open.
    anchors: HashMap<usize, Option<Rc<Node>>>,
    /// What aliases have added to the file up to here, in bytes.
    aliased: usize,
}

/// A collection that has begun.
struct Open {
    position: Position,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Rc<Node>>),
    Mapping(Mapping),
}

#[derive(Default)]
struct Mapping {
    /// Its own and merged ones, in the order of the file; of those with the same key the last counts.
    entries: Vec<Entry>,
    /// Those of its own entries.
    keys: HashSet<String>,
    key: Option<Key>,
    merges: bool,
}

/// A key that waits for its value.
enum Key {
    Name(String, Position),
    Merge,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, place: Position) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), place),
            Event::SequenceStart(_, anchor, _) => self.begin(place, anchor, Content::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => self.begin(place, anchor, Content::Mapping(Mapping::default())),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, place),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, position: Position, anchor: usize, content: Content) -> Result<(), Fault> {
        if self.waits_for_key() {
            return Err(Fault::new(position, Problem::ComplexKey));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::new(position, Problem::TooDeep(DEPTH_MAX)));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { position, anchor, content });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(Open { position, anchor, content }) = self.open.pop() else { return Ok(()) };
        let node = match content {
            Content::List(list) => Node::list(position, list),
            Content::Mapping(mapping) => Node::mapping(position, mapping.into_entries()),
        };
        self.add(Rc::new(node), anchor)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        place: Position,
    ) -> Result<(), Fault> {
        let is_plain = style == ScalarStyle::Plain && tag.is_none();
        if text == "<<" && (is_plain || tag.is_some_and(is_merge)) && self.waits_for_key() {
            return self.key(Key::Merge, text, place);
        }
        let value = match tag.map(|tag| tag.suffix_in_namespace(YAML_TAG)) {
            None if is_plain => scalar::plain(text),
            Some(Some(tag)) => scalar::tagged(&tag, text),
            _ => Ok(Value::Text(text.to_owned())),
        };
        let value = value.map_err(|problem| Fault::new(place, problem))?;
        self.add(Rc::new(Node::scalar(place, value)), anchor)
    }

    fn alias(&mut self, anchor: usize, place: Position) -> Result<(), Fault> {
        let node = match self.anchors.get(&anchor) {
            Some(Some(node)) => Rc::clone(node),
            _ => return Err(Fault::new(place, Problem::AliasInItself)),
        };
        self.aliased = self.aliased.saturating_add(node.size);
        if self.aliased > ALIASED_MAX {
            return Err(Fault::new(place, Problem::TooManyAliases(ALIASED_MAX)));
        }
        if self.open.len() + node.depth > DEPTH_MAX {
            return Err(Fault::new(place, Problem::TooDeep(DEPTH_MAX)));
        }
        self.place(node, place)
    }

    fn add(&mut self, node: Rc<Node>, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            self.anchors.insert(anchor, Some(Rc::clone(&node)));
        }
        let place = node.position;
        self.place(node, place)
    }

    /// Puts a node where it is due: a key, a value, an element or the root.
    fn place(&mut self, node: Rc<Node>, place: Position) -> Result<(), Fault> {
        if self.waits_for_key() {
            let name = key_name(&node).map_err(|problem| Fault::new(place, problem))?;
            return self.key(Key::Name(name.clone(), place), &name, place);
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(list)) => list.push(node),
            Some(Content::Mapping(mapping)) => match mapping.key.take() {
                Some(Key::Name(key, position)) => mapping.entries.push(Entry { key, position, value: node }),
                _ => mapping.merge(&node, place)?,
            },
        }
        Ok(())
    }

    fn key(&mut self, key: Key, name: &str, place: Position) -> Result<(), Fault> {
        if let Some(Open { content: Content::Mapping(mapping), .. }) = self.open.last_mut() {
            if !mapping.keys.insert(name.to_owned()) {
                return Err(Fault::new(place, Problem::RepeatedKey(name.to_owned())));
            }
            mapping.key = Some(key);
        }
        Ok(())
    }

    fn waits_for_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { content: Content::Mapping(mapping), .. }) if mapping.key.is_none())
    }

    fn finish(self, end: Position) -> Rc<Node> {
        self.root.unwrap_or_else(|| Rc::new(Node::scalar(end, Value::Null)))
    }
}

impl Mapping {
    /// Takes the entries of a mapping, or of several in a list, of which the earlier count before the
    /// later.
    ///
    /// As kubectl does, and other than <https://yaml.org/type/merge.html> has it, they also count before
    /// what stands above the merge.
    fn merge(&mut self, merged: &Node, place: Position) -> Result<(), Fault> {
        let fault = || Fault::new(place, Problem::MergeOfNoMapping);
        match &merged.value {
            Value::Mapping(entries) => self.entries.extend_from_slice(entries),
            // An alias of a list is no list of aliases.
            Value::List(list) if merged.position == place => {
                for source in list.iter().rev() {
                    let Value::Mapping(entries) = &source.value else { return Err(fault()) };
                    self.entries.extend_from_slice(entries);
                }
            }
            _ => return Err(fault()),
        }
        self.merges = true;
        Ok(())
    }

    /// The last entry of each key.
    fn into_entries(self) -> Vec<Entry> {
        let mut entries = self.entries;
        if self.merges {
            let mut keys = HashSet::new();
            entries.reverse();
            entries.retain(|entry| keys.insert(entry.key.clone()));
            entries.reverse();
        }
        entries
    }
}

/// Whether a key `<<` with that tag merges: to kubectl it does with its own tag, which tools write, and with
/// the tag that names none.
fn is_merge(tag: &Tag) -> bool {
    tag.suffix_in_namespace(YAML_TAG).as_deref() == Some("merge") || (tag.handle().is_empty() && tag.suffix() == "!")
}

/// A key as JSON has it, a text always.
fn key_name(node: &Node) -> Result<String, Problem> {
    Ok(match &node.value {
        Value::Text(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null => return Err(Problem::NullKey),
        Value::List(_) | Value::Mapping(_) => return Err(Problem::ComplexKey),
    })
}
