//! The keys of one object, to notice one that comes twice.

use std::collections::HashSet;
use std::hash::BuildHasher;

use smallvec::SmallVec;

use super::Text;
use crate::beginning::beginning;

/// More keys than any object of the Kubernetes API that podgate reads has; up to here comparing
/// is cheaper than hashing, and beyond it a hash set keeps a hostile object's cost linear.
const FEW: usize = 48;

/// The most keys that an object may have. Annotations may be 256 KiB in all
/// (`k8s.io/apimachinery`, `TotalAnnotationSizeLimitB`), and of names that differ fewer than this fit
/// in there: all of one and two characters, and the rest of three.
const COUNT_MAX: usize = 90_000;

/// The most characters of a key that a message shows.
const SHOWN_MAX: usize = 256;

/// The keys seen so far in one object.
#[derive(Default)]
pub(super) struct Keys<'de> {
    /// A bit for each key seen, so that most new keys need no comparison at all.
    fingerprints: u64,
    few: SmallVec<[Text<'de>; 16]>,
    /// Keys by their hash alone, which takes a fraction of the memory. No repeated key escapes that. Two
    /// that differ can have one hash, and are refused then: by chance in one of 2⁶⁴ pairs, and on purpose
    /// never, for the hash has a random seed.
    many: Option<HashSet<u64>>,
}

impl<'de> Keys<'de> {
    /// Adds a key.
    ///
    /// # Errors
    /// When it was there already, or when there are too many.
    pub(super) fn insert(&mut self, key: Text<'de>) -> Result<(), KeyError<'de>> {
        let bit = 1 << fingerprint(&key);
        let maybe_seen = self.fingerprints & bit != 0;
        self.fingerprints |= bit;
        if self.few.len() < FEW {
            if maybe_seen && self.few.contains(&key) {
                return Err(KeyError::Repeated(key));
            }
            self.few.push(key);
            return Ok(());
        }
        let many = self.many.get_or_insert_default();
        if maybe_seen && self.few.contains(&key) || !many.insert(many.hasher().hash_one(&*key)) {
            return Err(KeyError::Repeated(key));
        }
        if many.len() > COUNT_MAX - FEW {
            return Err(KeyError::TooMany);
        }
        Ok(())
    }
}

/// What is wrong with the keys of an object.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError<'de> {
    #[error("repeated key {:?}", beginning(.0, SHOWN_MAX))]
    Repeated(Text<'de>),
    #[error("an object of more than {COUNT_MAX} members")]
    TooMany,
}

/// A number below 64 that spreads the field names of the Kubernetes API well enough.
fn fingerprint(key: &str) -> u32 {
    let bytes = key.as_bytes();
    let (first, middle, last) = match bytes {
        [] => (0, 0, 0),
        [first, .., last] => (*first, bytes[bytes.len() / 2], *last),
        [only] => (*only, *only, *only),
    };
    let mixed = u32::from(first)
        .wrapping_mul(31)
        .wrapping_add(u32::from(middle))
        .wrapping_mul(31)
        .wrapping_add(u32::from(last))
        .wrapping_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    mixed % 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_a_key_among_few_and_among_many() {
        for count in [1, 5, FEW, FEW + 1, 5 * FEW] {
            for repeated in 0..count {
                let mut keys = Keys::default();
                for index in 0..count {
                    assert!(keys.insert(Text::from(format!("key{index}"))).is_ok());
                }
                let again = keys.insert(Text::from(format!("key{repeated}")));
                assert!(again.is_err(), "key{repeated} of {count}");
            }
        }
    }

    #[test]
    fn keys_have_an_end() {
        let mut keys = Keys::default();
        for index in 0..COUNT_MAX {
            assert!(keys.insert(Text::from(index.to_string())).is_ok());
        }
        assert!(matches!(keys.insert(Text::from("one more")), Err(KeyError::TooMany)));
    }
}
