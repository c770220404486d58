//! Going on elsewhere: what must hold before an answer that was cut is continued by another backend.
//!
//! | file | what it is |
//! |---|---|
//! | `snapshot` | everything that the gates look at, as it is at one moment |
//! | `gates` | pure: a snapshot in, verdicts out; the same for a producer at a cut and an operator who only asks |
//! | `cut` | pure: where an answer can be divided for a continuation by its text |
//! | `backends` | the seam to whoever knows the backends |
//! | `mover` | from a trigger to the backend that goes on, or to the gates that refuse |
//! | `shown`, `places` | what it knows of the answer, and who is asked |
//! | `inquiry` | what one that could go on is asked beforehand |
//! | `seam` | whether what comes is the rest of the answer, before any of it is shown |
//! | `order` | an operator's wish, and what became of it |

mod backends;
pub mod cut;
pub mod gates;
mod inquiry;
mod mover;
mod order;
mod places;
mod seam;
mod shown;
mod snapshot;

pub use self::backends::{Backends, Bounds, Candidate, Facts, Later, NotBegun, Within};
pub(crate) use self::mover::{Moved, Outcome, Situation, judge, move_on};
pub(crate) use self::order::Asked;
pub use self::order::{Judged, Order, Report};
pub use self::shown::with_more;
pub use self::snapshot::{
    Answer, Budget, Count, JournalState, Kept, NoCount, Policy, Probed, Snapshot, Target, Trigger,
};
