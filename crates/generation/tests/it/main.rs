//! One producer on a paused clock, in front of a journal that fails on demand.
#![allow(clippy::unwrap_used, reason = "tests")]

mod adopting;
mod attempts;
mod candidates;
mod giving_up;
mod healing;
mod opening;
mod orphans;
mod stage;
mod stopping;
