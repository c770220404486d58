//! The server that keeps the log, and what it does by itself.
//!
//! A log is a list of records, one for each batch, and of marks of a change of the writer. The id of a record is
//! `(epoch, last)`; the server takes an append when that is greater than the last id, and looks at nothing else. The
//! scripts of ends and adoptions look at the last id before they write. All of it lies on one server, so what is lost is
//! always a suffix of everything.

use streamweld_journal::rules::{Brings, LOOKED_AT, Standing, has_its_place};
use streamweld_journal::{Adoption, Digest, Epoch, Kind, Refusal, Seq, Tail};

use crate::bounds::Rule;

/// A replica by its number.
pub type Name = u8;

/// Who produces: one for each upstream request. What it adds at one place is one thing, so an entry is known by
/// who produced it and its place.
pub type Line = u8;

/// One entry. Where it stands says its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Who produced it.
    pub by: Line,
    /// Who produced the entry that it was made to follow.
    pub after: Line,
    /// Where that entry was.
    pub behind: u8,
    kind: u8,
}

impl Entry {
    /// An entry of `by`, made to go on from `entries`.
    pub fn new(kind: Kind, by: Line, entries: &[Written]) -> Self {
        Self {
            by,
            after: entries.last().map_or(0, |it| it.1.by),
            behind: entries.len() as u8,
            kind: kind as u8,
        }
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        Kind::ALL[usize::from(self.kind)]
    }

    /// As if over its bytes.
    pub fn digest(self, seq: Seq) -> Digest {
        Digest::of(&[self.by, self.after, self.behind, self.kind, seq.get() as u8])
    }
}

/// An entry with the epoch it was written under, as a window has it.
pub type Written = (Epoch, Entry);

/// What one append, end or adoption has put there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Of its writer.
    pub epoch: Epoch,
    /// Its replica.
    pub writer: Name,
    /// Where its entries begin.
    pub first: Seq,
    /// None in the mark of a change of the writer.
    pub entries: Vec<Entry>,
    /// In a mark: the epoch that it follows.
    pub follows: Option<Epoch>,
}

impl Record {
    /// The mark of a change of the writer.
    pub fn mark(writer: Name, adoption: Adoption) -> Self {
        Self {
            epoch: adoption.epoch(),
            writer,
            first: adoption.last().next(),
            entries: Vec::new(),
            follows: Some(adoption.replaces()),
        }
    }

    /// What it brings, for whoever follows.
    pub fn brings(&self, without: Option<Rule>) -> Brings {
        let follows = match without {
            Some(Rule::MarkNamesWhatItFollows) => None,
            _ => self.follows,
        };
        match self.entries.is_empty() {
            true => Brings::Mark { follows },
            false => Brings::Entries(self.last()),
        }
    }

    /// Its last entry; for a mark the one it stands behind.
    pub fn last(&self) -> Seq {
        Seq::new(self.first.get() + self.entries.len() as u64 - 1)
    }

    /// It ends the log.
    pub fn ends(&self) -> bool {
        self.entries
            .last()
            .is_some_and(|it| it.kind().is_terminal())
    }

    /// The order of records, in which an end is the greatest.
    pub fn id(&self) -> (bool, Epoch, Seq) {
        let ends = self.ends();
        if ends {
            (true, Epoch::FIRST, Seq::ZERO)
        } else {
            (false, self.epoch, self.last())
        }
    }
}

/// How a log ends, for whoever reads it back.
pub struct End {
    /// What it says.
    pub tail: Tail,
    /// One of its last records has no place.
    pub leaves_gap: bool,
    /// Where that record is.
    at: usize,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log {
    /// In the order they were put there.
    pub records: Vec<Record>,
    /// How many records stood when a stop was left here for the writer.
    pub stop: Option<usize>,
    /// Counts the servers, or the data of one, that connections have led to.
    pub connection: u8,
}

impl Log {
    /// One that `writer` has opened.
    pub fn opened(writer: Name) -> Self {
        let first = Record {
            epoch: Epoch::FIRST,
            writer,
            first: Seq::FIRST,
            entries: vec![Entry::new(Kind::Open, 0, &[])],
            follows: None,
        };
        Self {
            records: vec![first],
            stop: None,
            connection: 0,
        }
    }

    fn newest(&self) -> &Record {
        self.records.last().expect("a log has its first record")
    }

    /// What the scripts see.
    pub fn standing(&self) -> Standing {
        let newest = self.newest();
        Standing {
            epoch: newest.epoch,
            last: newest.last(),
            ended: newest.ends(),
        }
    }

    /// The replica that opened or adopted it last, and the epoch it did so under.
    pub fn owner(&self) -> (Name, Epoch) {
        let own = |it: &&Record| it.entries.is_empty() || it.first == Seq::FIRST;
        let owner = self.records.iter().rfind(own);
        let owner = owner.expect("somebody has opened it");
        (owner.writer, owner.epoch)
    }

    /// It has its end.
    pub fn end(&self) -> Option<Kind> {
        let newest = self.newest();
        newest
            .ends()
            .then(|| newest.entries[newest.entries.len() - 1].kind())
    }

    /// An append: the server compares ids, and that is all.
    pub fn takes(&self, record: &Record, without: Option<Rule>) -> bool {
        let (new, old) = (record.id(), self.newest().id());
        match without {
            Some(Rule::AppendIsFenced) => !old.0 && new.2 > old.2,
            Some(Rule::EndIsFinal) => old.0 || new > old,
            _ => new > old,
        }
    }

    /// The script of an end. `None`: it is left open, because the last record has no place.
    pub fn may_end(
        &self,
        by: Epoch,
        expected: Seq,
        without: Option<Rule>,
    ) -> Option<Result<(), Refusal>> {
        let mut standing = self.standing();
        standing.ended &= without != Some(Rule::EndIsFinal);
        let passes = match without {
            Some(Rule::EndIsFenced) => true,
            Some(Rule::EndNamesItsEpoch) => by > standing.epoch,
            _ => false,
        };
        let by = if passes { standing.epoch } else { by };
        let expected = if without == Some(Rule::EndNamesTheLast) {
            standing.last
        } else {
            expected
        };
        let verdict = standing.allows(by, expected);
        let at = self.records.len() - 1;
        let is_stray =
            at > 0 && !self.records[at].entries.is_empty() && !self.has_its_place(at, without);
        let is_open = verdict.is_ok() && is_stray && without != Some(Rule::EndHasItsPlace);
        (!is_open).then_some(verdict)
    }

    /// The script of an adoption.
    pub fn may_adopt(&self, adoption: Adoption, without: Option<Rule>) -> Result<(), Refusal> {
        let mut standing = self.standing();
        standing.ended &= without != Some(Rule::EndIsFinal);
        let by = adoption.epoch();
        match without {
            Some(Rule::AdoptionNamesTheLast) => standing.last = adoption.last(),
            // The server still takes a higher id only.
            Some(Rule::AdoptionNamesTheWriter) if standing.epoch < by => {
                standing.epoch = adoption.replaces();
            }
            _ => {}
        }
        standing.allows_adoption(adoption)
    }

    /// How it ends: its newest epoch, and its last record that has entries.
    pub fn tail(&self, without: Option<Rule>) -> End {
        let at = self.records.iter().rposition(|it| !it.entries.is_empty());
        let at = at.expect("the first record has one");
        let record = &self.records[at];
        let last = record.last();
        let entry = record.entries[record.entries.len() - 1];
        End {
            tail: Tail::Last {
                epoch: self.newest().epoch,
                last,
                terminal: record.ends(),
                digest: entry.digest(last),
            },
            leaves_gap: !self.have_their_place(at, without),
            at,
        }
    }

    /// The last ones through this one.
    fn have_their_place(&self, at: usize, without: Option<Rule>) -> bool {
        let looked_at = match without {
            Some(Rule::SeveralHaveNoPlace) => 2,
            _ => LOOKED_AT,
        };
        let oldest = (at + 2).saturating_sub(looked_at).max(1);
        let has_its_place =
            |at: usize| self.records[at].entries.is_empty() || self.has_its_place(at, without);
        (oldest..=at).all(has_its_place)
    }

    fn has_its_place(&self, at: usize, without: Option<Rule>) -> bool {
        let (before, record) = (&self.records[at - 1], &self.records[at]);
        let epoch = match without {
            Some(Rule::PlaceNamesTheWriter) => before.epoch,
            _ => record.epoch,
        };
        has_its_place(before.epoch, before.last(), epoch, record.first)
    }

    /// How it ends, when what has no place is taken back first, by the writer of the epoch `by` or by a stranger. `None`:
    /// it cannot be.
    pub fn ends(&mut self, by: Option<Epoch>, without: Option<Rule>) -> Option<End> {
        loop {
            let end = self.tail(without);
            if !end.leaves_gap || without == Some(Rule::GapIsTakenBack) {
                return Some(end);
            }
            let Tail::Last {
                epoch, terminal, ..
            } = end.tail
            else {
                return None;
            };
            let may = by == Some(epoch) || without != Some(Rule::GapIsAnybodys);
            // The script takes the newest record only.
            if terminal || !may || end.at + 1 != self.records.len() {
                return None;
            }
            self.records.pop();
        }
    }

    /// What a reader gets from the start: everything up to what has no place, each entry once.
    pub fn entries(&self, without: Option<Rule>) -> Vec<Written> {
        let mut entries: Vec<Written> = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            let stands = entries.len() as u64;
            let is_mark = record.entries.is_empty();
            if at > 0 && !is_mark && !self.has_its_place(at, without) {
                break;
            }
            let skipped = (stands + 1).saturating_sub(record.first.get());
            let new = record.entries.iter().skip(skipped as usize);
            entries.extend(new.map(|entry| (record.epoch, *entry)));
        }
        entries
    }

    /// Everything behind the first `keep` records was never here.
    pub fn lose(&mut self, keep: usize, with_stop: bool) {
        self.records.truncate(keep);
        self.connection += 1;
        let stays = |at: &usize| *at < keep || (*at == keep && !with_stop);
        self.stop = self.stop.filter(stays);
    }
}
