//! Ranges of a window for those who are not readers: backends and transcripts.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::state::State;
use crate::segment::Part;
use crate::types::{Kind, Seq, Terminal};

/// A range of entries with their stored bytes.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What it follows. Later than what was asked for where the ring has let entries go; then they
    /// cannot be had here any more.
    pub after: Seq,
    /// The entries in order, without a gap.
    pub entries: Vec<Entry>,
    /// Their bytes one behind the other, in a few pieces; a piece ends where an entry ends.
    pub runs: Vec<Bytes>,
    /// What was staged beside them, one piece behind the other; see [`Staging::beside`](super::Staging::beside).
    pub beside: Vec<u8>,
    /// The terminal, when it is the last entry.
    pub terminal: Option<Arc<Terminal>>,
}

/// One entry of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub seq: Seq,
    /// What it is.
    pub kind: Kind,
    /// Bytes of its block as stored, with id line and blank line.
    pub len: usize,
    /// When it was staged.
    pub time: SystemTime,
}

/// One entry for somebody who looks inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryBytes {
    /// Its place.
    pub seq: Seq,
    /// What it is.
    pub kind: Kind,
    /// When it was staged.
    pub time: SystemTime,
    /// The lines of its block, without id line and blank line.
    pub lines: Bytes,
}

impl Batch {
    /// The last entry; `after` when there is none.
    pub fn through(&self) -> Seq {
        self.entries.last().map_or(self.after, |entry| entry.seq)
    }

    /// All bytes of the entries.
    pub fn len(&self) -> usize {
        self.runs.iter().map(Bytes::len).sum()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl State {
    pub(super) fn batch(&self, after: Seq, through: Seq) -> Batch {
        let through = through.min(self.received());
        let after = after.max(self.earliest().prev());
        let mut batch = Batch {
            after,
            entries: Vec::new(),
            runs: Vec::new(),
            beside: self.beside(after, through),
            terminal: None,
        };
        self.pieces(after, through, |part, sealed, from, to| {
            let range = part.run(from, to);
            batch.runs.push(match sealed {
                Some(sealed) => sealed.slice(range),
                None => Bytes::copy_from_slice(&part.bytes[range]),
            });
            batch
                .entries
                .extend((from.get()..=to.get()).map(Seq::new).map(|seq| {
                    let slot = part.slot(seq);
                    Entry {
                        seq,
                        kind: slot.kind(),
                        len: part.range(seq).len(),
                        time: self.time(slot.millis),
                    }
                }));
        });
        batch.terminal = self.terminal_through(batch.through()).cloned();
        batch
    }

    pub(super) fn entries(&self, after: Seq, limit: usize) -> Vec<EntryBytes> {
        let after = after.max(self.earliest().prev());
        let through = after
            .get()
            .saturating_add(limit as u64)
            .min(self.committed().get());
        let mut entries = Vec::new();
        self.pieces(after, Seq::new(through), |part, sealed, from, to| {
            let run = part.run(from, to);
            let bytes = match sealed {
                Some(sealed) => sealed.slice(run.clone()),
                None => Bytes::copy_from_slice(&part.bytes[run.clone()]),
            };
            entries.extend((from.get()..=to.get()).map(Seq::new).map(|seq| {
                let slot = part.slot(seq);
                let lines = part.lines(seq);
                let lines = bytes.slice(lines.start - run.start..lines.end - run.start);
                EntryBytes {
                    seq,
                    kind: slot.kind(),
                    time: self.time(slot.millis),
                    lines,
                }
            }));
        });
        entries
    }

    pub(super) fn uncommitted(&self) -> usize {
        let mut bytes = 0;
        self.pieces(self.committed(), self.received(), |part, _, from, to| {
            bytes += part.run(from, to).len();
        });
        bytes
    }

    /// Walks over the entries after `after` through `through`, block by block.
    fn pieces(
        &self,
        after: Seq,
        through: Seq,
        mut each: impl FnMut(Part<'_>, Option<&Bytes>, Seq, Seq),
    ) {
        let mut from = after.next();
        while from <= through {
            let Some((part, sealed)) = self.locate(from) else {
                return;
            };
            let to = part.last().min(through);
            each(part, sealed, from, to);
            from = to.next();
        }
    }
}
