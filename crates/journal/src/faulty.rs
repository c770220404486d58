//! Any journal, failing on demand: for tests of what is built on the contract.
//!
//! Faults are scripted per operation and used up in order, one per call (a held call goes on with the
//! next one). Nothing happens by chance or by time. A call without a fault goes through, unless the
//! journal is down.
//!
//! ```
//! use std::sync::Arc;
//! use streamweld_journal::{Memory, faulty::{Fault, Faulty, Op}};
//!
//! let journal = Faulty::new(Memory::default());
//! let faults = journal.faults();
//! faults.script(Op::Append, [Fault::UnknownApplied, Fault::UnknownLost]);
//! let held = faults.hold(Op::Finish); // stands until `held.release()`
//! # drop((journal, held));
//! ```

mod hold;
mod script;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::contract::{
    Admits, Adoption, BodyDigest, Call, Check, Claim, Found, Journal, Key, Notice, Open,
    OpenRefusal, Order, Ordered, Outcome, Refusal, Replica, Tail, Unreachable, Usage, Word,
};
use crate::earlier::Earlier;
use crate::id::StreamId;
use crate::kept::Kept;
use crate::level::Level;
use crate::types::Seq;
use crate::window::Window;

pub use hold::Held;
pub use script::{Fault, Faults, Op};

/// A journal with faults. See the module.
#[derive(Debug)]
pub struct Faulty<J> {
    inner: J,
    faults: Arc<Faults>,
}

impl<J: Journal> Faulty<J> {
    /// Wraps a journal; without a script it behaves like it.
    pub fn new(inner: J) -> Self {
        Self {
            inner,
            faults: Arc::default(),
        }
    }

    /// The handle that scripts it.
    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.faults)
    }

    /// The journal behind the faults.
    pub fn inner(&self) -> &J {
        &self.inner
    }

    /// One change of the log under the next fault of its script.
    async fn change<R>(
        &self,
        op: Op,
        id: StreamId,
        refuse: impl FnOnce(Refusal) -> R,
        call: impl AsyncFnOnce() -> Outcome<R>,
    ) -> Outcome<R> {
        match self.faults.next(op).await {
            None => call().await,
            Some(Fault::Refuse(refusal)) => Outcome::No(refuse(refusal)),
            Some(Fault::UnknownApplied) => {
                let _lost = call().await;
                Outcome::Unknown
            }
            Some(Fault::UnknownLost | Fault::Unreachable) => Outcome::Unknown,
            Some(Fault::Vanish) => {
                self.inner.remove(id).await;
                call().await
            }
        }
    }

    /// One question under the next fault of its script.
    async fn ask<T>(
        &self,
        op: Op,
        id: StreamId,
        call: impl AsyncFnOnce() -> Result<T, Unreachable>,
    ) -> Result<T, Unreachable> {
        match self.faults.next(op).await {
            None => call().await,
            Some(Fault::UnknownApplied) => call().await.and(Err(Unreachable)),
            Some(Fault::Refuse(_) | Fault::UnknownLost | Fault::Unreachable) => Err(Unreachable),
            Some(Fault::Vanish) => {
                self.inner.remove(id).await;
                call().await
            }
        }
    }
}

impl<J: Journal> Journal for Faulty<J> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn level(&self) -> Option<Level> {
        self.inner.level()
    }

    fn checks(&self) -> Vec<Check> {
        self.inner.checks()
    }

    fn keep(&self, bytes: usize) -> Option<Kept> {
        self.inner.keep(bytes)
    }

    fn open<'a>(
        &'a self,
        window: &'a Arc<Window>,
        owner: &'a Open,
        now: SystemTime,
    ) -> Call<'a, Outcome<OpenRefusal>> {
        let refuse = |refusal| {
            if refusal == Refusal::Full {
                OpenRefusal::Full
            } else {
                OpenRefusal::Exists
            }
        };
        let call = async move || self.inner.open(window, owner, now).await;
        Call::under_way(self.change(Op::Open, window.id(), refuse, call))
    }

    fn append<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        through: Seq,
    ) -> Call<'a, Outcome<Refusal>> {
        let call = async move || self.inner.append(window, expected, through).await;
        Call::under_way(self.change(Op::Append, window.id(), |refusal| refusal, call))
    }

    fn finish<'a>(
        &'a self,
        window: &'a Arc<Window>,
        expected: Seq,
        now: SystemTime,
    ) -> Call<'a, Outcome<Refusal>> {
        let call = async move || self.inner.finish(window, expected, now).await;
        Call::under_way(self.change(Op::Finish, window.id(), |refusal| refusal, call))
    }

    fn tail(&self, id: StreamId) -> Call<'_, Result<Tail, Unreachable>> {
        Call::under_way(self.ask(Op::Tail, id, async move || self.inner.tail(id).await))
    }

    fn find(&self, id: StreamId, now: SystemTime) -> Call<'_, Result<Found, Unreachable>> {
        Call::under_way(self.ask(Op::Find, id, async move || self.inner.find(id, now).await))
    }

    fn find_after(
        &self,
        id: StreamId,
        after: Seq,
        now: SystemTime,
    ) -> Call<'_, Result<Found, Unreachable>> {
        let call = async move || self.inner.find_after(id, after, now).await;
        Call::under_way(self.ask(Op::Find, id, call))
    }

    fn find_for<'a>(
        &'a self,
        id: StreamId,
        after: Seq,
        admits: &'a Admits<'a>,
        now: SystemTime,
    ) -> Call<'a, Result<Found, Unreachable>> {
        let call = async move || self.inner.find_for(id, after, admits, now).await;
        Call::under_way(self.ask(Op::Find, id, call))
    }

    fn finished(&self, now: SystemTime) -> Call<'_, Result<Vec<Arc<Window>>, Unreachable>> {
        self.inner.finished(now)
    }

    fn adopt(
        &self,
        id: StreamId,
        adoption: Adoption,
        now: SystemTime,
    ) -> Call<'_, Outcome<Refusal>> {
        let call = async move || self.inner.adopt(id, adoption, now).await;
        Call::under_way(self.change(Op::Adopt, id, |refusal| refusal, call))
    }

    fn claim(
        &self,
        key: Key,
        id: StreamId,
        now: SystemTime,
    ) -> Call<'_, Result<Claim, Unreachable>> {
        Call::under_way(self.ask(Op::Claim, id, async move || {
            self.inner.claim(key, id, now).await
        }))
    }

    fn claim_body(
        &self,
        key: Key,
        id: StreamId,
        body: BodyDigest,
        now: SystemTime,
    ) -> Call<'_, Result<bool, Unreachable>> {
        Call::under_way(self.ask(Op::ClaimBody, id, async move || {
            self.inner.claim_body(key, id, body, now).await
        }))
    }

    fn release(&self, key: Key, id: StreamId) -> Call<'_, Result<(), Unreachable>> {
        Call::under_way(self.ask(Op::Release, id, async move || {
            self.inner.release(key, id).await
        }))
    }

    fn keep_request(&self, id: StreamId, request: Bytes) -> Call<'_, Result<(), Unreachable>> {
        let call = async move || self.inner.keep_request(id, request).await;
        Call::under_way(self.ask(Op::KeepRequest, id, call))
    }

    fn kept_request(&self, id: StreamId) -> Call<'_, Result<Option<Bytes>, Unreachable>> {
        let call = async move || self.inner.kept_request(id).await;
        Call::under_way(self.ask(Op::KeptRequest, id, call))
    }

    fn beside(&self, id: StreamId, through: Seq) -> Call<'_, Result<Vec<Bytes>, Unreachable>> {
        let call = async move || self.inner.beside(id, through).await;
        Call::under_way(self.ask(Op::Beside, id, call))
    }

    fn earlier(&self, id: StreamId) -> Option<Arc<dyn Earlier>> {
        self.inner.earlier(id)
    }

    fn replica(&self) -> Option<Replica> {
        self.inner.replica()
    }

    fn replicas(&self) -> Call<'_, Result<Vec<Replica>, Unreachable>> {
        self.inner.replicas()
    }

    fn say(&self, to: Replica, id: StreamId, word: Word) -> Call<'_, Result<(), Unreachable>> {
        self.inner.say(to, id, word)
    }

    fn remove(&self, id: StreamId) -> Call<'_, ()> {
        let call = async move || {
            self.inner.remove(id).await;
            Ok(())
        };
        Call::under_way(async move {
            // Nobody is told whether a removal worked, so a fault only decides whether it does.
            let _answer = self.ask(Op::Remove, id, call).await;
        })
    }

    fn order(&self, id: StreamId, order: Order) -> Call<'_, Result<Ordered, Unreachable>> {
        self.inner.order(id, order)
    }

    fn next_notice(&self) -> Call<'_, (StreamId, Notice)> {
        self.inner.next_notice()
    }

    fn depart(&self) -> Call<'_, ()> {
        self.inner.depart()
    }

    fn sweep(&self, now: SystemTime) {
        self.inner.sweep(now);
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }
}
