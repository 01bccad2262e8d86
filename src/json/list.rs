//! A list of no more elements than podgate is ready to keep.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::unexpected;

/// The most elements that a list may have. A pod that kube-apiserver can store, which is 1.5 MiB at
/// most, has no more containers than this; without a limit a body of a few megabytes of `{}` would
/// take hundreds of times its size.
const LENGTH_MAX: usize = 10_000;

/// A JSON list.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Any, so that it is for the visitor to say what else was found.
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
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
            if list.len() == LENGTH_MAX {
                return Err(A::Error::custom(format_args!(
                    "a list of more than {LENGTH_MAX} elements, which is more than podgate judges"
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
        let read = |length: usize| serde_json::from_str::<List<u8>>(&format!("[{}1]", "1,".repeat(length - 1)));
        assert_eq!(read(LENGTH_MAX).map(|list| list.0.len()).ok(), Some(LENGTH_MAX));
        let error = read(LENGTH_MAX + 1).map(|list| list.0.len()).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.starts_with("a list of more than 10000 elements")));
    }
}
