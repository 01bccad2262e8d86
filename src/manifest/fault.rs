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
    /// A key that comes twice in one mapping.
    #[error("the key {0:?} is here twice: keep one")]
    RepeatedKey(String),
    /// A key that is a list or a mapping.
    #[error("a key is a list or a mapping: write a name, and quote values that begin with {{ or [")]
    ComplexKey,
    /// `<<` with something else than mappings.
    #[error("<< merges mappings only: write an alias of one, or a list of such aliases")]
    MergeOfNoMapping,
    /// An alias inside of what it stands for.
    #[error("this alias stands for a node that contains it")]
    AliasInItself,
    /// Aliases that repeat too much.
    #[error("the aliases up to here repeat more than {0} bytes: write the document with fewer of them")]
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
    /// A member of an object without which it is none, or one of another type.
    #[error("{0} is missing, or is no text")]
    MissingMember(&'static str),
    /// `metadata.namespace` or a name of another type than text.
    #[error("{0} is no text: quote it")]
    NotText(&'static str),
    /// A list whose `items` are no list of objects.
    #[error("the items of a {0} are a list of objects")]
    NotItems(String),
}
