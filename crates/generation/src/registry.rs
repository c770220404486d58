//! The generations and candidates that have a producer in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use streamweld_journal::StreamId;

use crate::handle::Handle;

/// One producer per id.
#[derive(Debug, Default)]
pub struct Registry {
    live: Mutex<HashMap<StreamId, Arc<Handle>>>,
}

impl Registry {
    /// Adds a candidate.
    pub fn insert(&self, handle: Arc<Handle>) {
        self.lock().insert(handle.spec().id, handle);
    }

    /// The producer of this id, if it is here.
    #[must_use]
    pub fn find(&self, id: StreamId) -> Option<Arc<Handle>> {
        self.lock().get(&id).cloned()
    }

    /// Takes out what has ended.
    pub fn remove(&self, id: StreamId) {
        self.lock().remove(&id);
    }

    /// Everything that runs now.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Handle>> {
        self.lock().values().cloned().collect()
    }

    /// How many run now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Nothing runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, Arc<Handle>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
