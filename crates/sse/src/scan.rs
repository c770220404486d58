//! The search for the end of a block, resumable at every byte.
//!
//! The scan begins inside the first field's line and stops at the first blank line. It remembers
//! where the first few lines ended, so that neither the event's accessors nor the encoder search
//! for them again: for the usual block of one or two lines this search is the only one.

use memchr::memchr2;

/// The state of the search inside one block.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    at: At,
    line_ends: LineEnds,
}

/// `InLine` -> `AfterCr` or `LineStart` -> `InLine`, until a line starts with its own end.
#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// Inside a line that has at least one byte.
    #[default]
    InLine,
    /// Behind a CR: an LF here is the second half of the same line end.
    AfterCr,
    /// Behind an LF: any line end here is a blank line.
    LineStart,
}

impl Scan {
    /// Looks for the blank line that ends the block in `input`, the bytes that follow the first
    /// `before` bytes of it, and returns its start. `None` means that all of `input` belongs to
    /// the block and more must come. A search with nothing before it is in a new block.
    pub(crate) fn find_blank(&mut self, before: usize, input: &[u8]) -> Option<usize> {
        if before == 0 {
            self.line_ends.count = 0;
        }
        let mut next = 0;
        loop {
            if let At::InLine = self.at {
                let end = next + memchr2(b'\n', b'\r', &input[next..])?;
                self.line_ends.push(before + end);
                self.at = match input[end] {
                    b'\r' => At::AfterCr,
                    _ => At::LineStart,
                };
                next = end + 1;
            }
            self.at = match (self.at, *input.get(next)?) {
                (At::AfterCr, b'\n') => At::LineStart,
                (_, b'\n' | b'\r') => {
                    self.at = At::InLine;
                    return Some(next);
                }
                _ => At::InLine,
            };
            next += 1;
        }
    }

    /// The line ends found in this block, or in the last one if no new one has begun.
    pub(crate) fn line_ends(&self) -> &LineEnds {
        &self.line_ends
    }
}

/// Where the first lines of a block end, counted from its start. Complete only for blocks of at
/// most [`LineEnds::KNOWN`] lines.
#[derive(Debug, Default)]
pub(crate) struct LineEnds {
    known: [usize; Self::KNOWN],
    count: usize,
}

impl LineEnds {
    /// Enough for `event`, `id`, `retry` and one `data` line.
    const KNOWN: usize = 4;

    fn push(&mut self, end: usize) {
        if let Some(slot) = self.known.get_mut(self.count) {
            *slot = end;
            self.count += 1;
        }
    }

    /// Where line number `index` ends, if that is known.
    pub(crate) fn get(&self, index: usize) -> Option<usize> {
        self.known[..self.count].get(index).copied()
    }
}
