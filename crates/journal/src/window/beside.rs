//! Bytes beside entries: what their writer knows and no reader is shown, for whoever continues the log in its place.
//!
//! They are here for as long as their entries may have to be appended (again): they go with the ring, with what is
//! abandoned, and when nothing more is appended. A window that is given none holds nothing for them.

use std::collections::VecDeque;

use crate::types::Seq;

/// The pieces of one window.
#[derive(Default)]
pub(super) struct Beside(Option<Box<Pieces>>);

#[derive(Default)]
struct Pieces {
    each: VecDeque<Piece>,
    /// One behind the other.
    bytes: VecDeque<u8>,
}

struct Piece {
    seq: Seq,
    len: usize,
}

impl Beside {
    /// Adds to the piece of an entry, which is the last that has one, or lies behind it.
    pub(super) fn put(&mut self, seq: Seq, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let pieces = self.0.get_or_insert_default();
        pieces.bytes.extend(bytes);
        match pieces.each.back_mut().filter(|last| last.seq == seq) {
            Some(last) => last.len += bytes.len(),
            None => pieces.each.push_back(Piece {
                seq,
                len: bytes.len(),
            }),
        }
    }

    /// The pieces of the entries after `after` through `through`, one behind the other.
    pub(super) fn of(&self, after: Seq, through: Seq) -> Vec<u8> {
        let Some(pieces) = &self.0 else {
            return Vec::new();
        };
        let first = pieces.each.partition_point(|piece| piece.seq <= after);
        // What is asked for are the newest ones, so it is counted from there.
        let behind = pieces.each.range(first..);
        let (mut wanted, mut rest) = (0, 0);
        for piece in behind {
            if piece.seq <= through {
                wanted += piece.len;
            } else {
                rest += piece.len;
            }
        }
        let start = pieces.bytes.len() - wanted - rest;
        let bytes = pieces.bytes.range(start..start + wanted);
        bytes.copied().collect()
    }

    /// The ring has let go of everything before `first`.
    pub(super) fn drop_before(&mut self, first: Seq) {
        let Some(pieces) = &mut self.0 else {
            return;
        };
        let count = pieces.each.partition_point(|piece| piece.seq < first);
        let len: usize = pieces.each.drain(..count).map(|piece| piece.len).sum();
        pieces.bytes.drain(..len);
        // Otherwise the ring would have to pay for what is not there any more.
        if pieces.bytes.len() < pieces.bytes.capacity() / 4 {
            pieces.bytes.shrink_to(pieces.bytes.len() * 2);
            pieces.each.shrink_to(pieces.each.len() * 2);
        }
    }

    /// What stands behind `last` is given up.
    pub(super) fn truncate(&mut self, last: Seq) {
        let Some(pieces) = &mut self.0 else {
            return;
        };
        let count = pieces.each.partition_point(|piece| piece.seq <= last);
        let len: usize = pieces.each.drain(count..).map(|piece| piece.len).sum();
        pieces.bytes.truncate(pieces.bytes.len() - len);
    }

    /// Nothing more is appended.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Bytes really held.
    pub(super) fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |pieces| {
            size_of::<Pieces>()
                + pieces.each.capacity() * size_of::<Piece>()
                + pieces.bytes.capacity()
        })
    }
}
