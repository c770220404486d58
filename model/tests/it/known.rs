//! What does not hold. Each of these is told in docs/ownership.md; a test that fails here because more holds is good news.

use streamweld_model::{Bounds, Faults, STOP_STAYS};

use crate::searched;

const NONE: Faults = Faults::NONE;
const SMALL: Bounds = Bounds::SMALL;

#[track_caller]
fn is_known(name: &str, bounds: Bounds, expected: &[&str]) {
    let broken = searched(name, bounds);
    assert_eq!(broken, expected, "{name}");
}

/// The replica that wrote the end has forgotten it, or died with it.
#[test]
fn a_stop_that_the_journal_has_lost_may_end_otherwise() {
    let faults = Faults {
        failovers: 1,
        stops: 1,
        ..NONE
    };
    let bounds = Bounds { faults, ..SMALL };
    is_known("a lost stop", bounds, &[STOP_STAYS]);
}
