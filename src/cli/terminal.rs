//! What a terminal takes: colour where it is wanted, and of what others wrote only what can be seen.

use std::io::{self, IsTerminal, Write};

/// Whether there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// What the output and the environment ask for: `NO_COLOR` (<https://no-color.org>) before
    /// `CLICOLOR_FORCE` before what a terminal can, which with `TERM=dumb` is nothing.
    pub(super) fn of(output: &impl IsTerminal) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let has_no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let can_colour = || output.is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        if !has_no_colour && (is_set("CLICOLOR_FORCE") || can_colour()) { Self::Coloured } else { Self::Plain }
    }

    pub(super) fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        }
    }
}

/// Whether a character shows as itself: neither a control character nor one that turns the direction of what
/// follows (Unicode Standard Annex 9).
pub(super) fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Text that others wrote, without what would act on a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|character| if is_printable(character) { character } else { '\u{fffd}' }).collect()
}

/// The same with its line breaks.
pub(super) fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Takes the end of a reader, such as `head`, who has read enough, for no failure.
pub(super) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes to standard output; see [`unless_closed`].
pub(super) fn print(text: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    unless_closed(stdout.write_all(text).and_then(|()| stdout.flush()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_not_printed() {
        assert_eq!(
            printable("a\u{1b}[31m\tb\u{9b}\u{7f}\u{202e}ü\n"),
            "a\u{fffd}[31m\u{fffd}b\u{fffd}\u{fffd}\u{fffd}ü\u{fffd}"
        );
        assert_eq!(printable_lines("a\u{1b}\nb"), "a\u{fffd}\nb");
    }
}
