//! The keys of one object, to notice one that comes twice.

use std::collections::HashSet;
use std::fmt;

use smallvec::SmallVec;

use super::Text;

/// More keys than any object of the Kubernetes API that podgate reads has; up to here comparing
/// is cheaper than hashing, and beyond it a hash set keeps a hostile object's cost linear.
const FEW: usize = 48;

/// The keys seen so far in one object.
#[derive(Default)]
pub(super) struct Keys<'de> {
    /// A bit for each key seen, so that most new keys need no comparison at all.
    fingerprints: u64,
    few: SmallVec<[Text<'de>; 16]>,
    many: Option<HashSet<Text<'de>>>,
}

impl<'de> Keys<'de> {
    /// Adds a key.
    ///
    /// # Errors
    /// The key, when it was there already.
    pub(super) fn insert(&mut self, key: Text<'de>) -> Result<(), RepeatedKey<'de>> {
        let bit = 1 << fingerprint(&key);
        let maybe_seen = self.fingerprints & bit != 0;
        self.fingerprints |= bit;
        if self.few.len() < FEW {
            if maybe_seen && self.few.contains(&key) {
                return Err(RepeatedKey(key));
            }
            self.few.push(key);
            return Ok(());
        }
        let many = self.many.get_or_insert_default();
        if maybe_seen && (self.few.contains(&key) || many.contains(&key)) {
            return Err(RepeatedKey(key));
        }
        many.insert(key);
        Ok(())
    }
}

/// A key that an object has twice.
#[derive(Debug)]
pub(super) struct RepeatedKey<'de>(Text<'de>);

impl fmt::Display for RepeatedKey<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "repeated key {:?}", &*self.0)
    }
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
}
