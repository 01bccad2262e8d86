//! Stepping over JSON text: words, numbers, strings and whole values, of which nothing is kept.

use std::fmt;

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
    depth: u32,
}

impl<'de> Scanner<'de> {
    pub(super) const fn new(text: &'de str) -> Self {
        Self { text, position: 0, depth: 0 }
    }

    /// How many brackets are open around what comes next.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// A string as it stands between its quotation marks.
    pub(super) fn inside(&self, string: &Quoted) -> Result<&'de str, Unusual> {
        self.text.get(string.start..string.end).ok_or(Unusual)
    }

    /// A string with its quotation marks.
    pub(super) fn whole(&self, string: &Quoted) -> Result<&'de str, Unusual> {
        self.text.get(string.start - 1..=string.end).ok_or(Unusual)
    }

    /// The byte that comes next, and is no space; `None` at the end.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.position)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
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

    /// Steps over a string, and tells where in the text it stands.
    pub(super) fn take_string(&mut self) -> Result<Quoted, Unusual> {
        self.take(b'"')?;
        let start = self.position;
        let mut has_escapes = false;
        loop {
            let end = end_of_plain(self.text.as_bytes(), self.position).ok_or(Unusual)?;
            match self.text.as_bytes().get(end) {
                Some(b'"') => {
                    self.position = end + 1;
                    return Ok(Quoted { start, end, has_escapes });
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.position = end + 1;
                    self.take_escaped()?;
                }
                _ => return Err(Unusual),
            }
        }
    }

    /// Steps over what is behind a backslash.
    fn take_escaped(&mut self) -> Result<(), Unusual> {
        let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
        self.position += match rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
            [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => 5,
            _ => return Err(Unusual),
        };
        Ok(())
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
        loop {
            match self.peek().ok_or(Unusual)? {
                b'"' => {
                    self.take_string()?;
                }
                b'{' => {
                    self.position += 1;
                    if self.peek() == Some(b'}') {
                        self.position += 1;
                    } else {
                        open.push(true, self.depth)?;
                        self.skip_key()?;
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
                    (Some(b','), true) => {
                        self.skip_key()?;
                        break;
                    }
                    (Some(b','), false) => break,
                    (Some(b'}'), true) | (Some(b']'), false) => open.pop(),
                    _ => return Err(Unusual),
                }
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), Unusual> {
        self.take_string()?;
        self.take(b':')
    }
}

/// Where the bytes of a string begin and end, without its quotation marks.
pub(super) struct Quoted {
    start: usize,
    end: usize,
    /// Whether one of them is a backslash.
    pub(super) has_escapes: bool,
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

/// Where the next quotation mark, backslash or control character stands, from `position` on.
fn end_of_plain(bytes: &[u8], position: usize) -> Option<usize> {
    let rest = bytes.get(position..)?;
    let (words, _) = rest.as_chunks::<8>();
    let mut skipped = position;
    for word in words {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return Some(skipped + marks.trailing_zeros() as usize / 8);
        }
        skipped += 8;
    }
    let tail = bytes.get(skipped..)?;
    Some(skipped + tail.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?)
}

/// The top bit of each byte of a word that is a quotation mark, a backslash or a control character.
///
/// The lowest that is set is right. Those above it need not be: what is taken from a byte that is
/// too small for it is borrowed from the next.
const fn marks(word: u64) -> u64 {
    const EACH: u64 = u64::MAX / 255;
    const TOP: u64 = EACH << 7;
    let quotation_mark = (word ^ (EACH * b'"' as u64)).wrapping_sub(EACH);
    let backslash = (word ^ (EACH * b'\\' as u64)).wrapping_sub(EACH);
    let control = word.wrapping_sub(EACH * 0x20);
    // What has its top bit set is a part of a longer character.
    (quotation_mark | backslash | control) & !word & TOP
}
