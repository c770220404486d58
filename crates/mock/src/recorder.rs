//! What the mock saw: every request, how each answer ended from its side, and open connections.
//!
//! Requests are numbered from 0 in the order of their arrival. The record is bounded: the oldest
//! requests are forgotten, their numbers stay used. All waits have a deadline, so a test that would
//! hang fails with the words for what it waited for.

mod deadline;
mod record;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

pub(crate) use deadline::Deadline;
pub use deadline::TimedOut;
pub use record::{Ending, Outcome, Request};

/// The record of one mock. Cheap to clone; clones share the record.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    deadline: Deadline,
}

#[derive(Debug)]
struct Shared {
    log: Mutex<Log>,
    changed: watch::Sender<()>,
    open: AtomicUsize,
    accepted: AtomicUsize,
    keep: usize,
}

#[derive(Debug, Default)]
struct Log {
    requests: VecDeque<Request>,
    forgotten: usize,
}

impl Recorder {
    /// Keeps the newest `keep` requests.
    pub(crate) fn new(keep: usize) -> Self {
        let shared = Shared {
            log: Mutex::default(),
            changed: watch::Sender::new(()),
            open: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            keep: keep.max(1),
        };
        Self {
            shared: Arc::new(shared),
            deadline: Deadline::default(),
        }
    }

    /// The same record with another deadline for its waits; 10 s otherwise.
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            deadline: Deadline(deadline),
        }
    }

    /// How many requests came in all.
    pub fn count(&self) -> usize {
        let log = self.lock();
        log.forgotten + log.requests.len()
    }

    /// The request of this number, if it came and is not forgotten.
    pub fn request(&self, index: usize) -> Option<Request> {
        let log = self.lock();
        log.requests.get(index.checked_sub(log.forgotten)?).cloned()
    }

    /// All requests that are not forgotten.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.iter().cloned().collect()
    }

    /// How many connections are open now.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::Acquire)
    }

    /// How many connections were accepted in all.
    pub fn accepted_connections(&self) -> usize {
        self.shared.accepted.load(Ordering::Acquire)
    }

    /// Waits until `count` requests came in all.
    pub async fn wait_requests(&self, count: usize) -> Result<(), TimedOut> {
        self.wait_until(|recorder| recorder.count() >= count).await
    }

    /// Waits until the answer to a request has ended, and says how.
    pub async fn wait_closed(&self, index: usize) -> Result<Ending, TimedOut> {
        let ended = || self.request(index)?.ending;
        self.deadline.wait(&self.shared.changed, ended).await
    }

    /// Waits until so many connections are open.
    pub async fn wait_open_connections(&self, count: usize) -> Result<(), TimedOut> {
        self.wait_until(|recorder| recorder.open_connections() == count)
            .await
    }

    /// Waits until something about the record holds.
    pub async fn wait_until(&self, holds: impl Fn(&Self) -> bool) -> Result<(), TimedOut> {
        self.deadline
            .wait(&self.shared.changed, || holds(self).then_some(()))
            .await
    }

    /// Notes a request and returns its number.
    pub(crate) fn record(&self, mut request: Request) -> usize {
        let index = {
            let mut log = self.lock();
            let index = log.forgotten + log.requests.len();
            request.index = index;
            log.requests.push_back(request);
            if log.requests.len() > self.shared.keep {
                log.requests.pop_front();
                log.forgotten += 1;
            }
            index
        };
        self.shared.changed.send_replace(());
        index
    }

    /// Notes how the answer to a request ended; the first note counts.
    pub(crate) fn close(&self, index: usize, ending: Ending) {
        {
            let mut log = self.lock();
            let forgotten = log.forgotten;
            let request = index
                .checked_sub(forgotten)
                .and_then(|at| log.requests.get_mut(at));
            if let Some(request) = request {
                request.ending.get_or_insert(ending);
            }
        }
        self.shared.changed.send_replace(());
    }

    /// Counts a connection as open for as long as the guard lives. Returns its number, from 1.
    pub(crate) fn connection(&self) -> (usize, OpenConnection) {
        let number = self.shared.accepted.fetch_add(1, Ordering::AcqRel) + 1;
        self.shared.open.fetch_add(1, Ordering::AcqRel);
        self.shared.changed.send_replace(());
        (number, OpenConnection(Arc::clone(&self.shared)))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.shared
            .log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Shared>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.send_replace(());
    }
}
