//! The logs themselves and the rules of the contract over them.

use std::sync::Arc;
use std::time::SystemTime;

use super::MemoryConfig;
use super::by_id::ById;
use super::claims::Claims;
use super::retention::{Finished, Retention};
use crate::contract::{
    Adoption, BodyDigest, Claim, Found, Key, Open, OpenRefusal, Refusal, Tail, Usage,
};
use crate::id::StreamId;
use crate::kept::{Keeping, Kept};
use crate::rules::Standing;
use crate::types::{Epoch, Seq};
use crate::window::{Digest, Meter, Window};

pub(super) struct Table {
    config: MemoryConfig,
    meter: Arc<Meter>,
    keeping: Keeping,
    logs: ById<Log>,
    retention: Retention,
    claims: Claims,
}

pub(super) struct Log {
    window: Arc<Window>,
    pub(super) access: crate::contract::Access,
    epoch: Epoch,
    last: Seq,
    pub(super) finished: Option<Finished>,
}

impl Table {
    pub(super) fn new(config: MemoryConfig) -> Self {
        let meter = Arc::new(Meter::default());
        Self {
            config,
            retention: Retention::new(config.retention, config.tombstone, Arc::clone(&meter)),
            keeping: Keeping::new(Arc::clone(&meter)),
            meter,
            logs: ById::default(),
            claims: Claims::new(config.claim),
        }
    }

    pub(super) fn open(&mut self, window: &Arc<Window>, owner: &Open) -> Result<(), OpenRefusal> {
        let id = window.id();
        if self.logs.contains_key(&id) || self.retention.tombstone(id).is_some() {
            return Err(OpenRefusal::Exists);
        }
        let marks = window.marks();
        assert!(marks.received >= Seq::FIRST, "entry 1 is staged");
        let log = Log {
            window: Arc::clone(window),
            access: owner.access,
            epoch: marks.epoch,
            last: Seq::FIRST,
            finished: None,
        };
        window.charge_to(Some(Arc::clone(&self.meter)));
        self.meter.add(BESIDES);
        if !self.make_room() {
            self.uncount(&log);
            return Err(OpenRefusal::Full);
        }
        self.logs.insert(id, log);
        self.claims.bind(id);
        Ok(())
    }

    pub(super) fn keep(&mut self, bytes: usize) -> Option<Kept> {
        let kept = self.keeping.add(bytes, self.config.max_total)?;
        self.make_room().then_some(kept)
    }

    pub(super) fn append(
        &mut self,
        window: &Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Result<(), Refusal> {
        let marks = window.marks();
        assert!(
            expected < through && through <= marks.received,
            "what is appended is staged"
        );
        assert!(
            marks.terminal.is_none_or(|terminal| through < terminal),
            "a terminal goes through `finish`"
        );
        // The bytes are here already; what is asked is whether they may stay. Whoever may not write is told so first.
        if self.is_over() {
            self.writable(window.id(), marks.epoch, expected)?;
            if !self.make_room() {
                return Err(Refusal::Full);
            }
        }
        self.writable(window.id(), marks.epoch, expected)?.last = through;
        Ok(())
    }

    /// Is not refused for the caps: a generation that ended can be let go, one that may not end
    /// never could.
    pub(super) fn finish(
        &mut self,
        window: &Arc<Window>,
        expected: Seq,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let id = window.id();
        let marks = window.marks();
        self.writable(id, marks.epoch, expected)?;
        let terminal = marks.terminal.expect("a terminal is staged");
        assert!(expected < terminal, "the terminal is behind what stands");
        let finished = self.retention.finish(id, now);
        let log = self.writable(id, marks.epoch, expected)?;
        log.last = terminal;
        log.finished = Some(finished);
        // What came with the end counts from here on; it may be this very log that has to go.
        self.make_room();
        Ok(())
    }

    pub(super) fn adopt(&mut self, id: StreamId, adoption: Adoption) -> Result<(), Refusal> {
        let log = self.logs.get_mut(&id).ok_or(Refusal::Vanished)?;
        log.standing().allows_adoption(adoption)?;
        log.epoch = adoption.epoch();
        Ok(())
    }

    pub(super) fn tail(&self, id: StreamId) -> Tail {
        match self.logs.get(&id) {
            None => Tail::None,
            Some(log) => Tail::Last {
                epoch: log.epoch,
                last: log.last,
                terminal: log.finished.is_some(),
                // The window has what was appended unless its owner abandoned that after an unknown
                // outcome; then there is nothing the digest could agree with.
                digest: log.window.digest(log.last).unwrap_or(Digest::of(&[])),
            },
        }
    }

    pub(super) fn find(&mut self, id: StreamId, now: SystemTime) -> Found {
        self.expire_one(id, now);
        if let Some(log) = self.logs.get_mut(&id) {
            if let Some(finished) = &mut log.finished {
                self.retention.touch(id, finished);
            }
            return Found::Here {
                window: Arc::clone(&log.window),
                access: log.access,
                follow: None,
            };
        }
        match self.retention.tombstone(id) {
            Some(access) => Found::Expired { access },
            None => Found::Unknown,
        }
    }

    pub(super) fn finished(&self, now: SystemTime) -> Vec<Arc<Window>> {
        self.logs
            .values()
            .filter(|log| log.finished.as_ref().is_some_and(|it| it.until > now))
            .map(|log| Arc::clone(&log.window))
            .collect()
    }

    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some(log) = self.logs.remove(&id) {
            self.uncount(&log);
            if let Some(finished) = &log.finished {
                self.retention.forget(id, finished);
            }
        }
        self.claims.forget(id);
    }

    pub(super) fn claim(&mut self, key: Key, id: StreamId, now: SystemTime) -> Claim {
        let opened = self.logs.contains_key(&id);
        self.claims.claim(key, id, opened, now)
    }

    pub(super) fn claim_body(&mut self, key: Key, id: StreamId, body: BodyDigest) -> bool {
        self.claims.set_body(key, id, body)
    }

    pub(super) fn release(&mut self, key: Key, id: StreamId) {
        self.claims.release(key, id);
    }

    pub(super) fn sweep(&mut self, now: SystemTime) {
        while let Some(id) = self.retention.due(now) {
            self.expire_one(id, now);
        }
        self.claims.sweep(now);
    }

    pub(super) fn usage(&self) -> Usage {
        let finished = self.retention.finished();
        Usage {
            bytes: self.meter.bytes() as u64,
            live: self.logs.len() - finished,
            finished,
            tombstones: self.retention.tombstones(),
            evicted_early: self.retention.evicted_early(),
        }
    }

    /// The log, if a writer of `epoch` may put something behind `expected`.
    fn writable(&mut self, id: StreamId, epoch: Epoch, expected: Seq) -> Result<&mut Log, Refusal> {
        let log = self.logs.get_mut(&id).ok_or(Refusal::Vanished)?;
        log.standing().allows(epoch, expected)?;
        Ok(log)
    }

    /// Moves one id on, if its time has come: from log to tombstone, from tombstone to nothing.
    fn expire_one(&mut self, id: StreamId, now: SystemTime) {
        let expired = |log: &Log| {
            log.finished
                .as_ref()
                .is_some_and(|finished| finished.until <= now)
        };
        if self.logs.get(&id).is_some_and(expired) {
            self.bury(id);
        }
        self.retention.fade(id, now);
    }

    fn is_over(&self) -> bool {
        self.meter.bytes() as u64 > self.config.max_total
    }

    /// Whether what is held is within the caps, after letting go what may go.
    fn make_room(&mut self) -> bool {
        while self.is_over() {
            if let Some(id) = self.retention.least_recently_read() {
                self.bury(id);
                self.retention.count_eviction();
            } else if !self.retention.fade_oldest() {
                return false;
            }
        }
        true
    }

    /// A finished log goes and leaves a tombstone.
    fn bury(&mut self, id: StreamId) {
        let log = self.logs.remove(&id).expect("finished logs are here");
        self.uncount(&log);
        self.claims.forget(id);
        let finished = log
            .finished
            .as_ref()
            .expect("only finished logs are buried");
        self.retention.bury(id, finished, log.access);
    }

    fn uncount(&self, log: &Log) {
        log.window.charge_to(None);
        self.meter.sub(BESIDES);
    }
}

impl Log {
    fn standing(&self) -> Standing {
        Standing {
            epoch: self.epoch,
            last: self.last,
            ended: self.finished.is_some(),
        }
    }
}

/// What a log costs apart from its window.
const BESIDES: usize = size_of::<(StreamId, Log)>();
