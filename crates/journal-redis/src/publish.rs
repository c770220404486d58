//! Telling those who follow a log elsewhere what was appended to it.
//!
//! A publish is a command of its own, sent when its append has its yes and not waited for. It goes by the connection
//! of the append, so those of a generation leave in their order, the end that `finish` publishes behind them, and at
//! most one of each generation is under way: the next append is answered behind it.
//!
//! A publish that has no answer may be lost. A later one shows that as a gap; should none come, because the backend
//! is silent, the generation is owed one: where its log stands is published as soon as there is a connection again,
//! and then once a second until Redis has taken it. A follower finds what is lost beyond that at its next look.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use streamweld_journal::StreamId;
use tokio::task::{JoinSet, unconstrained};

use crate::journal::Inner;
use crate::keys::Keys;
use crate::record;

/// What is under way, and what came to nothing.
#[derive(Default)]
pub(crate) struct Publishes {
    owed: Arc<Owed>,
    /// Each waits for one answer, within the deadline of its call, and ends with the journal.
    under_way: Mutex<JoinSet<()>>,
}

/// The generations whose followers may have missed the last publish.
#[derive(Default)]
struct Owed(Mutex<HashSet<StreamId>>);

impl Owed {
    fn lock(&self) -> MutexGuard<'_, HashSet<StreamId>> {
        // Changed in single steps.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publishes {
    /// Sends something that nobody waits for.
    pub(crate) fn begin(&self, call: impl Future<Output = ()> + Send + 'static) {
        // Unconstrained, because a task that has done much already would only be sent away by the first poll.
        let mut call: Pin<Box<_>> = Box::pin(unconstrained(call));
        // The first poll puts it in its place behind what was sent before; tasks begin in any order.
        let mut cx = Context::from_waker(Waker::noop());
        if call.as_mut().poll(&mut cx).is_pending() {
            let under_way = self.under_way.lock();
            let mut under_way = under_way.unwrap_or_else(PoisonError::into_inner);
            while under_way.try_join_next().is_some() {}
            under_way.spawn(call);
        }
    }
}

impl Inner {
    /// Publishes a record, on this connection and no other; what comes of it is seen to.
    pub(crate) fn publish(&self, id: StreamId, connection: u64, keys: &Keys, record: &[u8]) {
        let mut command = redis::cmd(self.nodes.publish());
        command.arg(&keys.feed).arg(record);
        let owed = Arc::clone(&self.publishes.owed);
        let call = self
            .nodes
            .appends(id)
            .call_later(connection, command, record.len());
        self.publishes.begin(async move {
            if call.await.is_err() {
                owed.lock().insert(id);
            }
        });
    }

    /// Publishes where the log stands, for followers that may have missed what was appended.
    pub(crate) fn tell_readers(&self, id: StreamId) {
        let (keys, mark) = {
            let table = self.table();
            let Some(live) = table.live.get(&id) else {
                return;
            };
            // While something is under way its answer tells them.
            if !live.readers.any() || live.seen.is_none() {
                return;
            }
            (Arc::clone(&live.keys), record::stand(live.epoch, live.last))
        };
        match self.nodes.appends(id).connection() {
            Some(connection) => self.publish(id, connection, &keys, &mark),
            None => _ = self.publishes.owed.lock().insert(id),
        }
    }

    /// Publishes what is owed, if that can be.
    pub(crate) fn tell_owed(&self) {
        let owed = std::mem::take(&mut *self.publishes.owed.lock());
        for id in owed {
            self.tell_readers(id);
        }
    }
}
