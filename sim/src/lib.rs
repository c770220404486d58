//! Whole replicas in a simulation: the real edge, producers, journal client, takeover and hand-over, with only sockets,
//! time and chance replaced.
//!
//! Two or three replicas, each with an engine of its own, share one Redis, and readers read answers there, break off and
//! come back anywhere. A seed draws who they are, what goes wrong and when, and how long each message takes. At the end
//! everything that every reader was shown is looked at (`check.rs`). A run is one process, and the same seed is the same
//! run, so one that fails can be looked at as often as it takes.
//!
//! docs/ownership.md tells which faults there are, what has to hold, and how to repeat a run.

pub mod check;
mod clock;
mod host;
pub mod net;
pub mod plan;
pub mod process;
mod random;
pub mod reader;
pub mod redis;
pub mod runner;
mod trace;
mod world;

pub use clock::{Clock, Moment};
pub use host::Host;
pub use random::Random;
pub use trace::{Shows, Trace};
pub use world::{Outcome, run};
