//! Somebody who reads on a replica that writes nothing: `crates/journal-redis/src/follow.rs`.

use streamweld_journal::rules::{Continues, Shown, continues};
use streamweld_journal::{Epoch, Seq};

use crate::bounds::{Bounds, Rule};
use crate::log::{Log, Record, Written};

/// Everything that one client was shown, over all of its connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reader {
    /// In the order in which it was shown.
    pub entries: Vec<Written>,
    /// It follows, or was broken off and may come back.
    pub follows: bool,
    /// The epoch of the latest writer.
    epoch: Epoch,
    /// The last record that was read.
    behind: (bool, Epoch, Seq),
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            follows: true,
            epoch: Epoch::FIRST,
            behind: (false, Epoch::FIRST, Seq::ZERO),
        }
    }
}

impl Reader {
    fn received(&self) -> Seq {
        Seq::new(self.entries.len() as u64)
    }

    fn shown(&self) -> Shown {
        Shown {
            received: self.received(),
            entry: self.entries.last().map_or(Epoch::FIRST, |it| it.0),
            writer: self.epoch,
        }
    }

    pub(crate) fn epochs(&mut self, visit: &mut impl FnMut(&mut Epoch)) {
        self.entries.iter_mut().for_each(|it| visit(&mut it.0));
        visit(&mut self.epoch);
        visit(&mut self.behind.1);
    }

    /// It was shown an end.
    pub fn has_ended(&self) -> bool {
        self.entries
            .last()
            .is_some_and(|it| it.1.kind().is_terminal())
    }

    /// Reads what stands behind what it has read.
    pub(crate) fn follow(&mut self, log: &Log, bounds: &Bounds) -> Option<()> {
        if !self.follows || self.has_ended() {
            return None;
        }
        let before = self.behind;
        for record in log.records.iter().filter(|it| it.id() > before) {
            if !self.shows(record, bounds) {
                self.follows = false;
                return Some(());
            }
            self.behind = record.id();
        }
        (self.behind != before).then_some(())
    }

    /// Hears the newest record, wherever it stands. What lies between it reads.
    pub(crate) fn hear(&mut self, log: &Log, bounds: &Bounds) -> Option<()> {
        if !self.follows || self.has_ended() {
            return None;
        }
        let newest = log.records.last()?;
        let before = self.clone();
        match continues(
            self.shown(),
            newest.epoch,
            newest.first,
            newest.brings(bounds.without),
        ) {
            Continues::Gap => {
                _ = self.follow(log, bounds);
                // Reading goes by ids, and never comes to what has a lower one than what was shown and lost.
                let still = continues(
                    self.shown(),
                    newest.epoch,
                    newest.first,
                    newest.brings(bounds.without),
                );
                self.follows &= still != Continues::Gap || newest.epoch >= self.epoch;
                return (*self != before).then_some(());
            }
            Continues::Not | Continues::Yes => self.follows = self.shows(newest, bounds),
        }
        if newest.last() == self.received() && !newest.entries.is_empty() {
            self.behind = newest.id();
        }
        (*self != before).then_some(())
    }

    /// Comes back with its cursor, which names the epoch of its entry.
    pub(crate) fn come_back(&mut self, log: &Log, bounds: &Bounds) -> Option<()> {
        if self.follows || self.has_ended() {
            return None;
        }
        let stands = log.entries(bounds.without);
        let at = self.entries.len();
        let is_there = at == 0
            || stands
                .get(at - 1)
                .is_some_and(|it| it.0 == self.entries[at - 1].0);
        is_there.then_some(())?;
        self.follows = true;
        self.entries.extend(stands.iter().skip(at));
        let newest = log.records.last()?;
        let read = log
            .records
            .iter()
            .take_while(|it| it.last() <= self.received());
        self.epoch = read.map(|it| it.epoch).max().unwrap_or(Epoch::FIRST);
        self.behind = newest.id();
        Some(())
    }

    /// Shows a record, if it continues what is shown.
    fn shows(&mut self, record: &Record, bounds: &Bounds) -> bool {
        let received = self.received();
        match continues(
            self.shown(),
            record.epoch,
            record.first,
            record.brings(bounds.without),
        ) {
            Continues::Yes => {}
            Continues::Not if bounds.without == Some(Rule::FollowerCompares) => {}
            Continues::Gap | Continues::Not => return false,
        }
        let skipped = received.get() + 1 - record.first.get();
        let new = record.entries.iter().skip(skipped as usize);
        let mut new = new.map(|entry| (record.epoch, *entry)).peekable();
        let last = self.entries.last().map_or(Epoch::FIRST, |it| it.0);
        if new.peek().is_some() && (record.epoch < last || self.has_ended()) {
            return false;
        }
        self.entries.extend(new);
        self.epoch = self.epoch.max(record.epoch);
        // An end within what was shown ends something else.
        !record.ends() || self.has_ended() || bounds.without == Some(Rule::FollowerKnowsItsEnd)
    }
}
