//! What is said of things that do not work: once in a while, not each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the same thing is not worth another line in the log.
const REPEAT_AFTER: Duration = Duration::from_secs(300);

/// What was said, and when.
#[derive(Debug, Default)]
pub(super) struct Complaints(BTreeMap<String, Instant>);

impl Complaints {
    /// Whether it is time to say this; if so, it counts as said.
    pub(super) fn is_due(&mut self, what: &str) -> bool {
        self.0.retain(|_, when| when.elapsed() < REPEAT_AFTER);
        let is_due = !self.0.contains_key(what);
        if is_due {
            self.0.insert(what.to_owned(), Instant::now());
        }
        is_due
    }

    /// All is well again.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_said_once_until_all_was_well() {
        let mut complaints = Complaints::default();
        assert!(complaints.is_due("a") && complaints.is_due("b"));
        assert!(!complaints.is_due("a") && !complaints.is_due("b"));
        complaints.clear();
        assert!(complaints.is_due("a"));
    }
}
