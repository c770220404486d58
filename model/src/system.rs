//! Everything there is at one moment: the log, what is under way to it, the replicas, what readers were shown.

use streamweld_journal::{Epoch, Kind, Seq};

use crate::bounds::{Bounds, Faults, Rule};
use crate::epochs;
use crate::log::{Entry, Line, Log, Name, Record, Written};
use crate::reader::Reader;
use crate::replica::{Ended, Life, Replica, Role, Writer};

/// One moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct System {
    /// The journal.
    pub log: Log,
    /// Requests that have not arrived there.
    pub wire: Vec<Request>,
    /// Offers that nobody has answered.
    pub offers: Vec<Offer>,
    /// By their names.
    pub replicas: Vec<Replica>,
    /// Somebody who reads on a replica that writes nothing.
    pub reader: Reader,
    /// Everything that was shown to anybody, anywhere, under a cursor.
    pub shown: Vec<(Seq, Epoch, Entry)>,
    /// Two entries were shown under one cursor.
    pub clash: bool,
    /// A client has called stop.
    pub stop: bool,
    /// What it was told.
    pub acknowledged: Option<Kind>,
    /// Faults that are left.
    pub left: Faults,
    /// Lines there have been.
    pub lines: Line,
}

/// Something that is under way to the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Who has sent it.
    pub from: Name,
    /// The sender waits for the answer.
    pub awaited: bool,
    /// The connection it goes by.
    pub connection: u8,
    /// What it asks for.
    pub what: What,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// An append.
    Append(Record),
    /// The end, behind this entry.
    End(Seq, Record),
    /// A change of the writer: its mark.
    Adopt(Record),
}

impl What {
    /// What would be put into the log.
    pub fn record(&self) -> &Record {
        match self {
            Self::Append(record) | Self::End(_, record) | Self::Adopt(record) => record,
        }
    }
}

/// A replica that leaves asks another one to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// Whom.
    pub to: Name,
    /// What the one that leaves writes under.
    pub epoch: Epoch,
    /// Its last entry.
    pub last: Seq,
}

impl System {
    /// A generation that the first replica has just opened.
    pub fn new(bounds: &Bounds) -> Self {
        let log = Log::opened(0);
        let writer = Writer {
            epoch: Epoch::FIRST,
            line: 0,
            entries: log.entries(bounds.without),
            stands: Seq::FIRST,
            seen: Some(log.connection),
            sent: false,
            doubt: None,
            offered: None,
            stop: false,
        };
        let role = |name| match name {
            0 => Role::Writes(writer.clone()),
            _ => Role::Idle,
        };
        let replica = |name| Replica {
            life: Life::Up,
            role: role(name),
        };
        Self {
            log,
            wire: Vec::new(),
            offers: Vec::new(),
            replicas: (0..bounds.replicas).map(replica).collect(),
            reader: Reader::default(),
            shown: Vec::new(),
            clash: false,
            stop: false,
            acknowledged: None,
            left: bounds.faults,
            lines: 1,
        }
    }

    /// The replica of this name, if it runs.
    pub fn up(&mut self, name: Name) -> Option<&mut Role> {
        let replica = self.replicas.get_mut(usize::from(name))?;
        (replica.life == Life::Up).then_some(&mut replica.role)
    }

    /// What a replica of this name has to do with it, whether it runs or not.
    pub fn role(&mut self, name: Name) -> &mut Role {
        &mut self.replicas[usize::from(name)].role
    }

    /// The owner gives no sign of life.
    pub fn is_silent(&self, name: Name) -> bool {
        self.replicas[usize::from(name)].life != Life::Up
    }

    /// An epoch for whoever replaces the writer of `gone`, in one of the places where it may lie. Where it is just the next
    /// one, there is one.
    pub fn epoch_above(&mut self, gone: Epoch, place: u8, bounds: &Bounds) -> Option<Epoch> {
        match bounds.without {
            Some(Rule::EpochIsFresh) => (place == 0).then(|| gone.above(0)),
            _ => epochs::fresh(self, gone, place),
        }
    }

    /// A line for whoever begins to produce.
    pub fn next_line(&mut self) -> Line {
        self.lines += 1;
        self.lines - 1
    }

    /// Sends a request by the connection that there is.
    pub fn send(&mut self, from: Name, what: What) {
        let connection = self.log.connection;
        self.wire.push(Request {
            from,
            awaited: true,
            connection,
            what,
        });
    }

    /// These entries, which begin the log, are shown under their cursors.
    pub fn show(&mut self, entries: &[Written], bounds: &Bounds) {
        for (seq, (epoch, entry)) in (1..).map(Seq::new).zip(entries) {
            let epoch = match bounds.without {
                Some(Rule::CursorNamesEpoch) => Epoch::FIRST,
                _ => *epoch,
            };
            match self
                .shown
                .binary_search_by_key(&(seq, epoch), |it| (it.0, it.1))
            {
                Ok(at) => self.clash |= self.shown[at].2 != *entry,
                Err(at) => self.shown.insert(at, (seq, epoch, *entry)),
            }
        }
    }

    /// What a writer knows to stand is shown where it is; with its end it is over.
    pub fn commit(&mut self, name: Name, bounds: &Bounds) {
        let Role::Writes(writer) = self.role(name) else {
            return;
        };
        let stands = writer.entries[..writer.stands.get() as usize].to_vec();
        if writer.is_ending() && writer.stands == writer.received() {
            *self.role(name) = Role::Ended(Ended {
                epoch: writer.epoch,
                entries: stands.clone(),
                sent: false,
            });
        }
        self.show(&stands, bounds);
    }

    /// A step is over. The log may have changed: whoever reads elsewhere is shown what it holds, and a stop is answered.
    pub fn settle(&mut self, bounds: &Bounds) {
        let stands = self.log.entries(bounds.without);
        self.show(&stands, bounds);
        if self.stop && self.acknowledged.is_none() {
            self.acknowledged = self.log.end();
        }
        if bounds.without != Some(Rule::EpochIsFresh) {
            epochs::renumber(self);
        }
    }
}
