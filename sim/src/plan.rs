//! What a seed draws: who is there, who reads how, and what goes wrong when.

mod fault;

use std::fmt;
use std::time::Duration;

pub use fault::{Action, Fault, Kind};

use crate::clock::Moment;
use crate::net::HostId;
use crate::random::Random;

/// All of it.
pub struct Plan {
    /// How many replicas, each with an engine of its own.
    pub replicas: usize,
    /// How long an engine takes for each event.
    pub pace: Duration,
    /// The answers: when each is asked for, and at which replica.
    pub generations: Vec<(Moment, usize)>,
    /// How many others read each answer.
    pub others: usize,
    /// How often in a hundred a connection is broken off by its reader.
    pub breaks: u64,
    /// The answer that is stopped, and when.
    pub stop: Option<(usize, Moment)>,
    /// What goes wrong, soonest first.
    pub faults: Vec<Fault>,
    /// Draws the rest.
    pub random: Random,
}

/// When the first answer is asked for: by then engines are known to be well.
const BEGIN: Moment = Duration::from_millis(1500);
/// From then on nothing goes wrong any more.
pub const CALM: Moment = Duration::from_secs(16);

impl Plan {
    /// That of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let replicas = random.between(2, 3) as usize;
        let begin = |random: &mut Random| BEGIN + Duration::from_millis(random.between(0, 4000));
        let generations: Vec<_> = (0..random.between(1, 2))
            .map(|_| (begin(&mut random), random.below(replicas)))
            .collect();
        let stop = random.chance(20).then(|| {
            let number = random.below(generations.len());
            let after = Duration::from_millis(random.between(300, 8000));
            (number, generations[number].0 + after)
        });
        Self {
            replicas,
            pace: Duration::from_millis(
                [random.between(4, 30), random.between(30, 120)][random.below(2)],
            ),
            others: random.between(1, 2) as usize,
            breaks: [0, 30, 70][random.below(3)],
            stop,
            faults: fault::draw(&mut random, replicas),
            generations,
            random,
        }
    }

    /// The names of all hosts.
    pub fn names(&self) -> Vec<String> {
        let each =
            |what: &'static str| (0..self.replicas).map(move |number| format!("{what}-{number}"));
        let fixed = ["redis", "clients"].map(str::to_owned);
        fixed
            .into_iter()
            .chain(each("replica"))
            .chain(each("engine"))
            .collect()
    }
}

/// What is there and what goes wrong, a line for each fault.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        write!(
            f,
            "{} replicas, {} readers of each answer",
            self.replicas,
            self.others + 1
        )?;
        for (number, (at, replica)) in self.generations.iter().enumerate() {
            write!(
                f,
                "\n  {:>7.3} answer {number} is asked for at replica-{replica}",
                at.as_secs_f64()
            )?;
        }
        if let Some((number, at)) = self.stop {
            write!(
                f,
                "\n  {:>7.3} answer {number} is stopped",
                at.as_secs_f64()
            )?;
        }
        for fault in &self.faults {
            write!(
                f,
                "\n  {:>7.3} {}",
                fault.at.as_secs_f64(),
                fault.action.told(&names)
            )?;
        }
        Ok(())
    }
}

/// Where Redis is.
pub const REDIS: HostId = HostId(0);
/// Where readers are.
pub const CLIENTS: HostId = HostId(1);

/// Where a replica is.
pub fn replica(number: usize) -> HostId {
    HostId(2 + number)
}
