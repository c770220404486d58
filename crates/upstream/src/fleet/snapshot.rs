//! What is shown of a fleet, to operators and in metrics.

use std::time::Duration;

use tokio::time::Instant;

use super::status::Status;
use super::{Engine, FailureClass, Family, Member, MemberId, MemberState};

/// One member at one moment. Holds no address and no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSnapshot {
    /// Which it is.
    pub id: MemberId,
    /// The name.
    pub name: String,
    /// The software that answers there.
    pub engine: Engine,
    /// The dialects it is asked in.
    pub family: Family,
    /// The compatibility group.
    pub group: Option<String>,
    /// The share of the attempts.
    pub weight: u32,
    /// Whether it gets new attempts, and why not.
    pub state: MemberState,
    /// For how long it has been in that state.
    pub state_age: Duration,
    /// Whether DNS has stopped naming it, so that it goes when its last attempt ends.
    pub leaving: bool,
    /// Attempts in flight.
    pub in_flight: usize,
    /// The latest failure that counted, also if it has recovered since.
    pub last_failure: Option<LastFailure>,
}

/// A failure of a probe or an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastFailure {
    /// Why.
    pub class: FailureClass,
    /// How long ago.
    pub age: Duration,
}

impl MemberSnapshot {
    pub(super) fn of(member: &Member, status: &Status, in_flight: usize, now: Instant) -> Self {
        let last_failure = status.last_failure();
        Self {
            id: member.id(),
            name: member.name().to_owned(),
            engine: member.engine(),
            family: member.family(),
            group: member.group().map(str::to_owned),
            weight: member.weight().get(),
            state: status.shown(),
            state_age: now - status.since(),
            leaving: status.is_leaving(),
            in_flight,
            last_failure: last_failure.map(|(class, at)| LastFailure {
                class,
                age: now - at,
            }),
        }
    }
}
