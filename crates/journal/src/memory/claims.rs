//! Idempotency keys: who has one, and for how long.
//!
//! A claim is made before its generation is opened and lapses soon if it is neither opened nor claimed
//! again. From the opening on it lives exactly as long as the log.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use crate::contract::{BodyDigest, Claim, Key};
use crate::id::StreamId;

pub(super) struct Claims {
    time: Duration,
    records: HashMap<Key, Record>,
    by_stream: BTreeSet<(StreamId, Key)>,
    lapses: BTreeSet<(SystemTime, Key)>,
}

struct Record {
    id: StreamId,
    body: Option<BodyDigest>,
    /// `None` from the opening on, and when that is beyond the clock.
    lapses: Option<SystemTime>,
}

impl Claims {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            time,
            records: HashMap::new(),
            by_stream: BTreeSet::new(),
            lapses: BTreeSet::new(),
        }
    }

    pub(super) fn claim(&mut self, key: Key, id: StreamId, opened: bool, now: SystemTime) -> Claim {
        let mut body = None;
        if let Some(record) = self.records.get(&key) {
            if record.id == id {
                // Asked again, perhaps because the first answer was lost: the time counts from now.
                body = record.body;
            } else if record.lapses.is_none_or(|at| at > now) {
                return Claim::Taken {
                    id: record.id,
                    body: record.body,
                };
            }
            self.discard(key);
        }
        let lapses = now.checked_add(self.time).filter(|_| !opened);
        self.lapses.extend(lapses.map(|at| (at, key)));
        self.by_stream.insert((id, key));
        self.records.insert(key, Record { id, body, lapses });
        Claim::Won
    }

    pub(super) fn set_body(&mut self, key: Key, id: StreamId, body: BodyDigest) -> bool {
        match self.records.get_mut(&key) {
            Some(record) if record.id == id => {
                record.body = Some(body);
                true
            }
            _ => false,
        }
    }

    pub(super) fn release(&mut self, key: Key, id: StreamId) {
        if self.records.get(&key).is_some_and(|record| record.id == id) {
            self.discard(key);
        }
    }

    /// The log of `id` is open: its claims do not lapse any more.
    pub(super) fn bind(&mut self, id: StreamId) {
        for key in self.keys(id) {
            let record = self.records.get_mut(&key).expect("listed by stream");
            if let Some(at) = record.lapses.take() {
                self.lapses.remove(&(at, key));
            }
        }
    }

    /// The log of `id` is gone, and its claims with it.
    pub(super) fn forget(&mut self, id: StreamId) {
        for key in self.keys(id) {
            self.discard(key);
        }
    }

    pub(super) fn sweep(&mut self, now: SystemTime) {
        while let Some(&(_, key)) = self.lapses.first().filter(|(at, _)| *at <= now) {
            self.discard(key);
        }
    }

    fn keys(&self, id: StreamId) -> Vec<Key> {
        self.by_stream
            .range((id, [0; 32])..=(id, [0xff; 32]))
            .map(|&(_, key)| key)
            .collect()
    }

    fn discard(&mut self, key: Key) {
        let record = self.records.remove(&key).expect("the caller has seen it");
        self.by_stream.remove(&(record.id, key));
        if let Some(at) = record.lapses {
            self.lapses.remove(&(at, key));
        }
    }
}
