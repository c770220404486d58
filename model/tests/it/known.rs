//! What does not hold. Each of these is told in docs/ownership.md; a test that fails here because more holds is good news.

use streamweld_model::{
    Bounds, DONE_IS_WHOLE, Epochs, Faults, ONE_ANSWER, ONE_ENTRY_A_CURSOR, ONE_WRITER, STOP_STAYS,
};

use crate::searched;

const NONE: Faults = Faults::NONE;
const SMALL: Bounds = Bounds::SMALL;

#[track_caller]
fn is_known(name: &str, bounds: Bounds, expected: &[&str]) {
    let broken = searched(name, bounds);
    assert_eq!(broken, expected, "{name}");
}

/// A failover takes an adoption with it, and the next one has its number again.
#[test]
fn an_epoch_that_is_only_the_next_one_comes_again() {
    let faults = Faults {
        failovers: 1,
        crashes: 1,
        ..NONE
    };
    let epochs = Epochs::Next;
    let bounds = Bounds {
        faults,
        epochs,
        ..SMALL
    };
    is_known("the next epoch", bounds, &[ONE_ENTRY_A_CURSOR]);
}

/// So does one with an owner that has heard nothing of it.
#[test]
fn nor_is_it_one_writers() {
    let faults = Faults {
        failovers: 1,
        pauses: 1,
        ..NONE
    };
    let (epochs, events) = (Epochs::Next, 1);
    let bounds = Bounds {
        faults,
        epochs,
        events,
        ..SMALL
    };
    let broken = searched("the next epoch, and a pause", bounds);
    assert!(broken.contains(&ONE_ENTRY_A_CURSOR), "{broken:?}");
    assert!(broken.contains(&ONE_WRITER), "{broken:?}");
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

/// A follower goes on behind the last record that it has read. Where a takeover is lost, the writer from before comes as far as
/// it had come, and is taken over in its turn, nothing tells it that what it has shown is not what stands.
#[test]
fn a_follower_may_not_see_that_all_it_has_shown_was_replaced() {
    let faults = Faults {
        failovers: 1,
        pauses: 1,
        ..NONE
    };
    let (events, reader) = (1, true);
    let bounds = Bounds {
        faults,
        events,
        reader,
        ..SMALL
    };
    is_known("a follower", bounds, &[ONE_ANSWER, DONE_IS_WHOLE]);
}
