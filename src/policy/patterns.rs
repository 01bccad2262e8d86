//! Names to match, exactly or by a glob.

use std::collections::HashSet;

/// A list of names: exact ones, and globs in which `*` stands for any number of characters.
///
/// The cost of a match does not grow with the number of exact names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Patterns {
    exact: HashSet<String>,
    globs: Vec<String>,
}

impl Patterns {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.globs.is_empty()
    }

    /// The exact names, in the order of the alphabet.
    pub(super) fn exact(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.exact.iter().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Whether a name matches one of them.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.exact.contains(name) || self.globs.iter().any(|glob| glob_matches(glob, name))
    }
}

impl<S: Into<String>> FromIterator<S> for Patterns {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let (globs, exact) = names.into_iter().map(Into::into).partition(|name: &String| name.contains('*'));
        Self { exact: HashSet::from_iter::<Vec<String>>(exact), globs }
    }
}

/// Whether a name matches a glob with at least one `*`.
pub(super) fn glob_matches(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let last = parts.next_back().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    // Between two stars, the first place that fits leaves most for those that follow.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_exact_names_and_globs() {
        let patterns: Patterns = ["kube-system", "team-*", "*-ci", "a*b*c"].into_iter().collect();
        for name in ["kube-system", "team-", "team-a", "x-ci", "abc", "a-b-b-c", "team-x-ci"] {
            assert!(patterns.matches(name), "{name}");
        }
        for name in ["kube-systems", "kube", "my-team-a", "x-cid", "ac", "acb", ""] {
            assert!(!patterns.matches(name), "{name}");
        }
        assert!(Patterns::from_iter(["*"]).matches(""));
        assert!(!Patterns::from_iter(["aa*aa"]).matches("aaa"));
    }
}
