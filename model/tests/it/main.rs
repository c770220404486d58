//! The searches: what holds, what every rule is for, and what is known not to hold.
#![allow(clippy::print_stdout, reason = "how much was searched is the result")]

mod known;
mod large;
mod rules;
mod sizes;

use streamweld_model::{Bounds, Protocol, search};

/// Searches all of it; prints how much that was, and the shortest run that breaks each property.
fn searched(name: &str, bounds: Bounds) -> Vec<&'static str> {
    let found = search(Protocol { bounds }, THREADS);
    println!("{name}: {found}");
    found.broken.into_keys().collect()
}

#[track_caller]
fn holds(name: &str, bounds: Bounds) {
    let broken = searched(name, bounds);
    assert!(broken.is_empty(), "{name}: {broken:?}");
}

/// Tests run side by side already.
const THREADS: usize = 1;
