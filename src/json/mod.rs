//! Reading JSON objects strictly: the few members podgate needs, borrowed from the bytes.
//!
//! serde's derived structs are too lenient for a webhook: they take an array for an object and
//! see a repeated key only where the field is known. kube-apiserver and podgate must never read
//! one body in two ways, so every object that podgate reads goes through [`Object`], which
//! refuses both. What podgate does not read goes through [`Skipped`].
//!
//! A body is read with [`read`], which is quick and tells no errors, and only where that gives up
//! with `serde_json`.

mod any;
mod at;
mod keys;
mod list;
mod reader;
mod scanner;
mod string_ends;
mod text;
mod text_map;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

pub use any::{Skipped, WithoutRepeatedKeys};
pub use at::at;
use keys::Keys;
use list::List;
pub use reader::{Unusual, read};
pub use text::Text;
pub use text_map::TextMap;

/// The most elements that a list may have where nothing else is said: more than any list of a pod
/// that kube-apiserver can store, which is 1.5 MiB at most.
const LISTED_MAX: usize = 10_000;

/// A JSON object of which podgate reads some members.
pub trait Members<'de>: Default {
    /// What the object is, as an error message calls it: `a Pod`.
    const EXPECTED: &'static str;

    /// The most of these objects that one list may have.
    const LISTED_MAX: usize = LISTED_MAX;

    /// Reads the value of `key`, or answers `false` without touching it when podgate has no
    /// use for that key.
    ///
    /// # Errors
    /// The deserializer's, when the value has another type.
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// An object, read member by member; `null` and every other type is an error, and so is a key
/// that comes twice, or more of them than any object of the Kubernetes API can have.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Members<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Any, so that it is for the visitor to say what else was found.
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Members<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(T::EXPECTED)
    }

    // What was found instead is named by its type alone: it may be all of a pod as a string, or
    // what an annotation keeps secret. In place of a list there is no such secret but a string.
    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(unexpected("string", &self))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Err(unexpected("boolean", &self))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(unexpected("number", &self))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Err(unexpected("number", &self))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(unexpected("number", &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<T>, A::Error> {
        let mut value = T::default();
        let mut keys = Keys::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let known = value.member(&key, &mut map)?;
            if !known {
                map.next_value::<Skipped>()?;
            }
            keys.insert(key).map_err(A::Error::custom)?;
        }
        Ok(Object(value))
    }
}

/// Another type than expected, without the value that has it.
fn unexpected<E: Error>(found: &'static str, expected: &dyn serde::de::Expected) -> E {
    E::invalid_type(Unexpected::Other(found), expected)
}

/// Reads the value of a key that holds an object or `null`.
///
/// # Errors
/// Another type, a repeated key, or a member of the wrong type.
pub fn optional_object<'de, T: Members<'de>, A: MapAccess<'de>>(map: &mut A) -> Result<Option<T>, A::Error> {
    Ok(map.next_value::<Option<Object<T>>>()?.map(|Object(value)| value))
}

/// Reads the value of a key that holds a list of objects, or `null`, which Kubernetes takes for
/// an empty one.
///
/// # Errors
/// Another type than a list, an element that is no such object, or more than [`Members::LISTED_MAX`] of them.
pub fn object_list<'de, T: Members<'de>, A: MapAccess<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
    let List(list) = map.next_value::<Option<List<Object<T>>>>()?.unwrap_or_default();
    Ok(list.into_iter().map(|Object(value)| value).collect())
}

/// Reads the value of a key that holds a list of strings, or `null`.
///
/// # Errors
/// Another type than a list, an element that is no string, or more than 10,000 of them.
pub fn text_list<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Vec<Text<'de>>, A::Error> {
    let List(list) = map.next_value::<Option<_>>()?.unwrap_or_default();
    Ok(list)
}

/// Reads the value of a key that holds a list, or `null`, in a text that was read before, without
/// looking into its elements.
///
/// # Errors
/// Another type than a list.
pub fn raw_list<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Vec<&'de RawValue>, A::Error> {
    Ok(map.next_value::<Option<_>>()?.unwrap_or_default())
}
