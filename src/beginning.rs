//! Texts that others sent, short enough to repeat.

use std::borrow::Cow;

/// As much of a text as `characters` allow, and `…` where there is more.
pub(crate) fn beginning(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn what_is_repeated_is_cut() {
        assert_eq!(beginning("é", 1), "é");
        assert_eq!(beginning(&"é".repeat(101), 100), format!("{}…", "é".repeat(100)));
    }
}
