//! A journal that does not come back, or holds something else: readers that are attached see the true end, nobody
//! is ever shown a part as the whole, and nothing is begun anew.

use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use streamweld_generation::HealBounds;
use streamweld_generation::lifecycle::By;
use streamweld_journal::faulty::{Fault, Op};
use streamweld_journal::{Closed, Epoch, Found, Journal, Kind, Refusal};

use crate::stage::{Ended, Setup, Stage, bare, sequenced, terminal};

fn bounds(change: impl FnOnce(&mut HealBounds)) -> Setup {
    let mut heal = HealBounds::default();
    change(&mut heal);
    Setup {
        heal,
        ..Setup::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_vanished_log_is_not_begun_anew_and_is_found_by_nobody_later() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    stage.events(&["a"]);
    stage.settle().await;
    stage.faults.script(Op::Append, [Fault::Vanish]);
    stage.events(&["b"]);
    stage.settle().await;
    stage.events(&["c"]);
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events, [sequenced(&["a"]), bare(&["b", "c"])].concat());
    assert_eq!(seen.end, terminal(Kind::Done, None, false));
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown));
    assert_eq!(stage.window().closed(), Some(Closed::Incomplete));
    assert!(stage.handle.has_failed(), "no repeat joins what is left");
    assert_eq!(stage.faults.calls(Op::Open), 1);
    assert_eq!(stage.journal.usage().live, 0);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_vanished_behind_an_unknown_outcome_is_given_up_too() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    stage.faults.script(Op::Append, [Fault::UnknownLost]);
    stage.faults.script(Op::Tail, [Fault::Vanish]);
    stage.events(&["a"]);
    stage.settle().await;
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events, bare(&["a"]));
    assert_eq!(seen.end, terminal(Kind::Done, None, false));
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown));
}

/// Somebody else has the log: its readers are sent away, the backend is let go, and nothing more is written.
async fn check_lost(refusal: Refusal, op: Op) {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    stage.events(&["a"]);
    stage.settle().await;
    stage.faults.script(op, [Fault::Refuse(refusal)]);
    if op == Op::Append {
        stage.events(&["b"]);
    } else {
        stage.end();
    }
    let seen = reader.rest().await;
    assert_eq!(seen.events, sequenced(&["a"]));
    assert_eq!(seen.end, Some(Ended::Closed(Closed::Fenced)), "{refusal:?}");
    stage.over().await.unwrap();
    assert!(stage.dropped.load(Ordering::Acquire));
    assert!(stage.registry.is_empty());
    assert!(stage.handle.has_failed());
    let calls = stage.faults.calls(Op::Append) + stage.faults.calls(Op::Finish);
    assert_eq!(calls, 2, "{refusal:?}");
    // Whoever has it now counts its end.
    let (mut text, mut registry) = (String::new(), Registry::default());
    stage.counters.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    assert!(!text.contains("generations_ended_total{"), "{text}");
    let reason = match refusal {
        Refusal::Fenced { .. } => "fenced",
        _ => "ended",
    };
    let failure = format!("append_failures_total{{reason=\"{reason}\"}} 1");
    assert!(text.contains(&failure), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_log_with_another_writer_is_left_alone() {
    let epoch = Epoch::FIRST.fresh();
    for op in [Op::Append, Op::Finish] {
        check_lost(Refusal::Fenced { epoch }, op).await;
        check_lost(Refusal::Ended, op).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_lost_while_a_stop_settles_ends_the_producer() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    let held = stage.faults.hold(Op::Append);
    stage
        .faults
        .script(Op::Append, [Fault::Refuse(Refusal::Ended)]);
    stage.events(&["a"]);
    held.reached().await;
    stage.handle.stop(By::Client);
    stage.settle().await;
    held.release();
    assert_eq!(reader.rest().await.end, Some(Ended::Closed(Closed::Fenced)));
    stage.over().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_log_that_vanishes_while_a_stop_settles_is_closed_as_incomplete() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    let held = stage.faults.hold(Op::Append);
    stage.faults.script(Op::Append, [Fault::Vanish]);
    stage.events(&["a"]);
    held.reached().await;
    stage.handle.stop(By::Client);
    stage.settle().await;
    held.release();
    let seen = reader.rest().await;
    assert_eq!(seen.events, bare(&["a"]));
    assert_eq!(seen.end, terminal(Kind::Stopped, None, false));
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown));
}

/// The journal stays away past a bound, and comes back when everything is over.
async fn check_incomplete(setup: Setup, end_first: bool) {
    let mut stage = Stage::running(setup).await;
    let reader = stage.reader();
    stage.events(&["a"]);
    stage.settle().await;
    stage.faults.set_down(true);
    stage.events(&["b"]);
    if end_first {
        stage.end();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    if !end_first {
        stage.events(&["c", &"x".repeat(300_000)]);
        stage.settle().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        stage.events(&["d"]);
        stage.end();
    }
    let seen = reader.rest().await;
    assert_eq!(seen.events[0], ("a".to_owned(), Some(2)));
    assert!(seen.events[1..].iter().all(|(_, seq)| seq.is_none()));
    let last = if end_first { "b" } else { "d" };
    assert_eq!(seen.texts().last(), Some(&last), "the true end");
    assert_eq!(seen.end, terminal(Kind::Done, None, false));

    // Longer than any reader may linger: the terminal waits for the journal, not for them.
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.faults.set_down(false);
    stage.over().await.unwrap();
    let later = stage.later().await;
    assert_eq!(later.events, sequenced(&["a"]));
    assert_eq!(
        later.end,
        terminal(Kind::Error, Some("journal_incomplete"), true)
    );
    assert!(stage.handle.has_failed());
    assert!(!stage.window().is_exposed(), "nothing is unsequenced now");
    assert_eq!(stage.counters.healed.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_suffix_that_waited_too_long_is_given_up() {
    let setup = bounds(|heal| heal.longest = Duration::from_secs(5));
    check_incomplete(setup, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_waited_too_long_is_given_up_with_its_suffix() {
    let setup = bounds(|heal| heal.longest = Duration::from_secs(5));
    check_incomplete(setup, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_suffix_that_is_too_large_is_given_up() {
    check_incomplete(bounds(|heal| heal.per_generation = 100_000), false).await;
}

#[tokio::test(start_paused = true)]
async fn suffixes_that_are_too_large_together_are_given_up() {
    check_incomplete(bounds(|heal| heal.total = 100_000), false).await;
}

/// What came before readers were shown anything counts as well.
#[tokio::test(start_paused = true)]
async fn a_suffix_that_grew_within_patience_counts() {
    let mut stage = Stage::running(bounds(|heal| heal.per_generation = 100_000)).await;
    let reader = stage.reader();
    stage.faults.set_down(true);
    stage.events(&[&"x".repeat(300_000)]);
    stage.settle().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.end();
    assert_eq!(reader.rest().await.end, terminal(Kind::Done, None, false));
    stage.faults.set_down(false);
    stage.over().await.unwrap();
    assert_eq!(
        stage.later().await.end,
        terminal(Kind::Error, Some("journal_incomplete"), true)
    );
}

#[tokio::test(start_paused = true)]
async fn within_the_bounds_nothing_is_given_up() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    stage.faults.set_down(true);
    stage.events(&[&"x".repeat(300_000)]);
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.end, terminal(Kind::Done, None, false));
    tokio::time::sleep(Duration::from_secs(590)).await;
    stage.faults.set_down(false);
    stage.over().await.unwrap();
    assert_eq!(stage.later().await.end, terminal(Kind::Done, None, true));
}
