//! The entries of a window: sealed blocks, oldest first, and the open one behind them.

use std::collections::VecDeque;

use bytes::Bytes;

use super::WindowConfig;
use crate::segment::{Block, Outgrown, Part, Tail};
use crate::types::{Epoch, Kind, Seq};

pub(super) struct Blocks {
    sealed: VecDeque<Block>,
    /// What the sealed blocks hold.
    sealed_bytes: usize,
    tail: Tail,
    /// How often a block was filled: each next one is twice as large.
    filled: u32,
    largest: usize,
}

impl Blocks {
    pub(super) fn new(epoch: Epoch, config: WindowConfig) -> Self {
        Self {
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            tail: Tail::new(Seq::FIRST, epoch),
            filled: 0,
            // An eighth of the ring at most, so that the ring turns in small steps.
            largest: (config.max_bytes / 8).clamp(FIRST_BLOCK, LARGEST_BLOCK),
        }
    }

    /// Appends one entry, with all its bytes.
    pub(super) fn push(&mut self, kind: Kind, millis: u32, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.tail.has_room() {
            self.seal();
            self.filled += 1;
        }
        self.tail.reserve(self.block_size());
        if let Err(Outgrown) = self.tail.append(kind, millis, write) {
            self.filled += 1;
            if let Some(full) = self.tail.split(self.block_size(), kind, millis) {
                self.keep(full);
            }
            // Larger than any block: it stays alone, at its exact size.
            if !self.tail.has_room() {
                self.seal();
            }
        }
    }

    /// Trims the open block; the next entry begins another one.
    pub(super) fn seal(&mut self) {
        if !self.tail.is_empty() {
            let full = self.tail.seal();
            self.keep(full);
        }
    }

    /// The first entry will be `first`. Only where there is none yet.
    pub(super) fn begin_at(&mut self, first: Seq) {
        self.tail.set_first(first);
    }

    /// Entries from here on are of another epoch, which begins a block.
    pub(super) fn begin_epoch(&mut self, epoch: Epoch) {
        self.seal();
        self.tail.set_epoch(epoch);
    }

    /// Gives up the entries behind `last`.
    pub(super) fn truncate(&mut self, last: Seq) {
        while self
            .sealed
            .back()
            .is_some_and(|block| block.part().first > last)
        {
            let gone = self.sealed.pop_back().expect("just seen");
            self.sealed_bytes -= gone.held();
        }
        self.tail.truncate(last);
        if let Some(block) = self
            .sealed
            .back_mut()
            .filter(|block| block.part().last() > last)
        {
            self.sealed_bytes -= block.held();
            block.truncate(last);
            self.sealed_bytes += block.held();
        }
    }

    /// Drops the oldest block if all of it lies before `keep`. Says whether there was one.
    pub(super) fn drop_before(&mut self, keep: Seq) -> bool {
        if self
            .sealed
            .front()
            .is_none_or(|block| block.part().last() >= keep)
        {
            return false;
        }
        let gone = self.sealed.pop_front().expect("just seen");
        self.sealed_bytes -= gone.held();
        true
    }

    /// The first entry; one behind the last if there is none.
    pub(super) fn first(&self) -> Seq {
        self.sealed
            .front()
            .map_or(self.tail.part().first, |block| block.part().first)
    }

    pub(super) fn last(&self) -> Seq {
        self.tail.part().last()
    }

    /// The part in which an entry lies, and its bytes for sharing if it is sealed.
    pub(super) fn locate(&self, seq: Seq) -> Option<(Part<'_>, Option<&Bytes>)> {
        let tail = self.tail.part();
        if tail.first <= seq {
            return tail.contains(seq).then_some((tail, None));
        }
        let after = self
            .sealed
            .partition_point(|block| block.part().first <= seq);
        let block = self.sealed.get(after.checked_sub(1)?)?;
        Some((block.part(), Some(&block.bytes)))
    }

    /// Bytes really held.
    pub(super) fn held(&self) -> usize {
        self.sealed_bytes + self.held_besides()
    }

    /// The slow, obvious count, as a check of the running one.
    #[cfg(test)]
    pub(super) fn recount(&self) -> usize {
        self.sealed.iter().map(Block::held).sum::<usize>() + self.held_besides()
    }

    fn held_besides(&self) -> usize {
        self.sealed.capacity() * size_of::<Block>() + self.tail.held()
    }

    fn keep(&mut self, block: Block) {
        self.sealed_bytes += block.held();
        self.sealed.push_back(block);
    }

    fn block_size(&self) -> usize {
        (FIRST_BLOCK << self.filled.min(DOUBLINGS)).min(self.largest)
    }
}

/// Small, for the many generations that say little.
const FIRST_BLOCK: usize = 1 << 10;
/// What a reader sends in one piece.
const LARGEST_BLOCK: usize = 256 << 10;
const DOUBLINGS: u32 = (LARGEST_BLOCK / FIRST_BLOCK).ilog2();
