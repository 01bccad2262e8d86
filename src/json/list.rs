//! A list of no more elements than podgate is ready to keep.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::{LISTED_MAX, Members, Object, Text, unexpected};

/// What lists are made of. Without a limit a body of a few megabytes of `{}` would take hundreds of
/// times its size.
pub(super) trait Listed {
    /// The most of it that one list may have.
    const LENGTH_MAX: usize;
}

impl<'de, T: Members<'de>> Listed for Object<T> {
    const LENGTH_MAX: usize = T::LISTED_MAX;
}

impl Listed for Text<'_> {
    const LENGTH_MAX: usize = LISTED_MAX;
}

/// A JSON list.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de> + Listed> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Any, so that it is for the visitor to say what else was found.
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Listed> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    // It may be all of the containers as a string, with what their environment keeps secret.
    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(unexpected("string", &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<List<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            if list.len() == T::LENGTH_MAX {
                return Err(A::Error::custom(format_args!(
                    "a list of more than {} elements, which is more than podgate judges",
                    T::LENGTH_MAX
                )));
            }
            list.push(element);
        }
        Ok(List(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_an_end() {
        let length = |length: usize| {
            let json = format!("[{}\"a\"]", "\"a\",".repeat(length - 1));
            serde_json::from_str::<List<Text>>(&json).map(|list| list.0.len()).map_err(|error| error.to_string())
        };
        assert_eq!(length(LISTED_MAX), Ok(LISTED_MAX));
        let error = length(LISTED_MAX + 1);
        assert!(error.is_err_and(|error| error.starts_with("a list of more than 10000 elements")));
    }
}
