//! What a replica knows of the one generation that the model is about.

use streamweld_journal::{Epoch, Kind, Seq};

use crate::log::{Entry, Line, Name, Written};

/// One replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Whether it runs.
    pub life: Life,
    /// What it has to do with the generation.
    pub role: Role,
}

/// Whether a replica runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// It does.
    Up,
    /// It stands still, for so long that others may judge it dead.
    Paused,
    /// It is gone, with everything that it knew.
    Dead,
}

/// What a replica has to do with the generation.
///
/// ```text
/// Idle -> Takes -> Adopted -> Writes -> Ended
///           |                   |
///           +------> Idle <-----+        another was quicker, or has adopted it since
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing.
    Idle,
    /// It produces, and writes what it produces.
    Writes(Writer),
    /// It wants to adopt it.
    Takes(Taker),
    /// It has, and has not read yet what it goes on from.
    Adopted(Adopted),
    /// It has written the end, and looks after it.
    Ended(Ended),
}

/// A window, and how much of it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Writer {
    /// It writes under this one.
    pub epoch: Epoch,
    /// Whose events it adds.
    pub line: Line,
    /// Everything that is staged, from sequence 1 on.
    pub entries: Vec<Written>,
    /// The last one that the log is known to hold.
    pub stands: Seq,
    /// On which connection it was seen to end with that. `None` from the moment something is sent.
    pub seen: Option<u8>,
    /// An append or an end is under way.
    pub sent: bool,
    /// What stands is to be read back before anything else; so far was sent.
    pub doubt: Option<Seq>,
    /// The upstream is not read on: it was offered to this replica.
    pub offered: Option<Name>,
    /// Somebody has called stop.
    pub stop: bool,
}

impl Writer {
    /// The last one staged.
    pub fn received(&self) -> Seq {
        Seq::new(self.entries.len() as u64)
    }

    /// The terminal is staged.
    pub fn is_ending(&self) -> bool {
        self.entries
            .last()
            .is_some_and(|it| it.1.kind().is_terminal())
    }

    /// Stages one more.
    pub fn stage(&mut self, kind: Kind) {
        let entry = Entry::new(kind, self.line, &self.entries);
        self.entries.push((self.epoch, entry));
    }

    /// Everything staged behind `after`.
    pub fn behind(&self, after: Seq) -> Vec<Entry> {
        let behind = self.entries.iter().skip(after.get() as usize);
        behind.map(|it| it.1).collect()
    }

    /// Nothing is under way, and nothing waits.
    pub fn is_quiet(&self) -> bool {
        !self.sent && self.doubt.is_none() && self.stands == self.received()
    }
}

/// How many events there are among these.
pub fn events(entries: &[Written]) -> usize {
    let events = entries.iter().filter(|it| it.1.kind() == Kind::Event);
    events.count()
}

/// Why a generation is adopted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Its writer gives no sign of life: it is gone on with, or ended, as the gates say.
    OwnerLost,
    /// A client has called stop, and the writer gives no sign of life.
    Stop,
    /// Its end was lost.
    EndLost,
    /// Its writer has offered it, and everything through here. The seam is verified behind this very entry.
    HandOver(Vec<Written>),
}

/// Wants to adopt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taker {
    /// What for.
    pub why: Why,
    /// The epoch of the writer that is to be replaced.
    pub gone: Epoch,
    /// What it is to be written under, from when that was asked for.
    pub by: Option<Epoch>,
    /// One is under way.
    pub sent: bool,
}

/// Has adopted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Adopted {
    /// What for.
    pub why: Why,
    /// Its own epoch.
    pub epoch: Epoch,
    /// The last entry before it.
    pub last: Seq,
    /// On this connection.
    pub connection: u8,
}

/// Has written the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ended {
    /// It wrote under this one.
    pub epoch: Epoch,
    /// Everything, with the terminal.
    pub entries: Vec<Written>,
    /// The end is on its way once more.
    pub sent: bool,
}
