//! The backend that serves one replica and ends with the process.
//!
//! The writer's window *is* the storage: the backend keeps the same `Arc` and, beside it, what has been
//! appended, by which epoch, and when it ends. So an append copies nothing; it checks the contract and
//! the caps and takes the same time however many generations there are.
//!
//! The caps count what is really held, through a [`Meter`](crate::Meter) that windows keep up to date.
//! When they are reached, finished generations go first, least recently read first; live ones
//! never. What readers of a generation that was let go still hold is theirs and no longer counted.
//!
//! There is no other process that could take a generation over, so what that would need (requests, what is staged
//! beside entries) is not kept for one.

mod by_id;
mod claims;
mod retention;
mod table;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::contract::{
    Adoption, BodyDigest, CLAIM_TIME, Call, Claim, Found, Journal, Key, Notice, Open, OpenRefusal,
    Order, Ordered, Outcome, Refusal, Tail, Unreachable, Usage,
};
use crate::id::StreamId;
use crate::kept::Kept;
use crate::types::Seq;
use crate::window::Window;

use table::Table;

/// How much is kept and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Bytes over all generations, with what is kept elsewhere on their behalf. Raising it lets finished answers
    /// be read longer; when live ones alone exceed it, new ones are served without durability.
    pub max_total: u64,
    /// How long a finished generation can be read.
    pub retention: Duration,
    /// How long after that its id is remembered, so that a late reader is told `expired` and not `unknown`.
    pub tombstone: Duration,
    /// How long a claim lives that is neither renewed nor followed by its log.
    pub claim: Duration,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        let retention = Duration::from_secs(600);
        Self {
            max_total: 512 << 20,
            retention,
            tombstone: retention,
            claim: CLAIM_TIME,
        }
    }
}

/// The memory backend. See the module.
pub struct Memory {
    table: Mutex<Table>,
}

impl Memory {
    /// An empty journal.
    pub fn new(config: MemoryConfig) -> Self {
        Self {
            table: Mutex::new(Table::new(config)),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // A refused contract violation panics before anything was changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(MemoryConfig::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

impl Journal for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn keep(&self, bytes: usize) -> Option<Kept> {
        self.table().keep(bytes)
    }

    fn open<'a>(
        &'a self,
        window: &'a Arc<Window>,
        owner: &'a Open,
        _now: SystemTime,
    ) -> Call<'a, Outcome<OpenRefusal>> {
        Call::answered(answer(self.table().open(window, owner)))
    }

    fn append<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Call<'a, Outcome<Refusal>> {
        Call::answered(answer(self.table().append(window, expected, through)))
    }

    fn finish<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        now: SystemTime,
    ) -> Call<'a, Outcome<Refusal>> {
        Call::answered(answer(self.table().finish(window, expected, now)))
    }

    fn tail(&self, id: StreamId) -> Call<'_, Result<Tail, Unreachable>> {
        Call::answered(Ok(self.table().tail(id)))
    }

    fn find(&self, id: StreamId, now: SystemTime) -> Call<'_, Result<Found, Unreachable>> {
        Call::answered(Ok(self.table().find(id, now)))
    }

    fn finished(&self, now: SystemTime) -> Call<'_, Result<Vec<Arc<Window>>, Unreachable>> {
        Call::answered(Ok(self.table().finished(now)))
    }

    fn adopt(
        &self,
        id: StreamId,
        adoption: Adoption,
        _now: SystemTime,
    ) -> Call<'_, Outcome<Refusal>> {
        Call::answered(answer(self.table().adopt(id, adoption)))
    }

    fn claim(
        &self,
        key: Key,
        id: StreamId,
        now: SystemTime,
    ) -> Call<'_, Result<Claim, Unreachable>> {
        Call::answered(Ok(self.table().claim(key, id, now)))
    }

    fn claim_body(
        &self,
        key: Key,
        id: StreamId,
        body: BodyDigest,
        _now: SystemTime,
    ) -> Call<'_, Result<bool, Unreachable>> {
        Call::answered(Ok(self.table().claim_body(key, id, body)))
    }

    fn release(&self, key: Key, id: StreamId) -> Call<'_, Result<(), Unreachable>> {
        self.table().release(key, id);
        Call::answered(Ok(()))
    }

    fn remove(&self, id: StreamId) -> Call<'_, ()> {
        self.table().remove(id);
        Call::answered(())
    }

    fn order(&self, _id: StreamId, _order: Order) -> Call<'_, Result<Ordered, Unreachable>> {
        // All writers are in this process.
        Call::answered(Ok(Ordered::NoWriter))
    }

    fn next_notice(&self) -> Call<'_, (StreamId, Notice)> {
        Call::under_way(std::future::pending())
    }

    fn sweep(&self, now: SystemTime) {
        self.table().sweep(now);
    }

    fn usage(&self) -> Usage {
        self.table().usage()
    }
}

/// Memory always knows.
fn answer<R>(result: Result<(), R>) -> Outcome<R> {
    match result {
        Ok(()) => Outcome::Yes,
        Err(refusal) => Outcome::No(refusal),
    }
}
