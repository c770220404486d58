//! Waiting until a member has nothing left to do.

use std::fmt;

use super::status::MemberState;
use super::{Changes, Fleet, MemberId};

/// A member that gets no new attempts, by an operator's wish. Dropping this takes nothing back.
pub struct Drain {
    fleet: Fleet,
    id: MemberId,
    changes: Changes,
}

/// How waiting for a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainEnd {
    /// Nothing is in flight there any more.
    Drained,
    /// It was taken back meanwhile.
    Undrained,
}

impl Drain {
    pub(super) fn new(fleet: Fleet, id: MemberId) -> Self {
        let changes = fleet.changes();
        Self { fleet, id, changes }
    }

    /// Which member.
    pub fn member(&self) -> MemberId {
        self.id
    }

    /// How many attempts are still in flight there.
    pub fn left(&self) -> usize {
        let state = self.fleet.state(self.id);
        state.map_or(0, |(_, in_flight)| in_flight)
    }

    /// Waits until nothing is left, or nobody wants that any more. It waits as long as the attempts
    /// take; a limit is the caller's.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn ended(&mut self) -> DrainEnd {
        loop {
            match self.fleet.state(self.id) {
                // It went, which only the idle do.
                None | Some((MemberState::Draining, 0)) => return DrainEnd::Drained,
                Some((MemberState::Draining, _)) => self.changes.changed().await,
                Some(_) => return DrainEnd::Undrained,
            }
        }
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drain").field(&self.id).finish()
    }
}
