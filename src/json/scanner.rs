//! Stepping over JSON text: words, numbers, strings and whole values, of which nothing is kept.

use std::fmt;

use super::string_ends::StringEnds;

/// How deep values may nest, as in `serde_json`.
pub(super) const DEPTH_MAX: u32 = 127;

/// The text is none that the quick reader takes. It may be good JSON for all that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unusual;

impl fmt::Display for Unusual {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("nothing that the quick reader takes")
    }
}

impl std::error::Error for Unusual {}

/// A text and how far it has been read.
pub(super) struct Scanner<'de> {
    text: &'de str,
    position: usize,
    string_ends: StringEnds<'de>,
    depth: u32,
}

impl<'de> Scanner<'de> {
    pub(super) const fn new(text: &'de str) -> Self {
        Self { text, position: 0, string_ends: StringEnds::new(text.as_bytes()), depth: 0 }
    }

    /// How many brackets are open around what comes next.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// The byte that comes next, and is no space; `None` at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.position)?;
            // kube-apiserver writes none of them, so that the first comparison is the last.
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.position += 1;
        }
    }

    /// Steps over a byte that must come next.
    pub(super) fn take(&mut self, expected: u8) -> Result<(), Unusual> {
        if self.peek() != Some(expected) {
            return Err(Unusual);
        }
        self.position += 1;
        Ok(())
    }

    /// Steps over a word that must stand here.
    pub(super) fn take_word(&mut self, word: &str) -> Result<(), Unusual> {
        let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(Unusual);
        }
        self.position += word.len();
        Ok(())
    }

    /// Steps over the first of a list's or an object's brackets.
    pub(super) fn enter(&mut self) -> Result<(), Unusual> {
        if self.depth == DEPTH_MAX {
            return Err(Unusual);
        }
        self.depth += 1;
        self.position += 1;
        Ok(())
    }

    /// Steps over what is before the next element; `false` where there is none, behind the last bracket.
    pub(super) fn step(&mut self, closing: u8, is_first: &mut bool) -> Result<bool, Unusual> {
        match self.peek() {
            Some(byte) if byte == closing => {
                self.depth -= 1;
                self.position += 1;
                Ok(false)
            }
            Some(b',') if !*is_first => {
                self.position += 1;
                Ok(true)
            }
            Some(_) if std::mem::take(is_first) => Ok(true),
            _ => Err(Unusual),
        }
    }

    /// Steps over a string: what stands between its quotation marks, and whether there are escapes in it.
    #[inline]
    pub(super) fn take_string(&mut self) -> Result<Quoted<'de>, Unusual> {
        let (start, end) = self.step_over_string()?;
        let inside = self.text.get(start..end).ok_or(Unusual)?;
        let has_escapes = self.string_ends.may_have_backslash(start) && has_escapes(inside)?;
        Ok(Quoted { inside, has_escapes })
    }

    /// The same where the string is not wanted.
    #[inline]
    fn skip_string(&mut self) -> Result<(), Unusual> {
        let (start, end) = self.step_over_string()?;
        if self.string_ends.may_have_backslash(start) { self.check_escapes(start, end) } else { Ok(()) }
    }

    fn check_escapes(&self, start: usize, end: usize) -> Result<(), Unusual> {
        has_escapes(self.text.get(start..end).ok_or(Unusual)?).map(|_| ())
    }

    /// Steps over a string; tells where it begins and ends between its quotation marks.
    #[inline]
    fn step_over_string(&mut self) -> Result<(usize, usize), Unusual> {
        self.take(b'"')?;
        let start = self.position;
        let end = self.string_ends.next()?;
        self.position = end + 1;
        Ok((start, end))
    }

    /// Steps over a number, as RFC 8259, section 6 has them; tells whether it is a whole one.
    pub(super) fn take_number(&mut self) -> Result<(&'de str, bool), Unusual> {
        let start = self.position;
        if self.is_at(b"-") {
            self.position += 1;
        }
        if self.is_at(b"0") {
            self.position += 1;
        } else {
            self.take_digits()?;
        }
        let end_of_whole = self.position;
        if self.is_at(b".") {
            self.position += 1;
            self.take_digits()?;
        }
        if self.is_at(b"eE") {
            self.position += 1;
            if self.is_at(b"+-") {
                self.position += 1;
            }
            self.take_digits()?;
        }
        let number = self.text.get(start..self.position).ok_or(Unusual)?;
        Ok((number, self.position == end_of_whole))
    }

    fn is_at(&self, any_of: &[u8]) -> bool {
        self.text.as_bytes().get(self.position).is_some_and(|byte| any_of.contains(byte))
    }

    /// Steps over one digit and those behind it.
    fn take_digits(&mut self) -> Result<(), Unusual> {
        let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(Unusual);
        }
        self.position += count;
        Ok(())
    }

    /// Steps over a value of any type.
    pub(super) fn skip(&mut self) -> Result<(), Unusual> {
        let mut open = Brackets::default();
        let mut is_key = false;
        loop {
            match self.peek().ok_or(Unusual)? {
                b'"' => {
                    self.skip_string()?;
                    if std::mem::take(&mut is_key) {
                        self.take(b':')?;
                        continue;
                    }
                }
                _ if is_key => return Err(Unusual),
                b'{' => {
                    self.position += 1;
                    if self.peek() == Some(b'}') {
                        self.position += 1;
                    } else {
                        open.push(true, self.depth)?;
                        is_key = true;
                        continue;
                    }
                }
                b'[' => {
                    self.position += 1;
                    if self.peek() == Some(b']') {
                        self.position += 1;
                    } else {
                        open.push(false, self.depth)?;
                        continue;
                    }
                }
                b't' => self.take_word("true")?,
                b'f' => self.take_word("false")?,
                b'n' => self.take_word("null")?,
                _ => drop(self.take_number()?),
            }
            // A value has ended, and with it perhaps some of those around it.
            loop {
                let Some(is_object) = open.innermost() else { return Ok(()) };
                let byte = self.peek();
                self.position += 1;
                match (byte, is_object) {
                    (Some(b','), _) => {
                        is_key = is_object;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => open.pop(),
                    _ => return Err(Unusual),
                }
            }
        }
    }
}

/// A string.
pub(super) struct Quoted<'de> {
    /// What stands between its quotation marks.
    pub(super) inside: &'de str,
    /// Whether there is a backslash in it.
    pub(super) has_escapes: bool,
}

impl Quoted<'_> {
    /// What the string is, its escapes being undone.
    pub(super) fn unescaped(&self) -> Result<String, Unusual> {
        serde_json::from_str(&format!("\"{}\"", self.inside)).map_err(|_| Unusual)
    }
}

/// Whether there are escapes in a string. Every backslash must stand before what may be escaped (RFC 8259, section 7).
fn has_escapes(inside: &str) -> Result<bool, Unusual> {
    let mut rest = inside;
    while let Some((_, behind)) = rest.split_once('\\') {
        let length = match behind.as_bytes() {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
            [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => 5,
            _ => return Err(Unusual),
        };
        rest = behind.get(length..).ok_or(Unusual)?;
    }
    Ok(rest.len() < inside.len())
}

/// Which brackets are open in a value that is skipped: a bit for each, set for an object's.
#[derive(Default)]
struct Brackets {
    are_objects: u128,
    count: u32,
}

impl Brackets {
    /// Adds one, `depth` being how many are open around them; there is room left for one without elements.
    fn push(&mut self, is_object: bool, depth: u32) -> Result<(), Unusual> {
        if depth + self.count + 1 >= DEPTH_MAX {
            return Err(Unusual);
        }
        self.are_objects = self.are_objects << 1 | u128::from(is_object);
        self.count += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.are_objects >>= 1;
        self.count -= 1;
    }

    /// Whether the one opened last is an object's; `None` where none is open.
    fn innermost(&self) -> Option<bool> {
        (self.count > 0).then_some(self.are_objects & 1 == 1)
    }
}
