//! Events in, states out; and random events against what must always hold.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

const RULES: Rules = Rules {
    failures: 3,
    successes: 2,
    failed_attempts: 3,
    first_quarantine: Duration::from_secs(5),
    longest_quarantine: Duration::from_secs(60),
};

const REFUSED: FailureClass = FailureClass::Request(ErrorKind::ConnectRefused);
const GOOD: Event = Event::Probe(Ok(()));
const BAD: Event = Event::Probe(Err(FailureClass::ProbeStatus));
const SERVED: Event = Event::Attempt(Ok(()));
const FAILED: Event = Event::Attempt(Err(FailureClass::ServerError));
const REFUSED_ATTEMPT: Event = Event::Attempt(Err(REFUSED));

/// One step of a story: an event, some seconds after the one before.
#[derive(Debug, Clone, Copy)]
struct Step(u64, Event);

/// What is shown after each step, `.` for no change.
fn run(mut status: Status, steps: &[Step], start: Instant) -> Vec<&'static str> {
    let mut now = start;
    let mut shown = Vec::new();
    for &Step(seconds, event) in steps {
        now += Duration::from_secs(seconds);
        let before = status.shown();
        let moved = status.on(event, now);
        match moved {
            None => assert_eq!(status.shown(), before, "{event:?}"),
            Some(moved) => {
                assert_eq!((moved.from, moved.to), (before, status.shown()));
                assert_eq!(status.since(), now);
            }
        }
        shown.push(moved.map_or(".", |moved| moved.to.as_str()));
    }
    shown
}

#[track_caller]
fn check(events: &[Event], expected: &[&str]) {
    let steps: Vec<_> = events.iter().map(|&event| Step(1, event)).collect();
    check_timed(&steps, expected);
}

#[track_caller]
fn check_timed(steps: &[Step], expected: &[&str]) {
    let start = Instant::now();
    let status = Status::starting(RULES, start);
    assert_eq!(run(status, steps, start), expected);
}

#[test]
fn one_good_probe_ends_the_start() {
    check(&[GOOD], &["up"]);
    check(&[BAD, BAD, GOOD], &[".", ".", "up"]);
}

#[test]
fn an_attempt_that_is_served_ends_it_too() {
    check(&[BAD, SERVED], &[".", "up"]);
}

#[test]
fn what_never_answers_goes_down_from_the_start() {
    check(&[BAD, BAD, BAD], &[".", ".", "down"]);
}

#[test]
fn only_failures_in_a_row_take_a_member_down() {
    check(
        &[GOOD, BAD, BAD, GOOD, BAD, BAD, BAD, BAD],
        &["up", ".", ".", ".", ".", ".", "down", "."],
    );
}

#[test]
fn only_successes_in_a_row_bring_it_back() {
    check(
        &[GOOD, BAD, BAD, BAD, GOOD, BAD, GOOD, GOOD],
        &["up", ".", ".", "down", ".", ".", ".", "up"],
    );
}

/// A busy engine may miss probes and still serve; one that asks to be left alone by its health
/// says so while it serves, and is believed.
#[test]
fn served_attempts_do_not_outweigh_probes() {
    check(
        &[GOOD, BAD, SERVED, BAD, SERVED, BAD, SERVED],
        &["up", ".", ".", ".", ".", "down", "."],
    );
}

#[test]
fn failed_attempts_in_a_row_mean_quarantine() {
    check(
        &[GOOD, FAILED, FAILED, SERVED, FAILED, FAILED, FAILED],
        &["up", ".", ".", ".", ".", ".", "quarantined"],
    );
}

#[test]
fn a_refused_connection_means_it_at_once() {
    check(&[GOOD, REFUSED_ATTEMPT], &["up", "quarantined"]);
    check(&[REFUSED_ATTEMPT], &["quarantined"]);
}

#[test]
fn good_probes_do_not_end_a_quarantine_but_time_does() {
    check_timed(
        &[
            Step(0, GOOD),
            Step(0, REFUSED_ATTEMPT),
            Step(1, GOOD),
            Step(1, GOOD),
            Step(1, SERVED),
            Step(1, Event::Elapsed),
            Step(1, Event::Elapsed),
        ],
        &["up", "quarantined", ".", ".", ".", ".", "up"],
    );
}

#[test]
fn bad_probes_take_a_quarantined_member_down() {
    check(
        &[GOOD, BAD, REFUSED_ATTEMPT, BAD, BAD],
        &["up", ".", "quarantined", ".", "down"],
    );
}

#[test]
fn after_a_quarantine_one_failure_is_enough_and_one_success_too_much_for_that() {
    let quarantined = [Step(0, GOOD), Step(0, REFUSED_ATTEMPT)];
    let again = [Step(5, Event::Elapsed), Step(1, FAILED)];
    check_timed(
        &[quarantined, again].concat(),
        &["up", "quarantined", "up", "quarantined"],
    );
    let served = [Step(5, SERVED), Step(0, SERVED), Step(1, FAILED)];
    check_timed(
        &[&quarantined[..], &served].concat(),
        &["up", "quarantined", "up", ".", "."],
    );
}

/// How long each quarantine lasts that begins `after` seconds after the one before has ended.
fn quarantines(after: u64, count: usize) -> Vec<u64> {
    let mut now = Instant::now();
    let mut status = Status::unprobed(RULES, now);
    (0..count)
        .map(|_| {
            now += Duration::from_secs(after);
            status.on(REFUSED_ATTEMPT, now);
            (1..)
                .find(|_| {
                    now += Duration::from_secs(1);
                    status.on(Event::Elapsed, now).is_some()
                })
                .unwrap()
        })
        .collect()
}

#[test]
fn quarantines_that_follow_closely_get_longer_up_to_a_bound() {
    assert_eq!(quarantines(1, 6), [5, 10, 20, 40, 60, 60]);
    assert_eq!(quarantines(7, 5), [5, 5, 5, 5, 5]);
}

#[test]
fn a_quarantine_that_begins_as_the_last_one_ends_is_another_one() {
    let start = Instant::now();
    let mut status = Status::unprobed(RULES, start);
    status.on(REFUSED_ATTEMPT, start);
    let later = start + RULES.first_quarantine;
    assert_eq!(status.on(FAILED, later), None);
    assert_eq!(status.shown(), MemberState::Quarantined);
    assert_eq!(status.since(), later);
}

/// Ten streams of a backend that is killed fail in the same moment.
#[test]
fn failures_of_one_moment_count_as_one() {
    let now = Instant::now();
    let mut status = Status::unprobed(RULES, now);
    for _ in 0..10 {
        status.on(REFUSED_ATTEMPT, now);
    }
    let released = status.on(Event::Elapsed, now + RULES.first_quarantine);
    assert_eq!(released.unwrap().to, MemberState::Up);
}

#[test]
fn draining_is_idempotent_and_hides_health_without_forgetting_it() {
    use Event::{Drain, Undrain};
    check(
        &[GOOD, Undrain, Drain, Drain, BAD, BAD, BAD, Undrain, Undrain],
        &["up", ".", "draining", ".", ".", ".", ".", "down", "."],
    );
    check(&[Drain, GOOD, Undrain], &["draining", ".", "up"]);
}

#[test]
fn a_member_that_dns_drops_goes_when_it_is_idle() {
    use Event::{Idle, Left, Named};
    check(
        &[GOOD, Idle, Left, Left, Idle, Named, GOOD, Idle],
        &["up", ".", "draining", ".", "gone", ".", ".", "."],
    );
}

#[test]
fn one_that_dns_names_again_in_time_stays_what_it_was() {
    use Event::{Drain, Idle, Left, Named, Undrain};
    check(&[GOOD, Left, Named, Idle], &["up", "draining", "up", "."]);
    check(
        &[GOOD, Drain, Left, Named, Idle, Undrain],
        &["up", "draining", ".", ".", ".", "up"],
    );
    check(
        &[GOOD, Left, Drain, Undrain, Named],
        &["up", "draining", ".", ".", "up"],
    );
}

#[test]
fn an_operators_drain_alone_never_makes_a_member_go() {
    use Event::{Drain, Idle, Undrain};
    check(
        &[GOOD, Drain, Idle, Undrain],
        &["up", "draining", ".", "up"],
    );
}

#[test]
fn without_probes_a_member_is_up_from_the_start() {
    let start = Instant::now();
    let steps = [Step(0, FAILED), Step(0, REFUSED_ATTEMPT), Step(5, SERVED)];
    let shown = run(Status::unprobed(RULES, start), &steps, start);
    assert_eq!(shown, [".", "quarantined", "up"]);
}

#[test]
fn the_last_failure_is_remembered() {
    let now = Instant::now();
    let mut status = Status::starting(RULES, now);
    assert_eq!(status.last_failure(), None);
    let later = now + Duration::from_secs(1);
    status.on(REFUSED_ATTEMPT, later);
    status.on(GOOD, later + Duration::from_secs(1));
    assert_eq!(status.last_failure(), Some((REFUSED, later)));
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(GOOD),
        6 => Just(BAD),
        4 => Just(SERVED),
        4 => Just(FAILED),
        1 => Just(REFUSED_ATTEMPT),
        1 => Just(Event::Drain),
        1 => Just(Event::Undrain),
        1 => Just(Event::Left),
        1 => Just(Event::Named),
        1 => Just(Event::Idle),
        2 => Just(Event::Elapsed),
    ]
}

/// Whether the latest `count` probes all came out as `good`.
fn latest(probes: &[bool], count: u32, good: bool) -> bool {
    let count = count as usize;
    probes.len() >= count && probes.iter().rev().take(count).all(|&it| it == good)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever happens in whatever order, what is shown can be told from the history alone.
    #[test]
    fn every_history_keeps_the_promises(
        steps in prop::collection::vec((0u64..8, event()), 0..60),
    ) {
        let mut now = Instant::now();
        let mut status = Status::starting(RULES, now);
        let mut probes = Vec::new();
        let (mut drained, mut left, mut gone) = (false, false, false);
        let mut down = false;

        for (seconds, event) in steps {
            now += Duration::from_secs(seconds);
            let from = status.shown();
            status.on(event, now);
            let to = status.shown();
            if gone {
                prop_assert_eq!(to, MemberState::Gone);
                continue;
            }
            match event {
                Event::Probe(result) => probes.push(result.is_ok()),
                Event::Drain => drained = true,
                Event::Undrain => drained = false,
                Event::Left => left = true,
                Event::Named => left = false,
                Event::Idle => gone = left,
                Event::Attempt(_) | Event::Elapsed => {}
            }
            // Down only by, and always by, so many bad probes; up again only by so many good ones.
            if latest(&probes, RULES.failures, false) {
                down = true;
            } else if down && latest(&probes, RULES.successes, true) {
                down = false;
            }

            let wanted = match () {
                () if gone => Some(MemberState::Gone),
                () if drained || left => Some(MemberState::Draining),
                () if down => Some(MemberState::Down),
                () => None,
            };
            match wanted {
                Some(wanted) => prop_assert_eq!(to, wanted),
                None => prop_assert!(matches!(
                    to,
                    MemberState::Starting | MemberState::Up | MemberState::Quarantined
                )),
            }
            // Nobody starts twice, unless the start was only hidden.
            if to == MemberState::Starting && from != to {
                prop_assert_eq!(from, MemberState::Draining);
            }
            // Quarantine begins with a failed attempt, unless it was only hidden, and ends in time.
            if to == MemberState::Quarantined {
                prop_assert!(now - status.since() < RULES.longest_quarantine);
                let failed = matches!(event, Event::Attempt(Err(_)));
                prop_assert!(failed || from == to || from == MemberState::Draining);
            }
        }
    }
}
