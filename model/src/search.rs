//! Going through every moment that can be reached.
//!
//! Not generic, so that all of it is compiled here, where it is compiled to be fast.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::protocol::{Protocol, Step};

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Moments, each counted once.
    pub states: usize,
    /// Steps of the longest of the shortest ways to one of them.
    pub depth: usize,
    /// How long it took.
    pub time: Duration,
    /// Each property that does not hold, with a shortest run that breaks it.
    pub broken: BTreeMap<&'static str, Vec<Step>>,
}

/// Goes through all of it.
pub fn search(protocol: Protocol, threads: usize) -> Found {
    run(protocol, threads, HasDiscoveries::All)
}

/// Goes on until something is broken.
pub fn search_fault(protocol: Protocol, threads: usize) -> Found {
    run(protocol, threads, HasDiscoveries::AnyFailures)
}

fn run(protocol: Protocol, threads: usize, until: HasDiscoveries) -> Found {
    let begun = Instant::now();
    let checker = protocol.checker().threads(threads).finish_when(until);
    let checker = checker.spawn_bfs().join();
    let broken = checker.discoveries().into_iter();
    Found {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        time: begun.elapsed(),
        broken: broken
            .map(|(name, path)| (name, path.into_actions()))
            .collect(),
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            states,
            depth,
            time,
            ..
        } = self;
        writeln!(
            f,
            "{states} states, at most {depth} steps away, in {time:.1?}"
        )?;
        for (name, steps) in &self.broken {
            writeln!(f, "broken: {name}")?;
            for step in steps {
                writeln!(f, "  {step:?}")?;
            }
        }
        Ok(())
    }
}
