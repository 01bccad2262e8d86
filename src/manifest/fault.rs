//! What can be wrong with a manifest, and where.

use std::fmt;

use super::Position;

/// Something that keeps a document from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub position: Position,
    /// What.
    pub problem: Problem,
    /// The line, from 1, of a `{{` nearby: the document may be a template.
    pub template_line: Option<usize>,
}

impl Fault {
    pub(super) const fn new(position: Position, problem: Problem) -> Self {
        Self { position, problem, template_line: None }
    }

    /// The fault with the last of `template_lines` between `first_line` and its own.
    pub(super) fn near_template(mut self, template_lines: &[usize], first_line: usize) -> Self {
        let before = template_lines.partition_point(|line| *line <= self.position.line);
        self.template_line = template_lines[..before].last().copied().filter(|line| *line >= first_line);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.problem)?;
        match self.template_line {
            Some(line) => write!(
                formatter,
                "; line {line} has {{{{, as templates do: if this is one, check what it is rendered to, such as the \
                 output of helm template"
            ),
            None => Ok(()),
        }
    }
}

/// What keeps a document from being read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not UTF-8.
    #[error("this byte is not UTF-8: save the file as UTF-8")]
    NotUtf8,
    /// No YAML.
    #[error("this is not YAML: {0}")]
    Syntax(String),
    /// No JSON, in a file that is meant as such.
    #[error("this is not JSON: {0}")]
    NotJson(String),
    /// A key that comes twice in one mapping.
    #[error("the key {0:?} is here twice: keep one")]
    RepeatedKey(String),
    /// A key that is a list or a mapping.
    #[error("a key is a list or a mapping: write a name, and quote values that begin with {{ or [")]
    ComplexKey,
    /// A key that is null.
    #[error("a key is null, which Kubernetes takes for none: write a name, or quote it if it is meant as one")]
    NullKey,
    /// `<<` with something else than mappings.
    #[error("<< merges mappings only: write an alias of one, or a list of such aliases")]
    MergeOfNoMapping,
    /// An alias inside of what it stands for.
    #[error("this alias stands for a node that contains it")]
    AliasInItself,
    /// Aliases that repeat too much.
    #[error("the aliases up to here repeat more than {0} bytes of this file: write it with fewer of them")]
    TooManyAliases(usize),
    /// Too deep a nesting.
    #[error("this nests more than {0} levels deep")]
    TooDeep(usize),
    /// A tag that its value does not fit.
    #[error("{value:?} is no value for the tag !!{tag}")]
    WrongTag {
        /// The tag's name in YAML's own schema.
        tag: String,
        /// The value.
        value: String,
    },
    /// A number that JSON does not have.
    #[error("JSON, and so Kubernetes, has no number {0}: quote it if it is meant as text")]
    NotANumber(String),
    /// A document or an item that is no mapping.
    #[error("this is {0}, and no Kubernetes object: an object has apiVersion, kind and metadata")]
    NoObject(&'static str),
    /// A mapping without `apiVersion` and `kind`.
    #[error("apiVersion and kind are missing, so that this is no Kubernetes object")]
    Untyped,
    /// `apiVersion` or `kind` is missing, empty or of another type.
    #[error("{0} is missing, or is no text")]
    MissingMember(&'static str),
    /// An `apiVersion` that is neither a version nor a group and a version.
    #[error("{0:?} is no apiVersion: write a group and a version, such as apps/v1, or v1")]
    NotAnApiVersion(String),
    /// A `kind` that no kind can have.
    #[error("{0:?} is no kind: write letters and digits, such as Pod")]
    NotAKind(String),
    /// Almost the name of a kind that podgate judges.
    #[error("there is no kind {kind:?}: did you mean {meant}?")]
    Misspelt {
        /// The kind as written.
        kind: String,
        /// The kind that there is.
        meant: String,
    },
    /// A kind that podgate judges, with an `apiVersion` that does not have it.
    #[error("there is no {kind} in {api_version:?}: did you mean apiVersion: {meant}?")]
    OfOtherGroup {
        /// The kind.
        kind: String,
        /// `apiVersion` as written.
        api_version: String,
        /// The `apiVersion` that has it.
        meant: String,
    },
    /// A kind that podgate judges, of a version that no API server in use has.
    #[error("Kubernetes no longer serves a {kind} of {api_version:?}: write apiVersion: {meant}")]
    Removed {
        /// The kind.
        kind: String,
        /// `apiVersion` as written.
        api_version: String,
        /// The `apiVersion` that has it.
        meant: String,
    },
    /// `metadata.namespace` or a name of another type than text.
    #[error("{path} is {found}, and text belongs here{advice}")]
    NotText {
        /// The field.
        path: &'static str,
        /// What is there.
        found: &'static str,
        /// What makes it one, where that is simple.
        advice: &'static str,
    },
    /// A list without `items`.
    #[error("this {0} has no items: write its objects there")]
    NoItems(String),
    /// A list whose `items` are no list of objects.
    #[error("the items of a {0} are a list of objects")]
    NotItems(String),
}
