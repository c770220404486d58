//! What may go wrong.

use std::time::Duration;

use super::{BEGIN, CALM, CLIENTS, REDIS, replica};
use crate::clock::Moment;
use crate::net::{Death, HostId};
use crate::random::Random;

/// Something that goes wrong at a moment.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When.
    pub at: Moment,
    /// What.
    pub action: Action,
}

/// What the world does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A process is killed, or its machine is gone.
    Kill(HostId, Death),
    /// A process is started, unless it runs.
    Start(HostId),
    /// A process stands still.
    Pause(HostId),
    /// It goes on.
    Resume(HostId),
    /// Nothing passes from the first to the second any more.
    Cut(HostId, HostId),
    /// It does again.
    Heal(HostId, HostId),
    /// It takes longer from now on, in milliseconds.
    Slow(HostId, HostId, u64),
    /// All connections between them are reset.
    Reset(HostId, HostId),
    /// Redis fails over to a server without the last so many writes; connections to it are reset.
    Failover(usize),
    /// The same below connections that stay.
    Replace(usize),
    /// A replica is told to leave.
    Leave(HostId),
}

impl Action {
    /// In words.
    pub fn told(&self, names: &[String]) -> String {
        let name = |host: HostId| &names[host.0];
        match *self {
            Self::Kill(host, Death::Reset) => format!("{} is killed", name(host)),
            Self::Kill(host, Death::Silent) => format!("{} is gone", name(host)),
            Self::Start(host) => format!("{} starts", name(host)),
            Self::Pause(host) => format!("{} stands still", name(host)),
            Self::Resume(host) => format!("{} goes on", name(host)),
            Self::Cut(from, to) => format!("{} to {} is cut", name(from), name(to)),
            Self::Heal(from, to) => format!("{} to {} is whole", name(from), name(to)),
            Self::Slow(from, to, 0) => format!("{} to {} is quick", name(from), name(to)),
            Self::Slow(from, to, by) => {
                format!("{} to {} takes {by} ms longer", name(from), name(to))
            }
            Self::Reset(one, other) => format!("{} and {} are reset", name(one), name(other)),
            Self::Failover(count) => format!("redis fails over and loses {count} writes"),
            Self::Replace(count) => format!("redis loses {count} writes below its connections"),
            Self::Leave(host) => format!("{} leaves", name(host)),
        }
    }
}

/// Kinds of faults. A seed draws which of them there are: many kinds at once hide one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A replica dies with its engine, or alone.
    Crash,
    /// A replica stands still.
    Pause,
    /// A replica leaves.
    Leave,
    /// An engine dies or stands still.
    Engine,
    /// Nothing passes between two hosts, in one direction or both.
    Partition,
    /// Messages take long.
    Delay,
    /// Connections are reset.
    Reset,
    /// Redis dies, or stands still, and has everything when it is back.
    Outage,
    /// Redis loses the end of what it was told.
    LostTail,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Crash,
        Self::Pause,
        Self::Leave,
        Self::Engine,
        Self::Partition,
        Self::Delay,
        Self::Reset,
        Self::Outage,
        Self::LostTail,
    ];
}

/// The faults of a run with so many replicas, soonest first.
pub(super) fn draw(random: &mut Random, replicas: usize) -> Vec<Fault> {
    let mut kinds = Kind::ALL;
    random.shuffle(&mut kinds);
    let kinds = &kinds[..random.between(1, 4) as usize];
    let mut drawing = Drawing {
        random,
        replicas,
        faults: Vec::new(),
    };
    for _ in 0..drawing.random.between(1, 7) {
        let kind = kinds[drawing.random.below(kinds.len())];
        let at = BEGIN + drawing.millis(0, 9_000);
        drawing.draw(kind, at);
    }
    let mut faults = drawing.faults;
    faults.retain(|fault| fault.at < CALM);
    faults.sort_by_key(|fault| fault.at);
    faults
}

struct Drawing<'a> {
    random: &'a mut Random,
    replicas: usize,
    faults: Vec<Fault>,
}

impl Drawing<'_> {
    fn draw(&mut self, kind: Kind, at: Moment) {
        let number = self.random.below(self.replicas);
        let (host, engine) = (replica(number), HostId(2 + self.replicas + number));
        match kind {
            Kind::Crash => {
                let (death, back) = (self.death(), at + self.millis(100, 9000));
                self.between(at, Action::Kill(host, death), back, Action::Start(host));
                if self.random.chance(60) {
                    self.between(at, Action::Kill(engine, death), back, Action::Start(engine));
                }
            }
            Kind::Pause => {
                let back = at + self.about_a_lease();
                self.between(at, Action::Pause(host), back, Action::Resume(host));
            }
            Kind::Leave => {
                let back = at + self.millis(5500, 9000);
                self.between(at, Action::Leave(host), back, Action::Start(host));
            }
            Kind::Engine if self.random.chance(50) => {
                let (death, back) = (self.death(), at + self.millis(100, 9000));
                self.between(at, Action::Kill(engine, death), back, Action::Start(engine));
            }
            Kind::Engine => {
                let back = at + self.millis(100, 8000);
                self.between(at, Action::Pause(engine), back, Action::Resume(engine));
            }
            Kind::Partition => {
                let (one, other) = self.pair(host, engine);
                let back = at + self.about_a_lease();
                self.between(at, Action::Cut(one, other), back, Action::Heal(one, other));
                if self.random.chance(60) {
                    self.between(at, Action::Cut(other, one), back, Action::Heal(other, one));
                }
            }
            Kind::Delay => {
                let (one, other) = self.pair(host, engine);
                let (by, back) = (self.random.between(20, 1500), at + self.millis(500, 6000));
                self.between(
                    at,
                    Action::Slow(one, other, by),
                    back,
                    Action::Slow(one, other, 0),
                );
            }
            Kind::Reset => {
                let (one, other) = self.pair(host, engine);
                self.at(at, Action::Reset(one, other));
            }
            Kind::Outage if self.random.chance(50) => {
                let back = at + self.millis(50, 8000);
                self.between(at, Action::Pause(REDIS), back, Action::Resume(REDIS));
            }
            Kind::Outage => {
                let (death, back) = (self.death(), at + self.millis(50, 8000));
                self.between(at, Action::Kill(REDIS, death), back, Action::Start(REDIS));
            }
            Kind::LostTail => {
                // Mostly a few writes, now and then many.
                let most = if self.random.chance(30) { 150 } else { 12 };
                let count = self.random.between(1, most) as usize;
                let action = if self.random.chance(50) {
                    Action::Failover
                } else {
                    Action::Replace
                };
                self.at(at, action(count));
            }
        }
    }

    /// Two hosts that speak with each other.
    fn pair(&mut self, host: HostId, engine: HostId) -> (HostId, HostId) {
        let other = [REDIS, REDIS, engine, CLIENTS][self.random.below(4)];
        if self.random.chance(50) {
            (host, other)
        } else {
            (other, host)
        }
    }

    fn death(&mut self) -> Death {
        if self.random.chance(60) {
            Death::Reset
        } else {
            Death::Silent
        }
    }

    /// Mostly about as long as it takes until an owner is taken for dead, and its answer goes on elsewhere.
    fn about_a_lease(&mut self) -> Duration {
        if self.random.chance(60) {
            self.millis(1500, 4500)
        } else {
            self.millis(50, 8000)
        }
    }

    fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.random.between(low, high))
    }

    fn at(&mut self, at: Moment, action: Action) {
        self.faults.push(Fault { at, action });
    }

    fn between(&mut self, at: Moment, begin: Action, back: Moment, end: Action) {
        self.at(at, begin);
        self.at(back, end);
    }
}
