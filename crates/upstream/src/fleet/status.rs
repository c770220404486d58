//! Whether a member gets new attempts: one state machine, fed by probes, attempts, an operator and
//! DNS.
//!
//! It says who gets *new* attempts and nothing else. No event here ends an attempt: a backend whose
//! probes fail may well go on producing what it has begun.
//!
//! Two things go on side by side: what is wanted of a member (`Standing`) and what is believed of it
//! (`Health`); their diagrams are at their types. What is wanted is shown first. Health goes on
//! below it, so that an undrained member is known at once.
//!
//! Pure: time is an argument, and what an event changed is its result.

use tokio::time::Instant;

use super::FailureClass;

mod health;
mod standing;

pub(super) use health::Rules;

use health::{Health, Verdict};
use standing::Standing;

/// What happened to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A probe was answered, or was not.
    Probe(Result<(), FailureClass>),
    /// An attempt got a response head that speaks for the backend, or failed by the backend's fault.
    Attempt(Result<(), FailureClass>),
    /// An operator wants it to get no new attempts.
    Drain,
    /// An operator takes that back.
    Undrain,
    /// DNS does not name it any more.
    Left,
    /// DNS names it (again).
    Named,
    /// No attempt is in flight.
    Idle,
    /// Nothing but time.
    Elapsed,
}

/// What is shown of a member's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberState {
    /// No probe has been answered yet. Gets attempts if nobody is up.
    Starting,
    /// Gets attempts.
    Up,
    /// Its attempts failed though its probes may not. Gets attempts only when there is nobody else,
    /// because this is a suspicion and no attempt at all would be worse.
    Quarantined,
    /// Its probes failed. Gets no attempts.
    Down,
    /// Gets no attempts, by an operator's wish or because DNS does not name it any more. What it
    /// has begun goes on.
    Draining,
    /// DNS does not name it and nothing is in flight there: no member any more.
    Gone,
}

impl MemberState {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Quarantined => "quarantined",
            Self::Down => "down",
            Self::Draining => "draining",
            Self::Gone => "gone",
        }
    }
}

/// A member's state.
#[derive(Debug)]
pub(super) struct Status {
    standing: Standing,
    health: Health,
    /// Of what is shown.
    since: Instant,
    last_failure: Option<(FailureClass, Instant)>,
}

/// How good a choice a member is for a new attempt; the first is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Proven,
    Unproven,
    LastResort,
    Doubtful,
}

/// Whether a member may get a new attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Availability {
    Ready(Tier),
    Down,
    Draining,
}

/// From what to what an event has moved a member, as far as is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) from: MemberState,
    pub(super) to: MemberState,
}

impl Status {
    /// A member that is to be probed before it is trusted.
    pub(super) fn starting(rules: Rules, now: Instant) -> Self {
        Self::new(Health::starting(rules), now)
    }

    /// A member that nobody probes.
    pub(super) fn unprobed(rules: Rules, now: Instant) -> Self {
        Self::new(Health::unprobed(rules, now), now)
    }

    fn new(health: Health, now: Instant) -> Self {
        Self {
            standing: Standing::Serving,
            health,
            since: now,
            last_failure: None,
        }
    }

    /// Takes an event; says what it changed of what is shown. Time does not go back.
    pub(super) fn on(&mut self, event: Event, now: Instant) -> Option<Moved> {
        let from = self.shown();
        if from == MemberState::Gone {
            return None;
        }
        let released = self.health.elapsed(now);
        match event {
            Event::Probe(Ok(())) => self.health.probe_succeeded(now),
            Event::Probe(Err(class)) => {
                self.last_failure = Some((class, now));
                self.health.probe_failed();
            }
            Event::Attempt(Ok(())) => self.health.attempt_succeeded(now),
            Event::Attempt(Err(class)) => {
                self.last_failure = Some((class, now));
                self.health.attempt_failed(class, now);
            }
            Event::Drain => self.standing.drain(),
            Event::Undrain => self.standing.undrain(),
            Event::Left => self.standing.left(),
            Event::Named => self.standing.named(),
            Event::Idle => self.standing.idle(),
            Event::Elapsed => {}
        }
        let to = self.shown();
        // A quarantine that ends and begins in one event is another one.
        let again = released && to == MemberState::Quarantined;
        if again || from != to {
            self.since = now;
        }
        (from != to).then_some(Moved { from, to })
    }

    /// What is shown.
    pub(super) fn shown(&self) -> MemberState {
        match (self.standing, self.health.verdict()) {
            (Standing::Gone, _) => MemberState::Gone,
            (Standing::Drained | Standing::Leaving { .. }, _) => MemberState::Draining,
            (Standing::Serving, Verdict::Starting) => MemberState::Starting,
            (Standing::Serving, Verdict::Up) => MemberState::Up,
            (Standing::Serving, Verdict::Quarantined) => MemberState::Quarantined,
            (Standing::Serving, Verdict::Down) => MemberState::Down,
        }
    }

    /// Whether it may get a new attempt. As of the last event: whoever chooses lets time pass first.
    pub(super) fn availability(&self) -> Availability {
        match self.shown() {
            MemberState::Up => Availability::Ready(Tier::Proven),
            MemberState::Starting => Availability::Ready(Tier::Unproven),
            MemberState::Quarantined => Availability::Ready(Tier::LastResort),
            MemberState::Down => Availability::Down,
            MemberState::Draining | MemberState::Gone => Availability::Draining,
        }
    }

    /// Whether DNS has stopped naming it.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.standing, Standing::Leaving { .. } | Standing::Gone)
    }

    /// Since when it is in the state that is shown.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// The latest failure that counted, and when it was.
    pub(super) fn last_failure(&self) -> Option<(FailureClass, Instant)> {
        self.last_failure
    }
}

#[cfg(test)]
mod tests;
