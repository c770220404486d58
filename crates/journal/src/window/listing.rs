//! Where the entries of a run lie, and what each of them is: for readers that do not send a run as it stands.
//!
//! A run is read once, under one lock, together with this; what is made of its entries is made after that, and holds
//! up nobody. One that is used again and again takes no memory anew.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use crate::idline;
use crate::segment::{Part, Slot};
use crate::types::{Epoch, Kind, Seq};

/// The entries of one run; see [`Reader::poll_listed`](crate::Reader::poll_listed).
#[derive(Debug, Default)]
pub struct Listing {
    first: Seq,
    epoch: Option<Epoch>,
    began: Option<SystemTime>,
    /// Where the run began in its block.
    start: usize,
    slots: Vec<Slot>,
}

/// One entry of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its place.
    pub seq: Seq,
    /// Under which writer it was written.
    pub epoch: Epoch,
    /// What it is.
    pub kind: Kind,
    /// When it was staged, in whole milliseconds.
    pub time: SystemTime,
    /// Its block in the bytes of the run, with id line and blank line.
    pub block: Range<usize>,
    /// The lines of its block alone.
    pub lines: Range<usize>,
}

impl Listing {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The entry at an index.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<Listed> {
        let slot = self.slots.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.slots[before].end() - self.start,
            None => 0,
        };
        let end = slot.end() - self.start;
        let seq = Seq::new(self.first.get() + index as u64);
        let epoch = self.epoch?;
        Some(Listed {
            seq,
            epoch,
            kind: slot.kind(),
            time: self.began? + Duration::from_millis(slot.millis.into()),
            block: start..end,
            lines: start..end - idline::len(seq, epoch) - 1,
        })
    }

    /// Takes down what stands from `from` through `through`.
    pub(super) fn take(&mut self, part: &Part<'_>, from: Seq, through: Seq, began: SystemTime) {
        self.first = from;
        self.epoch = Some(part.epoch);
        self.began = Some(began);
        self.start = part.range(from).start;
        self.slots.clear();
        self.slots.extend_from_slice(part.slots(from, through));
    }
}
