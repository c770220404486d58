//! What may stand before a block: a byte order mark, blank lines, comments.
//!
//! None of it is kept. A comment is dropped as it arrives, however long it is, and its bytes are
//! not looked at beyond the search for its end; they need not even be UTF-8.

use memchr::memchr2;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Strips one byte order mark from the very start of a stream, also when it is torn.
#[derive(Debug, Default)]
pub(crate) struct Bom {
    /// How much of the mark was taken; all of it also stands for "the start is over".
    taken: usize,
}

impl Bom {
    /// Takes the mark, or as much of it as is there. Returns the bytes of an earlier read that
    /// looked like the beginning of one and now prove to be the beginning of a line.
    pub(crate) fn strip(&mut self, input: &mut &[u8]) -> &'static [u8] {
        while self.taken < BOM.len() {
            let Some((&byte, rest)) = input.split_first() else {
                break;
            };
            if byte != BOM[self.taken] {
                let held = &BOM[..self.taken];
                self.taken = BOM.len();
                return held;
            }
            self.taken += 1;
            *input = rest;
        }
        &[]
    }
}

/// Skips the lines between two blocks.
#[derive(Debug, Default)]
pub(crate) struct Gap {
    in_comment: bool,
}

impl Gap {
    /// Takes line ends and comments from the front of `input`. What is left, if anything, begins
    /// with the first byte of a field.
    ///
    /// CR and LF need no pairing here: one blank line more or less between blocks is no matter.
    pub(crate) fn skip(&mut self, input: &mut &[u8]) {
        loop {
            if self.in_comment {
                let Some(end) = memchr2(b'\n', b'\r', input) else {
                    *input = &[];
                    return;
                };
                self.in_comment = false;
                *input = &input[end + 1..];
            }
            match input.split_first() {
                Some((b'\n' | b'\r', rest)) => *input = rest,
                Some((b':', rest)) => {
                    self.in_comment = true;
                    *input = rest;
                }
                Some(_) | None => return,
            }
        }
    }
}
