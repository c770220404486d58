//! The rules of the [contract](crate::Journal), without a log: who may change what stands, and what a writer concludes from
//! what it reads back.
//!
//! One copy of each. The memory backend decides by them, the scripts of the Redis backend are held to the same outcomes,
//! whoever writes or takes over asks them, and the model of the whole protocol (`model/`) runs them.

use crate::contract::{Outcome, Refusal, Tail};
use crate::types::{Epoch, Seq};
use crate::window::Digest;

/// How a log stands, for whoever wants to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Its writer.
    pub epoch: Epoch,
    /// Its last entry.
    pub last: Seq,
    /// That is a terminal.
    pub ended: bool,
}

impl Standing {
    /// Whether a writer of the epoch `by` may put something behind `expected`, be it an entry or the end.
    ///
    /// A higher epoch than the one that stands is no right to write: its adoption was lost with the end of the log, and the
    /// writer from before may have gone on since.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn allows(self, by: Epoch, expected: Seq) -> Result<(), Refusal> {
        if self.ended {
            Err(Refusal::Ended)
        } else if by != self.epoch {
            Err(Refusal::Fenced { epoch: self.epoch })
        } else {
            self.ends_with(expected)
        }
    }

    /// Whether the writer may change to one of the epoch `by`, who has seen everything through `expected`.
    ///
    /// # Errors
    /// What stands in the way. A writer that adopts what is its own already is fenced by itself.
    pub fn allows_adoption(self, by: Epoch, expected: Seq) -> Result<(), Refusal> {
        let fenced = Refusal::Fenced { epoch: self.epoch };
        if self.ended {
            return Err(Refusal::Ended);
        } else if by < self.epoch {
            return Err(fenced);
        }
        self.ends_with(expected)?;
        if by == self.epoch {
            return Err(fenced);
        }
        Ok(())
    }

    fn ends_with(self, expected: Seq) -> Result<(), Refusal> {
        if self.last == expected {
            Ok(())
        } else {
            Err(Refusal::Unexpected { last: self.last })
        }
    }
}

/// Whether a record of `epoch` that begins with `first` has its place behind one of the epoch `before` that ends with `last`.
///
/// Redis takes what is greater, so it may have taken what was under way while it lost what that was to follow. Then a gap lies
/// between, or the entries of another writer: a new one begins with a mark under its own epoch. That entries are there
/// already is no harm where they are the same writer's, for then they are the same.
pub fn has_its_place(before: Epoch, last: Seq, epoch: Epoch, first: Seq) -> bool {
    before == epoch && first <= last.next()
}

/// What an append of a log that this process does not write is answered.
pub fn judge_stranger(tail: Tail, by: Epoch, expected: Seq) -> Outcome<Refusal> {
    let Tail::Last {
        epoch,
        last,
        terminal: ended,
        ..
    } = tail
    else {
        return Outcome::No(Refusal::Vanished);
    };
    let standing = Standing { epoch, last, ended };
    // Where nothing else is in the way: it was opened or adopted by nobody here, whatever the caller thinks.
    let refusal = standing.allows(by, expected).err();
    Outcome::No(refusal.unwrap_or(Refusal::Fenced { epoch }))
}

/// What a writer makes of what it reads back, when it does not know what became of what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// Its entries stand through this one. It may be before one that stood: the journal has lost a suffix then, which is
    /// appended again.
    Stands(Seq),
    /// There is no such log any more.
    Vanished,
    /// It has another writer.
    Fenced,
    /// It ends with another entry than the one of this place here.
    Changed,
    /// It ends before everything that the writer still holds.
    TooShort,
}

/// Compares what stands with what the writer of `epoch` has sent, which reached to `sent`. It holds its entries from
/// `earliest` on, and `digest` is over one of them.
pub fn read_back(
    tail: &Tail,
    epoch: Epoch,
    sent: Seq,
    earliest: Seq,
    digest: impl FnOnce(Seq) -> Option<Digest>,
) -> ReadBack {
    let Tail::Last {
        epoch: by,
        last,
        digest: stands,
        ..
    } = tail
    else {
        return ReadBack::Vanished;
    };
    if *by != epoch || *last > sent {
        ReadBack::Fenced
    } else if digest(*last) == Some(*stands) {
        ReadBack::Stands(*last)
    } else if *last < earliest {
        ReadBack::TooShort
    } else {
        ReadBack::Changed
    }
}

/// What to adopt of a log that was written under the epoch `gone` when its writer was found to be gone: its last entry, and
/// its epoch. `None`: somebody else was quicker, or it has its end. After an adoption without an answer the epoch that
/// stands may be the asker's own (`may_be_ours`), and cannot be told from another's.
pub fn adoptable(tail: &Tail, gone: Epoch, may_be_ours: bool) -> Option<(Seq, Epoch)> {
    match tail {
        Tail::Last {
            epoch,
            last,
            terminal: false,
            ..
        } if *epoch == gone || may_be_ours => Some((*last, *epoch)),
        Tail::Last { .. } | Tail::None => None,
    }
}

/// Whether entries that another process has appended continue what a window shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continues {
    /// They do, or are shown already.
    Yes,
    /// What lies between is missing.
    Gap,
    /// They replace what was shown.
    Not,
}

/// Looks at a record of `epoch` that begins with `first`, for a window that shows everything through `received`, the last
/// record of which was of the epoch `shown`.
///
/// A later writer begins with a mark, a record that holds nothing, and goes on from what stood. If that is behind what was
/// shown, the journal has lost some of it, and what comes would be other events under the same sequences. If the mark is
/// missing, it was not heard, or the record has no place there ([`has_its_place`]).
pub fn continues(
    shown: Epoch,
    received: Seq,
    epoch: Epoch,
    first: Seq,
    is_mark: bool,
) -> Continues {
    if epoch > shown && first <= received {
        Continues::Not
    } else if first > received.next() || (epoch > shown && !is_mark) {
        Continues::Gap
    } else {
        Continues::Yes
    }
}
