//! The same within wider bounds: `make model`.

use streamweld_model::{Bounds, Faults};

use crate::holds;

const NONE: Faults = Faults::NONE;
const SMALL: Bounds = Bounds::SMALL;

#[test]
#[ignore = "takes minutes: make model"]
fn everything_but_lost_tails() {
    let faults = Faults {
        unanswered: 1,
        crashes: 1,
        pauses: 1,
        stops: 1,
        ..NONE
    };
    let events = 1;
    holds(
        "everything but lost tails",
        Bounds {
            faults,
            events,
            ..SMALL
        },
    );
}

#[test]
#[ignore = "takes minutes: make model"]
fn three_replicas_hand_over_and_die() {
    let faults = Faults {
        crashes: 1,
        offers: 1,
        ..NONE
    };
    let (replicas, events) = (3, 1);
    holds(
        "three replicas",
        Bounds {
            faults,
            replicas,
            events,
            ..SMALL
        },
    );
}

#[test]
#[ignore = "takes minutes: make model"]
fn three_replicas_and_a_lost_tail() {
    let faults = Faults {
        failovers: 1,
        crashes: 1,
        ..NONE
    };
    let replicas = 3;
    holds(
        "three replicas, a lost tail",
        Bounds {
            faults,
            replicas,
            ..SMALL
        },
    );
}

#[test]
#[ignore = "takes minutes: make model"]
fn older_data_and_an_owner_that_comes_back() {
    let faults = Faults {
        fallbacks: 1,
        pauses: 1,
        ..NONE
    };
    holds("older data, and a pause", Bounds { faults, ..SMALL });
}

/// A writer with two appends under way, one of them on an older connection, and older data below both.
#[test]
#[ignore = "takes minutes: make model"]
fn two_records_that_have_no_place() {
    let faults = Faults {
        fallbacks: 1,
        pauses: 1,
        unanswered: 1,
        ..NONE
    };
    let events = 1;
    let bounds = Bounds {
        faults,
        events,
        ..SMALL
    };
    holds("two without a place", bounds);
}

#[test]
#[ignore = "takes minutes: make model"]
fn two_lost_tails_and_a_reader() {
    let faults = Faults {
        failovers: 2,
        pauses: 1,
        ..NONE
    };
    let (events, reader) = (1, true);
    holds(
        "two lost tails",
        Bounds {
            faults,
            events,
            reader,
            ..SMALL
        },
    );
}

#[test]
#[ignore = "takes minutes: make model"]
fn a_lost_tail_a_hand_over_and_a_death() {
    let faults = Faults {
        failovers: 1,
        offers: 1,
        crashes: 1,
        unanswered: 1,
        ..NONE
    };
    let events = 1;
    holds(
        "a lost tail, a hand-over and a death",
        Bounds {
            faults,
            events,
            ..SMALL
        },
    );
}
