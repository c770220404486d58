//! Contiguous wire-ready bytes and the index over them.
//!
//! Entries live in blocks. The newest block is open: a vector that grows to a size chosen in advance.
//! A full one is sealed: trimmed to exactly what it holds and from then on shared by reference, so a
//! reader of sealed bytes copies nothing.
//!
//! The index costs 8 bytes per entry. Where an entry starts follows from the end of the one before;
//! how long its `id:` line is follows from its sequence and the block's epoch. A block never spans two
//! epochs.

use std::ops::Range;

use bytes::Bytes;

use crate::types::{Epoch, Kind, Seq, View};

/// One entry in the index of its block: where it ends, what it is, and when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// End offset in the upper 29 bits, kind in the lower 3.
    end_and_kind: u32,
    /// Milliseconds since the window began; 49 days, then the clock stands still.
    pub(crate) millis: u32,
}

impl Slot {
    pub(crate) fn new(end: usize, kind: Kind, millis: u32) -> Self {
        assert!(
            end <= MAX_BLOCK,
            "an entry of {end} bytes is beyond what a block can index"
        );
        Self {
            end_and_kind: (end as u32) << KIND_BITS | kind as u32,
            millis,
        }
    }

    pub(crate) fn end(self) -> usize {
        (self.end_and_kind >> KIND_BITS) as usize
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::ALL[(self.end_and_kind & KIND_MASK) as usize]
    }
}

/// A sealed block: exactly as large as what it holds.
pub(crate) struct Block {
    first: Seq,
    epoch: Epoch,
    slots: Box<[Slot]>,
    pub(crate) bytes: Bytes,
}

impl Block {
    pub(crate) fn part(&self) -> Part<'_> {
        Part {
            first: self.first,
            epoch: self.epoch,
            slots: &self.slots,
            bytes: &self.bytes,
        }
    }

    /// What it really holds, apart from its own place in the list of blocks.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.slots)
    }

    /// Gives up the entries behind `last`, with their memory. The rare path of an abandoned suffix.
    pub(crate) fn truncate(&mut self, last: Seq) {
        let keep = self.part().offset(last) + 1;
        let end = self.slots[keep - 1].end();
        self.slots = self.slots[..keep].into();
        self.bytes = Bytes::copy_from_slice(&self.bytes[..end]);
    }
}

/// The open block. Holds no memory before its first entry.
pub(crate) struct Tail {
    first: Seq,
    epoch: Epoch,
    slots: Vec<Slot>,
    bytes: Vec<u8>,
}

impl Tail {
    pub(crate) fn new(first: Seq, epoch: Epoch) -> Self {
        Self {
            first,
            epoch,
            slots: Vec::new(),
            bytes: Vec::new(),
        }
    }

    pub(crate) fn part(&self) -> Part<'_> {
        Part {
            first: self.first,
            epoch: self.epoch,
            slots: &self.slots,
            bytes: &self.bytes,
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Makes room for `capacity` bytes in a block that has none yet.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(capacity);
        }
    }

    /// Whether another entry as long as the last one probably fits. Most events of a stream are of
    /// about one length, so this spares growing the vector just to find out.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.capacity() - self.bytes.len() >= self.part().last_len()
    }

    /// Lets `write` append one entry. `Err` when that outgrew the block: the bytes then lie behind
    /// the last indexed entry and wait for [`split`](Self::split).
    pub(crate) fn append(
        &mut self,
        kind: Kind,
        millis: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Outgrown> {
        let start = self.part().end();
        // A writer that panicked half-way may have left bytes that belong to nothing.
        self.bytes.truncate(start);
        let room = self.bytes.capacity();
        write(&mut self.bytes);
        let end = self.bytes.len();
        assert!(end > start, "an entry has bytes");
        if end > room {
            return Err(Outgrown);
        }
        self.slots.push(Slot::new(end, kind, millis));
        Ok(())
    }

    /// After [`Outgrown`]: takes the unindexed entry along into a new block of `capacity` or its
    /// own length. Returns the block that it did not fit in, if that holds anything.
    pub(crate) fn split(&mut self, capacity: usize, kind: Kind, millis: u32) -> Option<Block> {
        let start = self.part().end();
        let full = (start > 0).then(|| {
            let entry = &self.bytes[start..];
            let mut bytes = Vec::with_capacity(capacity.max(entry.len()));
            bytes.extend_from_slice(entry);
            self.bytes.truncate(start);
            let full = self.seal();
            self.bytes = bytes;
            full
        });
        self.slots.push(Slot::new(self.bytes.len(), kind, millis));
        full
    }

    /// Trims and shares what is there; an empty tail of the same epoch stays behind.
    pub(crate) fn seal(&mut self) -> Block {
        let next = self.first.get() + self.slots.len() as u64;
        let sealed = std::mem::replace(self, Self::new(Seq::new(next), self.epoch));
        let mut bytes = sealed.bytes;
        // Exact length and capacity also spare `Bytes` a separate header.
        bytes.shrink_to_fit();
        Block {
            first: sealed.first,
            epoch: sealed.epoch,
            slots: sealed.slots.into(),
            bytes: bytes.into(),
        }
    }

    /// Gives up the entries behind `last`.
    pub(crate) fn truncate(&mut self, last: Seq) {
        let keep = (last.get() + 1).saturating_sub(self.first.get()) as usize;
        self.slots.truncate(keep);
        self.bytes.truncate(self.part().end());
        if self.slots.is_empty() {
            *self = Self::new(last.next(), self.epoch);
        }
    }

    /// Moves to another place. Only for an empty tail.
    pub(crate) fn set_first(&mut self, first: Seq) {
        debug_assert!(self.is_empty(), "entries keep their places");
        self.first = first;
    }

    /// Starts another epoch. Only for an empty tail.
    pub(crate) fn set_epoch(&mut self, epoch: Epoch) {
        debug_assert!(self.is_empty(), "a block never spans two epochs");
        self.epoch = epoch;
    }
}

/// The entry did not fit in its block.
pub(crate) struct Outgrown;

/// Entries that lie side by side, sealed or not.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) first: Seq,
    pub(crate) epoch: Epoch,
    slots: &'a [Slot],
    pub(crate) bytes: &'a [u8],
}

impl Part<'_> {
    /// The last entry; one before the first if there is none.
    pub(crate) fn last(&self) -> Seq {
        Seq::new(self.first.get() + self.slots.len() as u64).prev()
    }

    pub(crate) fn contains(&self, seq: Seq) -> bool {
        self.first <= seq && seq <= self.last()
    }

    pub(crate) fn slot(&self, seq: Seq) -> Slot {
        self.slots[self.offset(seq)]
    }

    /// The index of several entries.
    pub(crate) fn slots(&self, from: Seq, through: Seq) -> &[Slot] {
        &self.slots[self.offset(from)..=self.offset(through)]
    }

    /// The bytes of one entry, with id line and blank line.
    pub(crate) fn range(&self, seq: Seq) -> Range<usize> {
        let offset = self.offset(seq);
        self.start(offset)..self.slots[offset].end()
    }

    /// The bytes of several entries.
    pub(crate) fn run(&self, from: Seq, through: Seq) -> Range<usize> {
        self.range(from).start..self.range(through).end
    }

    /// The lines of one entry, without id line and blank line.
    pub(crate) fn lines(&self, seq: Seq) -> Range<usize> {
        let range = self.range(seq);
        range.start..range.end - crate::idline::len(seq, self.epoch) - 1
    }

    /// The longest run of side by side entries from `from` that `view` is shown: at most `max`
    /// bytes as stored, but at least one entry, and none behind `limit`. `None` when `from` itself
    /// is hidden.
    pub(crate) fn shown(&self, from: Seq, limit: Seq, view: View, max: usize) -> Option<Seq> {
        let offset = self.offset(from);
        let start = self.start(offset);
        let count = (limit.get() - from.get() + 1).min((self.slots.len() - offset) as u64) as usize;
        let mut shown = 0;
        for slot in &self.slots[offset..offset + count] {
            if !view.shows(slot.kind()) || (shown > 0 && slot.end() - start > max) {
                break;
            }
            shown += 1;
        }
        (shown > 0).then(|| Seq::new(from.get() + shown - 1))
    }

    /// Appends entries with their id lines left out.
    pub(crate) fn render_bare(&self, from: Seq, through: Seq, out: &mut Vec<u8>) {
        for seq in from.get()..=through.get() {
            out.extend_from_slice(&self.bytes[self.lines(Seq::new(seq))]);
            out.push(b'\n');
        }
    }

    fn offset(&self, seq: Seq) -> usize {
        (seq.get() - self.first.get()) as usize
    }

    fn start(&self, offset: usize) -> usize {
        offset
            .checked_sub(1)
            .map_or(0, |before| self.slots[before].end())
    }

    fn end(&self) -> usize {
        self.start(self.slots.len())
    }

    fn last_len(&self) -> usize {
        match self.slots.len() {
            0 => 0,
            count => self.end() - self.start(count - 1),
        }
    }
}

const KIND_BITS: u32 = 3;
const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
const MAX_BLOCK: usize = (u32::MAX >> KIND_BITS) as usize;
