//! JSON Patch (RFC 6902): operations that follow from what was read.
//!
//! Never a diff of two decoded objects: what podgate does not know is not touched. Every
//! operation is an `add`, which on a member that is there replaces its value (section 4.1), so
//! that `null` and a missing member need no telling apart.

use std::fmt::{self, Write as _};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use crate::pod::ContainerList;

/// The operations of one patch, in order.
#[derive(Debug, Default)]
pub struct Patch {
    operations: Vec<Operation>,
}

impl Patch {
    /// Sets the member at `path` to `value`; its parent must be there.
    pub fn add(&mut self, path: Pointer, value: impl Into<Value>) {
        self.operations.push(Operation { op: "add", path, value: value.into() });
    }

    /// Sets the list at `path`, unless there is nothing in it.
    pub fn add_list(&mut self, path: Pointer, elements: Vec<Value>) {
        if !elements.is_empty() {
            self.add(path, Value::List(elements));
        }
    }

    /// A document after the patch; `None` where it does not fit.
    #[must_use]
    pub fn applied_to(&self, mut document: serde_json::Value) -> Option<serde_json::Value> {
        let operations: json_patch::Patch = serde_json::from_value(serde_json::to_value(self).ok()?).ok()?;
        json_patch::patch(&mut document, &operations).ok()?;
        Some(document)
    }

    /// The number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

impl Serialize for Patch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.operations.serialize(serializer)
    }
}

#[derive(Debug, serde::Serialize)]
struct Operation {
    op: &'static str,
    path: Pointer,
    value: Value,
}

/// A JSON Pointer (RFC 6901), which becomes text when the patch does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    place: Place,
    members: SmallVec<[&'static str; 2]>,
}

/// Where in a pod the members are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Spec,
    List(ContainerList),
    Container(ContainerList, usize),
    Volumes,
    Volume(usize),
}

impl From<Place> for Pointer {
    fn from(place: Place) -> Self {
        Self { place, members: SmallVec::new() }
    }
}

impl Pointer {
    /// `/spec`.
    #[must_use]
    pub fn pod_spec() -> Self {
        Place::Spec.into()
    }

    /// `/spec/LIST`.
    #[must_use]
    pub fn list(list: ContainerList) -> Self {
        Place::List(list).into()
    }

    /// `/spec/volumes`.
    #[must_use]
    pub fn volumes() -> Self {
        Place::Volumes.into()
    }

    /// `/spec/LIST/INDEX`.
    #[must_use]
    pub fn container(list: ContainerList, index: usize) -> Self {
        Place::Container(list, index).into()
    }

    /// `/spec/volumes/INDEX`.
    #[must_use]
    pub fn volume(index: usize) -> Self {
        Place::Volume(index).into()
    }

    /// The member `name` of what this points at.
    #[must_use]
    pub fn member(&self, name: &'static str) -> Self {
        let mut pointer = self.clone();
        pointer.members.push(name);
        pointer
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Spec => formatter.write_str("/spec"),
            Place::List(list) => write!(formatter, "/spec/{}", list.field()),
            Place::Container(list, index) => write!(formatter, "/spec/{}/{index}", list.field()),
            Place::Volumes => formatter.write_str("/spec/volumes"),
            Place::Volume(index) => write!(formatter, "/spec/volumes/{index}"),
        }?;
        for name in &self.members {
            formatter.write_char('/')?;
            if name.contains(['~', '/']) {
                formatter.write_str(&name.replace('~', "~0").replace('/', "~1"))?;
            } else {
                formatter.write_str(name)?;
            }
        }
        Ok(())
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value to set.
#[derive(Debug, Clone)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    Text(String),
    /// An object.
    Object(Vec<(&'static str, Value)>),
    /// A list.
    List(Vec<Value>),
    /// A value as the configuration has it.
    Json(Box<RawValue>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
            Self::List(elements) => elements.serialize(serializer),
            Self::Json(text) => text.serialize(serializer),
        }
    }
}

/// Sets members of an object that may not be there yet: one `add` for the whole object where it
/// is missing, else one for each member. Nothing to set is nothing to add.
pub fn add_members(patch: &mut Patch, path: &Pointer, is_there: bool, members: Vec<(&'static str, Value)>) {
    if members.is_empty() {
        return;
    }
    if is_there {
        for (name, value) in members {
            patch.add(path.member(name), value);
        }
    } else {
        patch.add(path.clone(), Value::Object(members));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_pointers() {
        assert_eq!(Pointer::pod_spec().member("a/b~c").to_string(), "/spec/a~1b~0c");
    }

    #[test]
    fn adds_a_missing_parent_once() {
        let members = || vec![("x", Value::Bool(true)), ("y", Value::from("1"))];
        let json = |is_there| {
            let mut patch = Patch::default();
            add_members(&mut patch, &Pointer::pod_spec(), is_there, members());
            serde_json::to_value(&patch).unwrap_or_default()
        };
        assert_eq!(json(false), serde_json::json!([{"op": "add", "path": "/spec", "value": {"x": true, "y": "1"}}]));
        assert_eq!(
            json(true),
            serde_json::json!([
                {"op": "add", "path": "/spec/x", "value": true},
                {"op": "add", "path": "/spec/y", "value": "1"},
            ])
        );
    }
}
