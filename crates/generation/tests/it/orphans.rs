//! The orphan policy to the millisecond, on a paused clock.

use std::sync::atomic::Ordering;
use std::time::Duration;

use streamweld_generation::OrphanPolicy;
use streamweld_journal::Kind;
use tokio::time::{Instant, sleep};

use crate::stage::{Setup, Stage, done, sequenced, terminal};

fn policy(policy: OrphanPolicy) -> Setup {
    Setup {
        policy,
        ..Setup::default()
    }
}

fn cancel_after_a_minute() -> Setup {
    policy(OrphanPolicy::CancelAfter(Duration::from_secs(60)))
}

async fn cancelled(stage: &mut Stage) {
    stage.over().await.unwrap();
    assert!(stage.dropped.load(Ordering::Acquire));
    let later = stage.later().await;
    assert_eq!(later.events, sequenced(&["a"]));
    assert_eq!(
        later.end,
        terminal(Kind::Error, Some("orphan_cancelled"), true)
    );
}

#[tokio::test(start_paused = true)]
async fn cancel_is_at_once() {
    let mut stage = Stage::running(policy(OrphanPolicy::Cancel)).await;
    let reader = stage.reader();
    stage.events(&["a"]);
    stage.settle().await;
    let left = Instant::now();
    drop(reader);
    cancelled(&mut stage).await;
    assert!(left.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn cancel_after_counts_from_the_last_reader() {
    let mut stage = Stage::running(cancel_after_a_minute()).await;
    let (one, two) = (stage.reader(), stage.reader());
    stage.events(&["a"]);
    drop(one);
    sleep(Duration::from_secs(100)).await;
    assert!(!stage.dropped.load(Ordering::Acquire), "one is still there");
    let left = Instant::now();
    drop(two);
    cancelled(&mut stage).await;
    assert_eq!(left.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_back_in_time_ends_the_wait_for_as_long_as_it_stays() {
    let mut stage = Stage::running(cancel_after_a_minute()).await;
    drop(stage.reader());
    stage.events(&["a"]);
    sleep(Duration::from_secs(59)).await;
    let back = stage.reader();
    sleep(Duration::from_secs(600)).await;
    assert!(!stage.dropped.load(Ordering::Acquire));
    let left = Instant::now();
    drop(back);
    cancelled(&mut stage).await;
    assert_eq!(left.elapsed().as_secs(), 60, "the whole time counts anew");
}

#[tokio::test(start_paused = true)]
async fn by_default_nobody_has_to_be_there() {
    let mut stage = Stage::running(Setup::default()).await;
    drop(stage.reader());
    stage.events(&["a"]);
    sleep(Duration::from_secs(3_000)).await;
    stage.events(&["b"]);
    stage.end();
    stage.over().await.unwrap();
    let later = stage.later().await;
    assert_eq!(later.events, sequenced(&["a", "b"]));
    assert_eq!(later.end, done());
}

#[tokio::test(start_paused = true)]
async fn nothing_lives_for_longer_than_an_hour() {
    let mut stage = Stage::running(Setup::default()).await;
    let begun = Instant::now();
    let _reader = stage.reader();
    stage.events(&["a"]);
    stage.over().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 3_600);
    assert_eq!(
        stage.later().await.end,
        terminal(Kind::Error, Some("max_duration"), true)
    );
}
