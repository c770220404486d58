//! The rules of the [contract](crate::Journal), without a log: who may change what stands, and what a writer concludes from
//! what it reads back.
//!
//! One copy of each. The memory backend decides by them, the scripts of the Redis backend are held to the same outcomes,
//! whoever writes or takes over asks them, and the model of the whole protocol (`model/`) runs them.

use crate::contract::{Adoption, Outcome, Refusal, Tail};
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

    /// Whether the writer may change as `adoption` says, or has done so already and nothing since.
    ///
    /// It names the writer before: another adoption that its asker knows nothing of may have been lost, and this one may
    /// have been under way meanwhile.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn allows_adoption(self, adoption: Adoption) -> Result<(), Refusal> {
        if self.ended {
            Err(Refusal::Ended)
        } else if self.epoch != adoption.replaces() && self.epoch != adoption.epoch() {
            Err(Refusal::Fenced { epoch: self.epoch })
        } else {
            self.ends_with(adoption.last())
        }
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

/// How many records from its end on are looked at, whether they have their place, by whoever reads back how a log ends.
///
/// What is under way while a log loses its end may be taken behind what is left, one record behind the other: a writer has
/// one append under way on each of its connections, and writers before it may have some too.
pub const LOOKED_AT: usize = 4;

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

/// The adoption to ask for of a log that `by` is to write in place of `gone`, where it has to end with `seam` if that is
/// given. `None`: somebody else was quicker, or it has its end, or goes on behind the seam.
///
/// Where `by` stands, it is by an adoption that had no answer: nobody else has that epoch. The same is asked for again.
pub fn adoptable(tail: &Tail, gone: Epoch, by: Epoch, seam: Option<Seq>) -> Option<Adoption> {
    match tail {
        Tail::Last {
            epoch,
            last,
            terminal: false,
            ..
        } if (*epoch == gone || *epoch == by) && seam.is_none_or(|seam| seam == *last) => {
            Some(Adoption::new(gone, *last, by))
        }
        Tail::Last { .. } | Tail::None => None,
    }
}

/// What whoever follows a log has shown of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// Everything through this entry.
    pub received: Seq,
    /// The epoch of that entry.
    pub entry: Epoch,
    /// The latest writer that it knows of: as well that of a mark behind it.
    pub writer: Epoch,
}

/// What a record brings, for whoever follows a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Brings {
    /// Entries, through this one.
    Entries(Seq),
    /// None: it is the mark of a change of the writer, or says where the log stands.
    Mark {
        /// The epoch of what it stands behind. Earlier versions did not tell.
        follows: Option<Epoch>,
    },
}

/// Whether entries that another process has appended continue what a window shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continues {
    /// They do, or show nothing that is not shown already.
    Yes,
    /// What lies between is missing.
    Gap,
    /// They replace what was shown.
    Not,
}

/// Looks at a record of `epoch` that begins with `first`, for a window that has shown so much.
///
/// A later writer begins with a mark, a record that holds nothing, and goes on from what stood. If that is behind what was
/// shown, the journal has lost some of it, and what comes would be other events under the same sequences. If the mark is
/// missing, it was not heard, or the record has no place there ([`has_its_place`]). If the mark follows another writer than
/// those that were seen, one before it was not heard, or what was shown was lost and others have written as much again.
///
/// Marks may be lost: the writer of the last entry goes on then, or is replaced anew, by an epoch that need not be above the
/// lost one. And words come late: so what is of an earlier writer and shows nothing is passed over.
pub fn continues(shown: Shown, epoch: Epoch, first: Seq, brings: Brings) -> Continues {
    let Shown {
        received,
        entry,
        writer,
    } = shown;
    let was_seen = |epoch| epoch == writer || epoch == entry;
    let is_later = epoch > writer;
    let (shows, is_known) = match brings {
        Brings::Entries(through) => (through > received, was_seen(epoch)),
        Brings::Mark { follows } => (false, !is_later || follows.is_none_or(was_seen)),
    };
    if is_later && first <= received {
        Continues::Not
    } else if first > received.next() || (!is_known && (shows || is_later)) {
        Continues::Gap
    } else {
        Continues::Yes
    }
}
