//! The `id:` line of an entry: `id: <stream_id>:<seq>`, with `~<epoch>` once the epoch is above 1.
//!
//! It is written for every event, so without the formatting machinery; and its length is computed
//! instead of stored, so both live side by side here.

use crate::id::StreamId;
use crate::types::{Epoch, Seq};

/// What all id lines of one stream begin with.
pub(crate) struct Prefix([u8; PREFIX_LEN]);

impl Prefix {
    pub(crate) fn new(id: StreamId) -> Self {
        let mut prefix = *b"id: 00000000000000000000000000:";
        prefix[4..PREFIX_LEN - 1].copy_from_slice(id.text().as_bytes());
        Self(prefix)
    }

    /// Appends the id line and the blank line that ends the block.
    pub(crate) fn close_block(&self, seq: Seq, epoch: Epoch, out: &mut Vec<u8>) {
        // Filled from the back, so that the digits need no turning round.
        let mut line = [b'\n'; MAX_LEN + 1];
        let mut at = MAX_LEN - 1;
        if epoch > Epoch::FIRST {
            at = digits(epoch.get(), &mut line, at) - 1;
            line[at] = b'~';
        }
        at = digits(seq.get(), &mut line, at) - PREFIX_LEN;
        line[at..at + PREFIX_LEN].copy_from_slice(&self.0);
        out.extend_from_slice(&line[at..]);
    }
}

/// The length of an id line with its LF.
pub(crate) fn len(seq: Seq, epoch: Epoch) -> usize {
    let epoch = if epoch > Epoch::FIRST {
        1 + count(epoch.get())
    } else {
        0
    };
    PREFIX_LEN + count(seq.get()) + epoch + 1
}

/// Writes `number` so that it ends before `end`; returns where it starts.
fn digits(mut number: u64, line: &mut [u8], end: usize) -> usize {
    let mut at = end;
    loop {
        at -= 1;
        line[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return at;
        }
    }
}

fn count(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

const PREFIX_LEN: usize = 4 + 26 + 1;
/// A sequence, a tilde and an epoch behind the prefix, and LF.
const MAX_LEN: usize = PREFIX_LEN + 20 + 1 + 20 + 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Cursor;

    #[track_caller]
    fn check(seq: u64, epoch: u64) {
        let stream = StreamId::parse("01arz3ndektsv4rrffq69g5fav").unwrap();
        let (seq, epoch) = (Seq::new(seq), Epoch::new(epoch).unwrap());
        let mut out = b"data: x\n".to_vec();
        Prefix::new(stream).close_block(seq, epoch, &mut out);
        let cursor = Cursor { stream, seq, epoch };
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("data: x\nid: {cursor}\n\n")
        );
        assert_eq!(len(seq, epoch), format!("id: {cursor}\n").len());
    }

    #[test]
    fn is_the_written_cursor() {
        for seq in [0, 1, 9, 10, 99, 100, 999, 1000, 123_456_789, u64::MAX] {
            for epoch in [1, 2, 9, 10, 1 << 32, i64::MAX as u64] {
                check(seq, epoch);
            }
        }
    }
}
