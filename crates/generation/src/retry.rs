//! Repeats of a request whose answer never began (protocol.md 6.5).
//!
//! No client library sends an idempotency key by itself, but all of them repeat a POST whose answer never
//! began, byte for byte; browsers do it unseen. Such a repeat finds the generation that it lost, so that it
//! is not paid for twice. The rules here are narrow on purpose: a person who asks the same question twice
//! wants two answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::handle::{Handle, Head};

/// A digest over all of a request but its body: credential, method, target, and the peer's address where there
/// is no credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetryKey(pub [u8; 32]);

/// The generations that a repeat may still join.
#[derive(Debug)]
pub struct RetryWindow {
    window: Duration,
    earlier: Mutex<HashMap<RetryKey, Vec<Arc<Handle>>>>,
}

impl RetryWindow {
    /// Repeats join for this long after their reader was lost. Raising it keeps the answer of a lost client for
    /// longer in case it comes back; the client libraries seen repeat within 8 s.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            earlier: Mutex::new(HashMap::new()),
        }
    }

    /// Remembers a request that was dispatched.
    pub fn note(&self, handle: &Arc<Handle>) {
        if let Some(key) = handle.spec().retry {
            self.lock().entry(key).or_default().push(Arc::clone(handle));
        }
    }

    /// Forgets a request that no repeat can join any more.
    pub fn forget(&self, handle: &Handle) {
        if let Some(key) = handle.spec().retry {
            let mut earlier = self.lock();
            if let Some(list) = earlier.get_mut(&key) {
                list.retain(|other| other.spec().id != handle.spec().id);
                if list.is_empty() {
                    earlier.remove(&key);
                }
            }
        }
    }

    /// The earlier requests that a request with this key may be a repeat of, as far as can be told without its
    /// body. `count` is what the client says: how many times it has sent this before.
    #[must_use]
    pub fn candidates(&self, key: RetryKey, count: Option<u32>) -> Vec<Arc<Handle>> {
        let now = Instant::now();
        let earlier = self.lock();
        let Some(list) = earlier.get(&key) else {
            return Vec::new();
        };
        list.iter()
            .filter(|handle| self.may_join(handle, count, now))
            .cloned()
            .collect()
    }

    /// Drops what is past the window. Called now and then.
    pub fn prune(&self) {
        let now = Instant::now();
        self.lock().retain(|_, list| {
            list.retain(|handle| !self.is_past(handle, now));
            !list.is_empty()
        });
    }

    fn may_join(&self, handle: &Handle, count: Option<u32>, now: Instant) -> bool {
        if count == Some(0)
            || handle.was_served()
            || handle.has_failed()
            || handle.head() == Head::Dropped
        {
            return false;
        }
        match handle.lost_at() {
            Some(lost) => now.duration_since(lost) <= self.window,
            // Its reader seems to be there still, but the client itself says that it has given it up.
            None => {
                count.is_some_and(|count| count > 0)
                    && now.duration_since(handle.begun()) <= self.window
            }
        }
    }

    fn is_past(&self, handle: &Handle, now: Instant) -> bool {
        match handle.head() {
            Head::Dropped => true,
            Head::Pending | Head::Streaming(_) => handle.was_served(),
            Head::Ended => {
                handle.was_served()
                    || handle.has_failed()
                    || handle
                        .lost_at()
                        .is_some_and(|lost| now.duration_since(lost) > self.window)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RetryKey, Vec<Arc<Handle>>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
