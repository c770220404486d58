//! Copies of unsealed or rendered bytes, shared among readers at the same place.
//!
//! A reader at the live tail cannot share the bytes themselves, because the writer still grows
//! them. When several readers were woken together, the first copies and the others are given the same
//! allocation. A copy is let go once all of them had it, or at the next wake-up: an idle window
//! holds none, and one that only one reader follows never does.

use bytes::Bytes;

use crate::types::Seq;

/// In which of its two forms a run is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As stored, with id lines.
    Stored,
    /// Without id lines.
    Bare,
}

#[derive(Default)]
pub(super) struct Copies {
    /// How many readers the last wake-up woke.
    woken: u32,
    /// One per form, so that a crowd with mixed views does not undo each other's. Boxed because most
    /// windows never have any.
    kept: Option<Box<[Option<Copy>; 2]>>,
}

struct Copy {
    from: Seq,
    through: Seq,
    bytes: Bytes,
    left: u32,
}

impl Copies {
    /// So many readers are about to come.
    pub(super) fn expect(&mut self, woken: u32) {
        self.kept = None;
        self.woken = woken;
    }

    pub(super) fn forget(&mut self) {
        self.expect(0);
    }

    pub(super) fn find(&mut self, form: Form, from: Seq, through: Seq) -> Option<Bytes> {
        let kept = &mut self.kept.as_mut()?[form as usize];
        let copy = kept
            .as_mut()
            .filter(|copy| copy.from == from && copy.through == through)?;
        copy.left -= 1;
        let bytes = copy.bytes.clone();
        if copy.left == 0 {
            *kept = None;
        }
        Some(bytes)
    }

    pub(super) fn keep(&mut self, form: Form, from: Seq, through: Seq, bytes: &Bytes) {
        if self.woken > 1 {
            let copy = Copy {
                from,
                through,
                bytes: bytes.clone(),
                left: self.woken - 1,
            };
            self.kept.get_or_insert_default()[form as usize] = Some(copy);
        }
    }
}

#[cfg(test)]
impl Copies {
    pub(super) fn is_empty(&self) -> bool {
        self.kept
            .as_ref()
            .is_none_or(|kept| kept.iter().all(Option::is_none))
    }
}
