//! Everything holds within these bounds.

use streamweld_model::{Bounds, Faults};

use crate::holds;

const NONE: Faults = Faults::NONE;
const SMALL: Bounds = Bounds::SMALL;

#[test]
fn requests_without_an_answer_and_an_owner_that_dies() {
    let faults = Faults {
        unanswered: 1,
        crashes: 1,
        ..NONE
    };
    let reader = true;
    holds(
        "a death",
        Bounds {
            faults,
            reader,
            ..SMALL
        },
    );
}

#[test]
fn an_owner_that_stands_still_with_a_request_under_way() {
    let faults = Faults {
        unanswered: 1,
        pauses: 1,
        ..NONE
    };
    holds("a pause", Bounds { faults, ..SMALL });
}

#[test]
fn a_hand_over_that_is_cut_anywhere() {
    let faults = Faults {
        unanswered: 1,
        offers: 1,
        crashes: 1,
        ..NONE
    };
    let events = 1;
    holds(
        "a hand-over",
        Bounds {
            faults,
            events,
            ..SMALL
        },
    );
}

#[test]
fn a_stop_that_races_with_a_hand_over_and_a_death() {
    let faults = Faults {
        stops: 1,
        offers: 1,
        crashes: 1,
        ..NONE
    };
    let events = 1;
    holds(
        "a stop",
        Bounds {
            faults,
            events,
            ..SMALL
        },
    );
}

#[test]
fn two_survivors_at_once() {
    let faults = Faults {
        crashes: 1,
        unanswered: 1,
        ..NONE
    };
    let (replicas, events) = (3, 1);
    holds(
        "two survivors",
        Bounds {
            faults,
            replicas,
            events,
            ..SMALL
        },
    );
}

#[test]
fn a_lost_tail_and_an_owner_that_dies() {
    let faults = Faults {
        failovers: 1,
        crashes: 1,
        ..NONE
    };
    let reader = true;
    holds(
        "a lost tail",
        Bounds {
            faults,
            reader,
            ..SMALL
        },
    );
}

#[test]
fn a_lost_tail_and_an_owner_that_comes_back() {
    let faults = Faults {
        failovers: 1,
        pauses: 1,
        ..NONE
    };
    holds("a lost tail, and a pause", Bounds { faults, ..SMALL });
    let (events, reader) = (1, true);
    holds(
        "a lost tail, a pause, and a reader",
        Bounds {
            faults,
            events,
            reader,
            ..SMALL
        },
    );
}

#[test]
fn a_lost_tail_below_connections_that_stay() {
    let faults = Faults {
        fallbacks: 1,
        crashes: 1,
        ..NONE
    };
    holds("older data", Bounds { faults, ..SMALL });
}

#[test]
fn a_lost_tail_and_a_hand_over() {
    let faults = Faults {
        failovers: 1,
        offers: 1,
        ..NONE
    };
    holds("a lost tail, and a hand-over", Bounds { faults, ..SMALL });
}
