//! What a policy found wrong, and whether an update brought it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};

use super::{Action, PolicyName, Rule};
use crate::pod::ContainerList;

/// The most characters of a value that a message shows.
const SHOWN_MAX: usize = 256;

/// The most entries of a setting that a message lists.
const LISTED_MAX: usize = 20;

/// One thing that one policy does not allow.
#[derive(Debug, Clone)]
pub struct Violation<'a> {
    /// The policy.
    pub policy: PolicyName,
    /// Whose fault it is.
    pub subject: Subject<'a>,
    /// The field at fault.
    pub field: Field,
    /// The value found there.
    pub found: Found<'a>,
    /// What is wrong and what to do, to be read after the subject: `is "x": write y`.
    pub statement: String,
}

/// The part of a pod that a violation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// The pod as a whole.
    Pod,
    /// A container.
    Container {
        /// Its list.
        list: ContainerList,
        /// Its place in the list.
        index: usize,
        /// Its name.
        name: &'a str,
    },
    /// A container that the pod has yet to get from the mutation `sidecars`.
    Sidecar {
        /// The list that it will be in.
        list: ContainerList,
        /// Its name.
        name: &'a str,
    },
    /// A volume.
    Volume {
        /// Its place in `spec.volumes`.
        index: usize,
        /// Its name.
        name: &'a str,
    },
}

impl<'a> Subject<'a> {
    /// The name by which an update is compared: names are unique in a pod, places are not kept.
    fn name(&self) -> &'a str {
        match self {
            Self::Pod => "",
            Self::Container { name, .. } | Self::Sidecar { name, .. } | Self::Volume { name, .. } => name,
        }
    }
}

/// How a message calls it: `init container "seed"`.
impl fmt::Display for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod => formatter.write_str("the pod"),
            Self::Container { list, name, .. } | Self::Sidecar { list, name } => {
                write!(formatter, "{list} {}", Quoted(name))
            }
            Self::Volume { name, .. } => write!(formatter, "volume {}", Quoted(name)),
        }
    }
}

/// The field at fault, below the subject or below the pod's spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The subject as a whole.
    Whole,
    /// Below the subject: `securityContext.privileged` of a container.
    Own(&'static str),
    /// Below `spec`, where a container inherits it: `securityContext.runAsUser`.
    OfPod(&'static str),
    /// `hostPort` of one of the subject's ports.
    HostPort(usize),
    /// Below one of the containers of the pod that is the subject.
    OfContainer {
        /// Its list.
        list: ContainerList,
        /// Its place in the list.
        index: usize,
        /// The member.
        member: &'static str,
    },
}

impl Field {
    /// The field by which an update is compared: places in a list are not kept, and what a container
    /// inherits is the same as what it says itself.
    const fn without_place(self) -> Self {
        match self {
            Self::HostPort(_) => Self::HostPort(0),
            Self::OfPod(member) => Self::Own(member),
            other => other,
        }
    }
}

/// The value found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'a> {
    /// A value that an update keeps or changes.
    Value(Cow<'a, str>),
    /// An amount that an update may lower but not raise.
    Amount {
        /// By which amounts of one policy are compared.
        amount: i128,
        /// The same, as a message shows it.
        shown: String,
    },
}

impl Violation<'_> {
    /// The path of the field, from the pod's or the template's root.
    #[must_use]
    pub fn field_path(&self) -> String {
        let owner = match (self.field, self.subject) {
            (Field::OfContainer { list, index, .. }, _)
            | (Field::Whole | Field::Own(_) | Field::HostPort(_), Subject::Container { list, index, .. }) => {
                format!("spec.{}[{index}]", list.field())
            }
            (Field::Whole | Field::Own(_) | Field::HostPort(_), Subject::Sidecar { list, name }) => {
                format!("spec.{}[{name}]", list.field())
            }
            (Field::OfPod(_), _) | (_, Subject::Pod) => "spec".to_owned(),
            (_, Subject::Volume { index, .. }) => format!("spec.volumes[{index}]"),
        };
        match self.field {
            Field::Whole => owner,
            Field::Own(member) | Field::OfPod(member) | Field::OfContainer { member, .. } => owner + "." + member,
            Field::HostPort(index) => format!("{owner}.ports[{index}].hostPort"),
        }
    }

    /// One line for a message; `root` is where the pod stands in the object, such as
    /// `spec.template.`, or nothing.
    #[must_use]
    pub fn line(&self, root: &str) -> String {
        format!("{}: {} ({root}{}) {}", self.policy, self.subject, self.field_path(), self.statement)
    }
}

/// A violation with what is done about it.
#[derive(Debug, Clone)]
pub struct Judgement<'a> {
    /// What was found.
    pub violation: Violation<'a>,
    /// What is done about it: the policy's action, softened where the violation is none of this
    /// request's making.
    pub action: Action,
    /// The policy's action and message.
    pub rule: Rule<'a>,
}

impl Judgement<'_> {
    /// One line for a message, in the words of the configuration where it has some; `root` is
    /// where the pod stands in the object, such as `spec.template.`, or nothing.
    #[must_use]
    pub fn line(&self, root: &str) -> String {
        let violation = &self.violation;
        let Some(message) = self.rule.message else { return violation.line(root) };
        let container = match violation.subject {
            Subject::Pod => "pod".to_owned(),
            Subject::Container { name, .. } | Subject::Sidecar { name, .. } | Subject::Volume { name, .. } => {
                Shown(name).to_string()
            }
        };
        let path = format!("{root}{}", violation.field_path());
        let found = match &violation.found {
            Found::Value(value) => Shown(value).to_string(),
            Found::Amount { shown, .. } => shown.clone(),
        };
        format!("{}: {}", violation.policy, message.fill(&container, &path, &found))
    }
}

/// The violations that the old object of an update had already.
#[derive(Debug, Default)]
pub struct Existing<'a> {
    values: HashSet<(PolicyName, &'a str, Field, Cow<'a, str>)>,
    amounts: HashMap<(PolicyName, &'a str), i128>,
}

impl<'a> Existing<'a> {
    /// Remembers the violations of an old object.
    pub fn new(violations: impl IntoIterator<Item = Violation<'a>>) -> Self {
        let mut existing = Self::default();
        for violation in violations {
            let (policy, name) = (violation.policy, violation.subject.name());
            match violation.found {
                Found::Value(value) => {
                    existing.values.insert((policy, name, violation.field.without_place(), value));
                }
                Found::Amount { amount, .. } => {
                    existing.amounts.insert((policy, name), amount);
                }
            }
        }
        existing
    }

    /// Whether the old object was no better: the same policy, the same container or volume, the
    /// same value, or an amount as large.
    #[must_use]
    pub fn has(&self, violation: &Violation<'_>) -> bool {
        let (policy, name) = (violation.policy, violation.subject.name());
        match &violation.found {
            Found::Value(value) => {
                self.values.contains(&(policy, name, violation.field.without_place(), Cow::Borrowed(value)))
            }
            Found::Amount { amount, .. } => self.amounts.get(&(policy, name)).is_some_and(|old| old >= amount),
        }
    }
}

/// The entries of a setting in a message, with commas between; of many, the first. A message is as
/// long with a thousand of them, and there may be one for each volume of a pod.
pub(super) struct Listed<'a, T>(pub(super) &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().take(LISTED_MAX).enumerate() {
            formatter.write_str(if index == 0 { "" } else { ", " })?;
            entry.fmt(formatter)?;
        }
        match self.0.len().saturating_sub(LISTED_MAX) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// A value from the object in a message: in quotes, without control characters, and cut when
/// it is long. Everything else stands as its author wrote it.
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", Shown(self.0))
    }
}

/// What others sent, in a message: without control characters, and cut when it is long.
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As most values are.
        if self.0.len() <= SHOWN_MAX && !self.0.contains(char::is_control) {
            return formatter.write_str(self.0);
        }
        for character in self.0.chars().take(SHOWN_MAX) {
            if character.is_control() {
                write!(formatter, "{}", character.escape_default())?;
            } else {
                formatter.write_char(character)?;
            }
        }
        if self.0.chars().nth(SHOWN_MAX).is_some() {
            formatter.write_char('…')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_keeps_a_value_on_one_line() {
        assert_eq!(Quoted("/a\\b \"c\"").to_string(), "\"/a\\b \"c\"\"");
        assert_eq!(Quoted("a\nb\u{7f}").to_string(), "\"a\\nb\\u{7f}\"");
        assert_eq!(Quoted(&"é".repeat(300)).to_string(), format!("\"{}…\"", "é".repeat(256)));
    }
    #[test]
    fn a_message_is_no_longer_for_a_thousand_entries() {
        let listed = |count: usize| Listed(&(1..=count).collect::<Vec<_>>()).to_string();
        assert_eq!((listed(1), listed(3)), ("1".to_owned(), "1, 2, 3".to_owned()));
        assert!(listed(LISTED_MAX).ends_with(", 20"));
        assert!(listed(LISTED_MAX + 1).ends_with(", 20 and 1 more"));
        assert_eq!(listed(1_000).len(), listed(100 + LISTED_MAX).len());
    }
}
