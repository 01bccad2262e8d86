//! Places in the configuration of a sidecar, and what may stand there.

use std::ops::RangeInclusive;

use super::syntax::Syntax;
use super::{InvalidSidecar, SidecarFault};

/// Nothing, or what is wrong.
pub(super) type Checked = Result<(), InvalidSidecar>;

/// A place in the configuration of a sidecar.
#[derive(Debug, Clone)]
pub(in super::super) struct Place(Vec<String>);

impl Place {
    /// The sidecar of that index.
    pub(in super::super) fn new(index: usize) -> Self {
        Self(vec!["mutations".to_owned(), "sidecars".to_owned(), index.to_string()])
    }

    pub(in super::super) fn member(&self, key: &str) -> Self {
        let Self(mut path) = self.clone();
        path.push(key.to_owned());
        Self(path)
    }

    /// An element of a list, counted from 0.
    pub(in super::super) fn element(&self, index: usize) -> Self {
        self.member(&index.to_string())
    }

    /// The elements of a list that may be missing, each with its place.
    pub(super) fn elements<'l, T>(
        &self,
        key: &str,
        list: Option<&'l Vec<T>>,
    ) -> impl Iterator<Item = (Self, &'l T)> + use<'l, T> {
        let place = self.member(key);
        list.into_iter().flatten().enumerate().map(move |(index, element)| (place.element(index), element))
    }

    pub(in super::super) fn fault(&self, fault: SidecarFault) -> InvalidSidecar {
        InvalidSidecar { path: self.0.clone(), fault }
    }

    pub(in super::super) fn misfit(&self, (path, what): (Vec<String>, String)) -> InvalidSidecar {
        let place = path.iter().fold(self.clone(), |place, key| place.member(key));
        place.fault(SidecarFault::Misfit(what))
    }

    pub(in super::super) fn unreadable(&self, error: &serde_json::Error) -> InvalidSidecar {
        self.fault(SidecarFault::Misfit(error.to_string()))
    }

    /// A fault where something is wrong.
    pub(super) fn refuse_if(&self, is_wrong: bool, fault: impl FnOnce() -> SidecarFault) -> Checked {
        if is_wrong { Err(self.fault(fault())) } else { Ok(()) }
    }

    /// A text that must be there; `what` belongs there.
    pub(super) fn needs(&self, key: &'static str, value: &str, what: &'static str) -> Checked {
        self.member(key).refuse_if(value.is_empty(), || SidecarFault::Missing { key, what })
    }

    /// A text that must be there, of that form.
    pub(super) fn needs_form(&self, key: &'static str, value: &str, syntax: Syntax) -> Checked {
        self.needs(key, value, syntax.form)?;
        self.form(key, value, syntax)
    }

    /// A text of that form.
    pub(super) fn form(&self, key: &'static str, value: &str, Syntax { form, fits }: Syntax) -> Checked {
        self.member(key).refuse_if(!fits(value), || SidecarFault::Malformed { value: value.to_owned(), form })
    }

    /// A value that, where it is there, is one of those that the API has.
    pub(super) fn among(&self, key: &'static str, value: Option<&str>, known: &'static [&'static str]) -> Checked {
        let Some(value) = value.filter(|value| !known.contains(value)) else { return Ok(()) };
        if value.is_empty() {
            return Err(self.member(key).fault(SidecarFault::NoneOf(known.to_vec())));
        }
        Err(self.member(key).fault(SidecarFault::Unknown { key, value: value.to_owned(), known }))
    }

    /// The same, where an empty text stands for the API server's default.
    pub(super) fn among_or_empty(
        &self,
        key: &'static str,
        value: Option<&str>,
        known: &'static [&'static str],
    ) -> Checked {
        self.among(key, value.filter(|value| !value.is_empty()), known)
    }

    /// A number that, where it is there, is in a range.
    pub(super) fn within(&self, key: &str, value: Option<impl Into<i64>>, range: RangeInclusive<i64>) -> Checked {
        let Some(value) = value.map(Into::into).filter(|value| !range.contains(value)) else { return Ok(()) };
        let (least, most) = range.into_inner();
        Err(self.member(key).fault(SidecarFault::OutOfRange { value, least, most }))
    }

    /// Keys of which there may be one at most; the one that is there.
    pub(super) fn at_most_one(&self, keys: &[(&'static str, bool)]) -> Result<Option<&'static str>, InvalidSidecar> {
        let mut present = keys.iter().filter(|(_, is_there)| *is_there).map(|(key, _)| *key);
        let first = present.next();
        match (first, present.next()) {
            (Some(first), Some(second)) => Err(self.member(second).fault(SidecarFault::Beside(first.to_owned()))),
            _ => Ok(first),
        }
    }

    /// Keys of which there must be one.
    pub(super) fn exactly_one(&self, keys: &[(&'static str, bool)]) -> Checked {
        let found = self.at_most_one(keys)?;
        self.refuse_if(found.is_none(), || SidecarFault::NoneOf(keys.iter().map(|(key, _)| *key).collect()))
    }
}
