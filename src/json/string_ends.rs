//! Where the strings of a JSON text end, found a block of bytes at a time.
//!
//! A block costs the same whether one long string is in it or ten short ones, and no branch depends
//! on how long they are.

use wide::u8x16;

use super::Unusual;

/// How many bytes are looked at together: a bit of a word for each.
const BLOCK: usize = u64::BITS as usize;

/// The ends of the strings, in their order.
///
/// Between the strings it takes a text for what it should be. One that has anything else there, the
/// reader refuses before it comes to the next string.
pub(super) struct StringEnds<'de> {
    text: &'de [u8],
    /// The block looked at, and behind it.
    start: usize,
    end: usize,
    /// The ends in the block that are still to come.
    left: u64,
    /// All bits where the block behind this one begins inside a string, else none.
    in_string: u64,
    /// The lowest bit where the block behind this one begins with a byte that a backslash stands before.
    is_escaped: u64,
    /// Behind the last backslash so far.
    backslash_end: usize,
}

impl<'de> StringEnds<'de> {
    pub(super) const fn new(text: &'de [u8]) -> Self {
        Self { text, start: 0, end: 0, left: 0, in_string: 0, is_escaped: 0, backslash_end: 0 }
    }

    /// Where the next string has its last quotation mark.
    #[inline]
    pub(super) fn next(&mut self) -> Result<usize, Unusual> {
        while self.left == 0 {
            self.next_block()?;
        }
        let end = self.start + self.left.trailing_zeros() as usize;
        self.left &= self.left.wrapping_sub(1);
        Ok(end)
    }

    /// Whether there may be a backslash from this place on, among the bytes looked at so far.
    pub(super) const fn may_have_backslash(&self, start: usize) -> bool {
        self.backslash_end > start
    }

    fn next_block(&mut self) -> Result<(), Unusual> {
        let rest = self.text.get(self.end..).filter(|rest| !rest.is_empty()).ok_or(Unusual)?;
        self.start = self.end;
        self.end += BLOCK;
        let last;
        let block = if let Some(block) = rest.first_chunk() {
            block
        } else {
            last = std::array::from_fn(|index| rest.get(index).copied().unwrap_or(b' '));
            &last
        };

        let mut quotation_marks = bits(block, |bytes| bytes.simd_eq(u8x16::splat(b'"')));
        let rare =
            bits(block, |bytes| bytes.simd_eq(u8x16::splat(b'\\')) | bytes.simd_eq(bytes.min(u8x16::splat(0x1f))));
        let mut control = 0;
        if rare | self.is_escaped != 0 {
            let backslashes = bits(block, |bytes| bytes.simd_eq(u8x16::splat(b'\\')));
            control = rare & !backslashes;
            quotation_marks &= !self.escaped(backslashes);
        }
        let in_string = from_odd_to_even(quotation_marks) ^ self.in_string;
        self.in_string = 0_u64.wrapping_sub(in_string >> (BLOCK - 1));
        self.left = quotation_marks & !in_string;
        // RFC 8259, section 7.
        if control & in_string == 0 { Ok(()) } else { Err(Unusual) }
    }

    /// The bytes that a backslash stands before which is none of them itself.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        if backslashes != 0 {
            self.backslash_end = self.end - backslashes.leading_zeros() as usize;
        }
        let mut escaped = std::mem::take(&mut self.is_escaped);
        let mut left = backslashes & !escaped;
        while left != 0 {
            let first = left & left.wrapping_neg();
            let next = first << 1;
            self.is_escaped = u64::from(next == 0);
            escaped |= next;
            left &= !(first | next);
        }
        escaped
    }
}

/// A bit for each byte that is of a kind, the lowest for the first.
fn bits(block: &[u8; BLOCK], is_of_kind: impl Fn(u8x16) -> u8x16) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().rev().fold(0, |bits, part| bits << 16 | u64::from(is_of_kind(u8x16::new(*part)).to_bitmask()))
}

/// All bits from each first, third, fifth ... that is set up to the one below the next that is set.
const fn from_odd_to_even(mut bits: u64) -> u64 {
    let mut shift = 1;
    while shift < u64::BITS {
        bits ^= bits << shift;
        shift *= 2;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str) -> Vec<usize> {
        let mut ends = StringEnds::new(text.as_bytes());
        std::iter::from_fn(|| ends.next().ok()).collect()
    }

    #[test]
    fn tells_where_strings_end() {
        assert_eq!(ends(r#"{"a:,": ["", "\"", "\\"]}"#), vec![5, 10, 16, 22]);
        assert_eq!(ends(""), Vec::<usize>::new());
        assert_eq!(ends("[1]"), Vec::<usize>::new());
        assert_eq!(ends("\"open"), Vec::<usize>::new());
    }

    #[test]
    fn tells_the_same_wherever_blocks_end() {
        let text = r#"{"a\"b\\":"\\\"[","c":12345,"\\\\":null,"é\u0022":"#;
        let unshifted = ends(text);
        assert_eq!(unshifted.len(), 5);
        for shift in 0..3 * BLOCK {
            let shifted: Vec<_> = unshifted.iter().map(|end| end + shift).collect();
            assert_eq!(ends(&format!("{}{text}", " ".repeat(shift))), shifted, "{shift}");
        }
    }

    #[test]
    fn refuses_control_characters_in_strings_alone() {
        for place in 0..2 * BLOCK {
            let before = "a".repeat(place);
            for byte in '\0'..='\u{1f}' {
                assert_eq!(ends(&format!("\"{before}{byte}\"")), Vec::<usize>::new(), "{byte:?} at {place}");
                assert_eq!(ends(&format!("{before}{byte}\"\"")).len(), 1, "{byte:?} at {place}");
            }
        }
    }

    #[test]
    fn tells_of_backslashes() {
        for place in 0..2 * BLOCK {
            let text = format!("\"{}\\n\"", "a".repeat(place));
            let mut ends = StringEnds::new(text.as_bytes());
            assert_eq!(ends.next(), Ok(place + 3));
            assert!(ends.may_have_backslash(place + 1), "{place}");
            assert!(!ends.may_have_backslash(place + 2), "{place}");
        }
    }
}
