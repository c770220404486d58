//! A journal that does not open: the request is served all the same, and nothing is left behind.

use std::time::Duration;

use streamweld_dialect::Dialect;
use streamweld_generation::{Durability, Read};
use streamweld_journal::faulty::{Fault, Op};
use streamweld_journal::{Found, Journal, Kind, Refusal};
use tokio::time::Instant;

use crate::stage::{Reply, Setup, Stage, terminal};

/// Serves one answer to its end from a journal that does not open.
async fn check_degraded(fault: Fault) {
    let mut stage = Stage::dispatched(Setup::default(), |faults| faults.script(Op::Open, [fault]));
    stage.reply(Reply::Stream);
    assert_eq!(stage.durability().await, Durability::Degraded, "{fault:?}");
    let reader = stage.reader();
    stage.events(&["a", "b"]);
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.texts(), ["a", "b"]);
    assert_eq!(seen.end, terminal(Kind::Done, None, true));
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown), "{fault:?}");
    let usage = stage.journal.usage();
    assert_eq!((usage.live, usage.finished, usage.bytes), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refused_open_degrades_and_leaves_the_journal_clean() {
    check_degraded(Fault::Refuse(Refusal::Full)).await;
    check_degraded(Fault::Refuse(Refusal::Ended)).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_of_unknown_outcome_degrades_and_leaves_the_journal_clean() {
    check_degraded(Fault::UnknownApplied).await;
    check_degraded(Fault::UnknownLost).await;
}

#[tokio::test(start_paused = true)]
async fn the_head_waits_a_quarter_of_a_second_for_the_journal_and_no_longer() {
    let mut stage = Stage::dispatched(Setup::default(), |_| {});
    let held = stage.faults.hold(Op::Open);
    // A journal that does not open may well not remove either.
    let removal = stage.faults.hold(Op::Remove);
    let begun = Instant::now();
    stage.reply(Reply::Stream);
    assert_eq!(stage.durability().await, Durability::Degraded);
    assert_eq!(begun.elapsed(), Duration::from_millis(250));
    let reader = stage.reader();
    stage.events(&["a"]);
    stage.end();
    assert_eq!(reader.rest().await.texts(), ["a"]);
    drop((held, removal));
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_opens_in_time_makes_it_durable() {
    let mut stage = Stage::dispatched(Setup::default(), |_| {});
    let held = stage.faults.hold(Op::Open);
    stage.reply(Reply::Stream);
    held.reached().await;
    tokio::time::advance(Duration::from_millis(200)).await;
    held.release();
    assert_eq!(stage.durability().await, Durability::Durable);
}

#[tokio::test(start_paused = true)]
async fn a_degraded_generation_ends_with_its_reader() {
    let mut stage = Stage::dispatched(Setup::default(), |faults| {
        faults.script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    });
    let reader = stage.reader();
    stage.reply(Reply::Stream);
    assert_eq!(stage.durability().await, Durability::Degraded);
    stage.events(&["a"]);
    stage.settle().await;
    assert!(!stage.dropped.load(std::sync::atomic::Ordering::Acquire));
    drop(reader);
    stage.over().await.unwrap();
    assert!(stage.dropped.load(std::sync::atomic::Ordering::Acquire));
    assert!(stage.registry.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_degraded_failure_is_still_a_failure() {
    let mut stage = Stage::dispatched(
        Setup {
            dialect: Dialect::OpenAiChat,
            ..Setup::default()
        },
        |faults| faults.script(Op::Open, [Fault::Unreachable]),
    );
    stage.reply(Reply::Stream);
    assert_eq!(stage.durability().await, Durability::Degraded);
    let reader = stage.reader();
    stage.events(&[r#"{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}"#]);
    stage.read(Read::Cut("reset".to_owned()));
    let seen = reader.rest().await;
    assert_eq!(seen.end, terminal(Kind::Error, Some("truncated"), true));
}
