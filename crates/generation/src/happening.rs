//! What happens to generations, for whoever looks on: an operator's page, above all.
//!
//! Told at the turns of a life, never per event.

use std::fmt;
use std::sync::Arc;

use streamweld_journal::StreamId;

use crate::handle::{Durability, Handle};
use crate::lifecycle::End;

/// One turn of the life of a generation, as this replica sees it.
#[derive(Debug)]
pub enum Happening<'a> {
    /// It has begun here, or was taken over from another replica.
    Created {
        /// It.
        handle: &'a Handle,
        /// Whether it is in the journal.
        durability: Durability,
        /// Another replica had begun it.
        inherited: bool,
    },
    /// Its first event was received. Not told of one that was taken over.
    FirstEvent,
    /// Another backend goes on with it.
    Migrated {
        /// The backend that had it, by its name.
        from: &'a str,
        /// The one that has it now.
        to: &'a str,
        /// Why.
        trigger: &'static str,
    },
    /// The journal does not take it: its readers are shown events without ids.
    Degraded,
    /// The journal has all of it again.
    Healed,
    /// It has its end from here.
    Ended(&'a End),
    /// It goes on or ends elsewhere: another replica has it, or nobody knows.
    Left,
}

/// Somebody who looks on. What is told must not be kept up.
pub trait Onlooker: Send + Sync {
    /// This has happened to it.
    fn sees(&self, stream: StreamId, what: &Happening<'_>);
}

/// Who looks on, if anybody does.
#[derive(Clone, Default)]
pub struct Onlookers(Arc<[Arc<dyn Onlooker>]>);

impl Onlookers {
    /// These do.
    #[must_use]
    pub fn of(onlookers: impl IntoIterator<Item = Arc<dyn Onlooker>>) -> Self {
        Self(onlookers.into_iter().collect())
    }

    pub(crate) fn tell(&self, stream: StreamId, what: &Happening<'_>) {
        for onlooker in self.0.iter() {
            onlooker.sees(stream, what);
        }
    }
}

impl fmt::Debug for Onlookers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Onlookers")
    }
}
