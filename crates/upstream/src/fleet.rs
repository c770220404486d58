//! Several backends: who they are, which are well, and who gets the next attempt.
//!
//! A [`Fleet`] is a cheap handle; its clones are one fleet, also across threads. It knows its
//! members from a static list and from names that DNS leads to several addresses. What is believed
//! of each is one state machine (`status`), fed by probes, by what attempts show, by an operator
//! and by DNS.
//!
//! Promises:
//! - A member that is down or draining gets no new attempt, and one that a generation has seen fail
//!   is not given to it again.
//! - Nothing here ends an attempt. A backend whose probes fail may go on with what it has begun.
//! - No attempt takes a backend out altogether: it becomes the last resort. Only probes, an operator
//!   and DNS do.
//! - When nobody can take an attempt, the refusal says what keeps each of them.
//! - Nothing that can be shown holds an address or a credential, but one: the line in the log that
//!   tells which address a member of a name has, for whoever has to find it.
//!
//! What is chosen is not used here: whoever has a [`Permit`] sends the request with a
//! [`Client`](crate::Client), retries, and moves generations away from a member that drains. What
//! was drained, and what was learned, is forgotten with the process.
//!
//! The rules are pure (`status`, `roster`, `pick`: time is an argument). Around them there is one
//! lock, never held across an await, and the task of a [`Watch`].

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch as channel;
use tokio::time::Instant;

use crate::{BackendUrl, ConfigError, UpstreamConfig};

mod credential;
mod drain;
mod engine;
mod failure;
mod member;
mod permit;
mod pick;
mod probe;
mod random;
mod roster;
mod snapshot;
mod spec;
mod status;
mod tally;
mod watch;

pub use credential::{Credential, CredentialError, OwnedCredential};
pub use drain::{Drain, DrainEnd};
pub use engine::{Engine, Family, UnknownEngine};
pub use failure::FailureClass;
pub use member::{Member, MemberId};
pub use permit::Permit;
pub use pick::{Unavailable, UnavailableReason, Wanted};
pub use snapshot::{LastFailure, MemberSnapshot};
pub use spec::{Config, HealthCheck, Reach, Spec, SpecError};
pub use status::MemberState;
pub use tally::Tally;
pub use watch::Watch;

use random::Random;
use roster::{Change, News, Roster};
use status::Event;

/// A set of backends. Cheap to clone.
#[derive(Clone)]
pub struct Fleet {
    shared: Arc<Shared>,
}

struct Shared {
    roster: Mutex<Roster>,
    changed: channel::Sender<()>,
    config: Config,
}

impl Fleet {
    /// A fleet of these backends. Members that are to be probed are `starting` and names lead
    /// nowhere until the fleet is [watched](Self::watch). Tells everything that is wrong.
    pub fn new(specs: Vec<Spec>, config: Config) -> Result<Self, Vec<SpecError>> {
        let errors = spec::check(&specs, &config);
        if !errors.is_empty() {
            return Err(errors);
        }
        let random = Random::from_system();
        let roster = Roster::new(specs, config.rules(), random, Instant::now());
        let fleet = Self {
            shared: Arc::new(Shared {
                roster: Mutex::new(roster),
                changed: channel::Sender::new(()),
                config,
            }),
        };
        fleet.with(|_, _| ());
        Ok(fleet)
    }

    /// Tells everything that is wrong with a list of backends.
    pub fn check(&self, specs: &[Spec]) -> Result<(), Vec<SpecError>> {
        let errors = spec::check(specs, &self.shared.config);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Takes these backends in place of those that were listed. One that is listed as it was stays, with what is known of
    /// it; any other that was there gets no new attempts, and goes when those that it has are over. Tells everything that
    /// is wrong; then nothing has changed.
    pub fn replace(&self, specs: Vec<Spec>) -> Result<(), Vec<SpecError>> {
        self.check(&specs)?;
        self.with(|roster, now| roster.replace(specs, now));
        // A name that leads to several changes nothing that is shown before it was looked up.
        self.shared.changed.send_replace(());
        Ok(())
    }

    /// Probes members and looks names up, until the result is dropped. `config` is the one that
    /// attempts are made with. Call it once.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn watch(&self, config: &UpstreamConfig) -> Result<Watch, ConfigError> {
        Watch::start(self, config)
    }

    /// Chooses who gets the next attempt, and counts it there.
    pub fn pick(&self, wanted: &Wanted<'_>) -> Result<Permit, Unavailable> {
        let member = self.with(|roster, now| roster.pick(wanted, now))?;
        Ok(Permit::new(self.clone(), member))
    }

    /// Takes one more place at this very member, whatever is believed of it. None when it is gone.
    pub fn again(&self, member: &Member) -> Option<Permit> {
        let member = self.with(|roster, _| roster.join_in(member.id()))?;
        Some(Permit::new(self.clone(), member))
    }

    /// Gives a member no new attempts. Again: the same. What is in flight there goes on; the result
    /// tells when it is over.
    pub fn drain(&self, name: &str) -> Result<Drain, UnknownBackend> {
        let id = self.operate(name, Event::Drain)?;
        Ok(Drain::new(self.clone(), id))
    }

    /// Takes a drain back. Again, or without one: nothing happens.
    pub fn undrain(&self, name: &str) -> Result<(), UnknownBackend> {
        self.operate(name, Event::Undrain).map(|_| ())
    }

    /// Every member as it is now: the static ones in their order, then the others by age.
    pub fn snapshot(&self) -> Vec<MemberSnapshot> {
        self.with(|roster, now| {
            roster.settle(now);
            let members = roster.members();
            members
                .map(|(member, status, in_flight)| {
                    MemberSnapshot::of(member, status, in_flight, now)
                })
                .collect()
        })
    }

    /// What came of every attempt so far, by member and outcome. Members that went are in it too.
    pub fn tally(&self) -> Vec<Tally> {
        self.with(|roster, _| roster.tally())
    }

    /// Tells when there is something new to see in a [`snapshot`](Self::snapshot), from now on.
    pub fn changes(&self) -> Changes {
        Changes {
            changed: self.shared.changed.subscribe(),
            _fleet: self.clone(),
        }
    }

    /// How its members are probed.
    pub fn probes(&self) -> &Config {
        self.config()
    }

    fn config(&self) -> &Config {
        &self.shared.config
    }

    fn on(&self, id: MemberId, event: Event) {
        self.with(|roster, now| roster.on(id, event, now));
    }

    /// An attempt at a member has shown something: what came of it, and what that says of the member.
    fn shown(&self, member: &Member, outcome: &'static str, evidence: failure::Evidence) {
        self.with(|roster, now| {
            roster.count(member, outcome);
            if let Some(result) = evidence {
                roster.on(member.id(), Event::Attempt(result), now);
            }
        });
    }

    fn release(&self, id: MemberId) {
        self.with(|roster, now| roster.release(id, now));
    }

    fn resolved(&self, service: usize, addresses: &[std::net::IpAddr]) {
        self.with(|roster, now| roster.resolved(service, addresses, now));
    }

    fn state(&self, id: MemberId) -> Option<(MemberState, usize)> {
        self.with(|roster, _| roster.state(id))
    }

    /// Every member, and whether it gets new attempts.
    pub fn members(&self) -> Vec<(Arc<Member>, MemberState)> {
        self.with(|roster, now| {
            roster.settle(now);
            let members = roster.members();
            members
                .map(|(member, status, _)| (Arc::clone(member), status.shown()))
                .collect()
        })
    }

    /// The names that stand for several members, each with its place, and where they are looked up.
    fn services(&self) -> Vec<(usize, String, BackendUrl)> {
        self.with(|roster, _| {
            let services = roster.services();
            services
                .map(|(service, spec)| (service, spec.name.clone(), spec.url.clone()))
                .collect()
        })
    }

    fn lists(&self, service: usize) -> bool {
        self.with(|roster, _| roster.services().any(|(of, _)| of == service))
    }

    fn operate(&self, name: &str, event: Event) -> Result<MemberId, UnknownBackend> {
        self.with(|roster, now| {
            let id = roster.named(name).ok_or(UnknownBackend)?;
            roster.on(id, event, now);
            Ok(id)
        })
    }

    /// Looks at the roster or changes it, and tells what has changed.
    fn with<T>(&self, work: impl FnOnce(&mut Roster, Instant) -> T) -> T {
        let roster = self.shared.roster.lock();
        let mut roster = roster.unwrap_or_else(PoisonError::into_inner);
        // The clock is read under the lock: the rules count on time that does not go back.
        let result = work(&mut roster, Instant::now());
        let News { changes, emptied } = roster.take_news();
        drop(roster);
        if emptied || !changes.is_empty() {
            self.shared.changed.send_replace(());
        }
        changes.iter().for_each(log);
        result
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fleet")
    }
}

/// Tells when something about a fleet has changed: a member's state, who is there, or that a
/// member's last attempt is over.
pub struct Changes {
    changed: channel::Receiver<()>,
    /// Keeps the sender.
    _fleet: Fleet,
}

impl Changes {
    /// Waits for a change since the last call, or since this was made. Several count as one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        let changed = self.changed.changed().await;
        changed.expect("the fleet is kept, and its sender with it");
    }
}

/// No member has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no backend of this name")]
pub struct UnknownBackend;

fn log(change: &Change) {
    let backend = change.member.name();
    let state = change.to.as_str();
    match (change.from, change.failure) {
        (None, _) => match change.member.backend().address() {
            Some(address) => tracing::info!(backend, state, %address, "backend found"),
            None => tracing::debug!(backend, state, "backend listed"),
        },
        (Some(from), Some(failure)) => {
            let (from, failure) = (from.as_str(), failure.as_str());
            tracing::warn!(backend, from, state, failure, "backend state changed");
        }
        (Some(from), None) => {
            tracing::info!(
                backend,
                from = from.as_str(),
                state,
                "backend state changed"
            );
        }
    }
}
