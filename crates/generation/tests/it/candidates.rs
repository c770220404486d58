//! Candidates that never become a generation leave no trace, and nobody waits for the journal on their account.

use streamweld_dialect::Dialect;
use streamweld_generation::lifecycle::By;
use streamweld_generation::{Head, Told};
use streamweld_journal::faulty::Op;
use streamweld_journal::{Closed, Found, Journal};

use crate::stage::{Ended, Reply, Setup, Stage};

fn known() -> Setup {
    Setup {
        dialect: Dialect::OpenAiChat,
        known: true,
        ..Setup::default()
    }
}

#[tokio::test(start_paused = true)]
async fn opening_overlaps_with_the_wait_for_the_head() {
    let mut stage = Stage::dispatched(known(), |_| {});
    stage.settle().await;
    assert_eq!(stage.faults.calls(Op::Open), 1);
    stage.reply(Reply::Other);
    assert!(matches!(stage.told().await, Told::Other(())));
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown));
    assert_eq!(stage.handle.head(), Head::Dropped);
    assert_eq!(stage.journal.usage().bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_request_opens_nothing_before_its_head() {
    let mut stage = Stage::dispatched(Setup::default(), |_| {});
    stage.settle().await;
    stage.reply(Reply::Other);
    stage.over().await.unwrap();
    assert_eq!(stage.faults.calls(Op::Open), 0);
}

#[tokio::test(start_paused = true)]
async fn the_other_answer_does_not_wait_for_a_journal_that_hangs() {
    let mut stage = Stage::dispatched(known(), |_| {});
    stage.settle().await;
    let held = stage.faults.hold(Op::Remove);
    let begun = tokio::time::Instant::now();
    stage.reply(Reply::Other);
    assert!(matches!(stage.told().await, Told::Other(())));
    assert!(begun.elapsed().is_zero(), "{:?}", begun.elapsed());
    held.release();
    stage.over().await.unwrap();
    assert!(matches!(stage.found().await, Found::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_head_cancels_the_call() {
    let mut stage = Stage::dispatched(known(), |_| {});
    stage.settle().await;
    stage.handle.stop(By::Client);
    assert!(matches!(stage.told().await, Told::Cancelled(_)));
    stage.over().await.unwrap();
    assert!(stage.dropped.load(std::sync::atomic::Ordering::Acquire));
    assert!(matches!(stage.found().await, Found::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_panic_closes_the_window_and_leaves_no_log() {
    let mut stage = Stage::dispatched(known(), |_| {});
    stage.settle().await;
    assert!(matches!(stage.found().await, Found::Here { .. }));
    let reader = stage.reader();
    stage.reply(Reply::Panic);
    assert!(stage.over().await.unwrap_err().is_panic());
    assert_eq!(reader.rest().await.end, Some(Ended::Closed(Closed::Failed)));
    stage.settle().await;
    assert!(stage.registry.is_empty());
    assert!(matches!(stage.found().await, Found::Unknown));
}
