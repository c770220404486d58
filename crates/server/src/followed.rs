//! Readers here of generations that other replicas write, counted.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use streamweld_journal::{Follow, StreamId};

/// How many readers each of them has.
#[derive(Clone, Default)]
pub(crate) struct Followed(Arc<Mutex<HashMap<StreamId, usize>>>);

impl Followed {
    /// Counts one reader more for as long as what is given back lives. It reads what `follow` follows.
    pub(crate) fn reader(&self, id: StreamId, follow: &Follow) -> Follow {
        *self.lock().entry(id).or_default() += 1;
        Follow::new(Arc::new(Counted {
            followed: self.clone(),
            id,
            _follow: follow.reading(),
        }))
    }

    /// The readers here of one generation.
    pub(crate) fn readers(&self, id: StreamId) -> usize {
        self.lock().get(&id).copied().unwrap_or_default()
    }

    /// The readers here of all of them.
    pub(crate) fn all(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Followed").field(&self.all()).finish()
    }
}

struct Counted {
    followed: Followed,
    id: StreamId,
    _follow: Follow,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.followed.lock();
        if let Some(count) = counts.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.id);
            }
        }
    }
}
