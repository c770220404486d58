//! The generations that this replica writes, for whoever tells other replicas of them.

use std::fmt;
use std::sync::Arc;

use streamweld_generation::{Durability, Head, Presence, Registry};
use streamweld_journal::{Access, Journal, StreamId, Window};

/// Finds them. It outlives the server, and finds little then.
#[derive(Clone)]
pub struct OwnedHere {
    registry: Arc<Registry>,
    journal: Arc<dyn Journal>,
}

/// One of them.
#[derive(Debug)]
pub struct Owned {
    /// What its readers are shown.
    pub window: Arc<Window>,
    /// What a caller must match.
    pub access: Access,
    /// It has a reader for as long as this lives; `None` where it has its end.
    pub presence: Option<Presence>,
}

impl OwnedHere {
    pub(crate) fn new(registry: Arc<Registry>, journal: Arc<dyn Journal>) -> Self {
        Self { registry, journal }
    }

    /// One that can be read under ids, and was not found to be another replica's; or one that has its end, while that is
    /// held here.
    #[must_use]
    pub fn find(&self, id: StreamId) -> Option<Owned> {
        let Some(handle) = self.registry.find(id) else {
            let (window, access) = self.journal.held(id)?;
            return window.terminal().is_some().then_some(Owned {
                window,
                access,
                presence: None,
            });
        };
        if handle.head() != Head::Streaming(Durability::Durable) || handle.is_lost() {
            return None;
        }
        Some(Owned {
            window: Arc::clone(handle.window()),
            access: handle.spec().access.digest(),
            presence: Some(Presence::new(handle)),
        })
    }
}

impl fmt::Debug for OwnedHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedHere")
            .field(&self.registry.len())
            .finish()
    }
}
