//! What becomes of generations that ended: the order in which they go, their time, their tombstones.
//!
//! Live generations do not occur here, so nothing in this file can let one go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::by_id::ById;
use crate::contract::Access;
use crate::id::StreamId;
use crate::window::Meter;

pub(super) struct Retention {
    retention: Duration,
    tombstone: Duration,
    meter: Arc<Meter>,
    /// Finished logs by when they were last read or finished: the least recent first.
    reads: BTreeMap<u64, StreamId>,
    next_read: u64,
    /// When logs and tombstones are due.
    deadlines: BTreeSet<(SystemTime, StreamId)>,
    tombstones: ById<Tombstone>,
    evicted_early: u64,
}

/// What a finished log remembers of its place here.
pub(super) struct Finished {
    /// Until when it can be read.
    pub(super) until: SystemTime,
    read: u64,
}

struct Tombstone {
    access: Access,
    until: SystemTime,
}

impl Retention {
    pub(super) fn new(retention: Duration, tombstone: Duration, meter: Arc<Meter>) -> Self {
        Self {
            retention,
            tombstone,
            meter,
            reads: BTreeMap::new(),
            next_read: 0,
            deadlines: BTreeSet::new(),
            tombstones: ById::default(),
            evicted_early: 0,
        }
    }

    /// A log ended at `now`.
    pub(super) fn finish(&mut self, id: StreamId, now: SystemTime) -> Finished {
        let finished = Finished {
            until: later(now, self.retention),
            read: self.next_read,
        };
        self.reads.insert(self.next_read, id);
        self.next_read += 1;
        self.deadlines.insert((finished.until, id));
        finished
    }

    /// A finished log was read: it goes last now.
    pub(super) fn touch(&mut self, id: StreamId, finished: &mut Finished) {
        self.reads.remove(&finished.read);
        finished.read = self.next_read;
        self.reads.insert(self.next_read, id);
        self.next_read += 1;
    }

    /// A finished log goes without a trace.
    pub(super) fn forget(&mut self, id: StreamId, finished: &Finished) {
        self.reads.remove(&finished.read);
        self.deadlines.remove(&(finished.until, id));
    }

    /// A finished log goes, in time or early, and its id is remembered for as long as it would have been.
    pub(super) fn bury(&mut self, id: StreamId, finished: &Finished, access: Access) {
        self.forget(id, finished);
        let until = later(finished.until, self.tombstone);
        self.tombstones.insert(id, Tombstone { access, until });
        self.deadlines.insert((until, id));
        self.meter.add(TOMBSTONE_COST);
    }

    /// Drops the tombstone of an id whose time has come.
    pub(super) fn fade(&mut self, id: StreamId, now: SystemTime) {
        if self
            .tombstones
            .get(&id)
            .is_some_and(|tombstone| tombstone.until <= now)
        {
            self.drop_tombstone(id);
        }
    }

    /// Drops the tombstone that is due first, if there is one.
    ///
    /// Only asked once no finished log is left, so every deadline is a tombstone's.
    pub(super) fn fade_oldest(&mut self) -> bool {
        debug_assert!(self.reads.is_empty(), "finished logs go before tombstones");
        let Some(&(_, id)) = self.deadlines.first() else {
            return false;
        };
        self.drop_tombstone(id);
        true
    }

    /// An id whose deadline has come.
    pub(super) fn due(&self, now: SystemTime) -> Option<StreamId> {
        self.deadlines
            .first()
            .filter(|(until, _)| *until <= now)
            .map(|&(_, id)| id)
    }

    pub(super) fn least_recently_read(&self) -> Option<StreamId> {
        self.reads.first_key_value().map(|(_, &id)| id)
    }

    pub(super) fn tombstone(&self, id: StreamId) -> Option<Access> {
        self.tombstones.get(&id).map(|tombstone| tombstone.access)
    }

    pub(super) fn count_eviction(&mut self) {
        self.evicted_early += 1;
    }

    pub(super) fn finished(&self) -> usize {
        self.reads.len()
    }

    pub(super) fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    pub(super) fn evicted_early(&self) -> u64 {
        self.evicted_early
    }

    fn drop_tombstone(&mut self, id: StreamId) {
        let tombstone = self.tombstones.remove(&id).expect("its deadline is set");
        self.deadlines.remove(&(tombstone.until, id));
        self.meter.sub(TOMBSTONE_COST);
    }
}

/// A retention so long that no clock can express its end does not end within a century.
fn later(time: SystemTime, by: Duration) -> SystemTime {
    time.checked_add(by)
        .unwrap_or(time + Duration::from_secs(100 * 365 * 86_400))
}

/// Its place in the map and its deadline.
const TOMBSTONE_COST: usize =
    size_of::<(StreamId, Tombstone)>() + size_of::<(SystemTime, StreamId)>();
