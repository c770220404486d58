//! Going on elsewhere: what must hold before an answer that was cut is continued by another backend.
//!
//! Pure: a snapshot in, verdicts out. The same function answers the producer at a cut and an operator who only asks.

mod backends;
pub mod cut;
pub mod gates;
mod mover;
mod order;
mod seam;
mod snapshot;

pub use self::backends::{Backends, Bounds, Candidate, Facts, Later, NotBegun, Within};
pub use self::mover::with_more;
pub(crate) use self::mover::{Moved, Outcome, Situation, judge, move_on};
pub(crate) use self::order::Asked;
pub use self::order::{Judged, Order, Report};
pub use self::snapshot::{
    Answer, Budget, Count, JournalState, Kept, Policy, Probed, Snapshot, Target, Trigger,
};
