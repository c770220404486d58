//! A journal that fails and comes back: nothing is shown under a sequence before it stands, and in the end
//! everything stands once, in order, under contiguous sequences.

use std::time::Duration;

use streamweld_generation::lifecycle::By;
use streamweld_journal::faulty::{Fault, Op};
use streamweld_journal::{Kind, Refusal, Seq};

use crate::stage::{Seen, Setup, Stage, bare, done, sequenced, terminal};

const A_WHILE: Duration = Duration::from_millis(1_900);

#[tokio::test(start_paused = true)]
async fn nothing_is_seen_before_it_stands_and_the_next_batch_gathers() {
    let stage = Stage::running(Setup::default()).await;
    let mut reader = stage.reader();
    let held = stage.faults.hold(Op::Append);
    for text in ["a", "b", "c"] {
        stage.events(&[text]);
        stage.settle().await;
    }
    held.reached().await;
    assert_eq!(reader.within(A_WHILE).await, Seen::default());
    assert_eq!(stage.window().committed(), Seq::FIRST);
    held.release();
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events, sequenced(&["a", "b", "c"]));
    assert_eq!(seen.end, done());
    // `a` went alone; what came while it was under way went together.
    assert_eq!(stage.faults.calls(Op::Append), 2);
    assert_eq!(stage.counters.unsequenced.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_time_in_which_the_process_stood_still_is_no_silence_of_the_journal() {
    let stage = Stage::running(Setup::default()).await;
    let mut reader = stage.reader();
    let held = stage.faults.hold(Op::Append);
    stage.events(&["a"]);
    stage.settle().await;
    held.reached().await;
    // All timers ring late, as after SIGCONT.
    tokio::time::advance(Duration::from_secs(20)).await;
    stage.settle().await;
    assert_eq!(reader.within(A_WHILE).await, Seen::default());
    assert!(!stage.window().is_exposed());
    // From then on it is one.
    let seen = reader.within(Duration::from_millis(200)).await;
    assert_eq!(seen.events, bare(&["a"]));
    held.release();
    stage.end();
    assert_eq!(reader.rest().await.end, done());
    assert_eq!(stage.counters.unsequenced.get(), 1);
}

/// Sends so many events of 100 KiB, as fast as they are read.
async fn long_events(stage: &Stage, count: usize) {
    let long = "x".repeat(100 << 10);
    for _ in 0..count {
        stage.events(&[&long]);
        stage.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_waits_with_its_journal_for_as_long_as_that_is_believed_in() {
    let stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    let held = stage.faults.hold(Op::Append);
    long_events(&stage, 8).await;
    held.reached().await;
    let waiting = stage.window().uncommitted();
    assert!((256 << 10..400 << 10).contains(&waiting), "{waiting} wait");
    held.release();
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events.len(), 8);
    assert!(seen.events.iter().all(|(_, seq)| seq.is_some()));
    assert_eq!(seen.end, done());
}

#[tokio::test(start_paused = true)]
async fn a_backend_does_not_wait_for_a_journal_that_is_away() {
    let stage = Stage::running(Setup::default()).await;
    let mut reader = stage.reader();
    stage.faults.set_down(true);
    long_events(&stage, 8).await;
    assert!(stage.window().uncommitted() < 400 << 10);
    let seen = reader.within(Duration::from_millis(2_100)).await;
    assert_eq!(seen.events.len(), 8);
    assert!(seen.events.iter().all(|(_, seq)| seq.is_none()));
    assert!(stage.window().uncommitted() > 800 << 10);
}

#[tokio::test(start_paused = true)]
async fn after_two_seconds_the_suffix_is_shown_without_ids_and_then_healed() {
    let mut stage = Stage::running(Setup::default()).await;
    let mut reader = stage.reader();
    stage.events(&["a"]);
    assert_eq!(reader.within(A_WHILE).await.events, sequenced(&["a"]));
    stage.faults.set_down(true);
    stage.events(&["b", "c"]);
    assert_eq!(reader.within(A_WHILE).await, Seen::default());
    let seen = reader.within(Duration::from_millis(200)).await;
    assert_eq!(seen.events, bare(&["b", "c"]));
    assert!(stage.window().is_exposed());
    // Live from here on.
    stage.events(&["d"]);
    let live = reader.within(Duration::from_millis(1)).await;
    assert_eq!(live.events, bare(&["d"]));

    stage.faults.set_down(false);
    assert_eq!(
        reader.within(Duration::from_secs(1)).await,
        Seen::default(),
        "what it saw is not shown again"
    );
    assert!(!stage.window().is_exposed());
    stage.events(&["e"]);
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events, [("e".to_owned(), Some(6))]);
    assert_eq!(seen.end, done());
    // Whoever comes back, from where it had ids last or from the start, sees everything once.
    let again = stage.reader_after(Seq::new(2)).rest().await;
    assert_eq!(
        again.events,
        sequenced(&["a", "b", "c", "d", "e"])[1..].to_vec()
    );
    stage.over().await.unwrap();
    let later = stage.later().await;
    assert_eq!(later.events, sequenced(&["a", "b", "c", "d", "e"]));
    assert_eq!(later.end, done());
    assert_eq!(stage.counters.unsequenced.get(), 1);
    assert_eq!(stage.counters.healed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_order_of_faults_within_patience_gives_the_exact_log() {
    let faults = [
        None,
        Some(Fault::UnknownApplied),
        Some(Fault::UnknownLost),
        Some(Fault::Refuse(Refusal::Unexpected { last: Seq::FIRST })),
        Some(Fault::Refuse(Refusal::Full)),
    ];
    for one in faults {
        for two in faults {
            for three in faults {
                for tail in [None, Some(Fault::Unreachable)] {
                    let case = format!("{one:?} {two:?} {three:?} {tail:?}");
                    let mut stage = Stage::running(Setup::default()).await;
                    let reader = stage.reader();
                    for (op, fault) in [
                        (Op::Append, one),
                        (Op::Append, two),
                        (Op::Finish, three),
                        (Op::Tail, tail),
                    ] {
                        match fault {
                            Some(fault) => stage.faults.script(op, [fault]),
                            None => stage.faults.pass(op),
                        }
                    }
                    for text in ["a", "b", "c"] {
                        stage.events(&[text]);
                        stage.settle().await;
                    }
                    stage.end();
                    let seen = reader.rest().await;
                    assert_eq!(seen.texts(), ["a", "b", "c"], "{case}");
                    for (at, (_, seq)) in (2..).zip(&seen.events) {
                        assert!(seq.is_none_or(|seq| seq == at), "{case}");
                    }
                    stage.over().await.unwrap();
                    let later = stage.later().await;
                    assert_eq!(later.events, sequenced(&["a", "b", "c"]), "{case}");
                    assert_eq!(later.end, done(), "{case}");
                }
            }
        }
    }
}

/// A disk that is full: reading back works, writing does not. Patience is with writes.
#[tokio::test(start_paused = true)]
async fn a_journal_that_reads_but_does_not_write_wears_patience_out() {
    let mut stage = Stage::running(Setup::default()).await;
    let mut reader = stage.reader();
    stage.faults.script(Op::Append, [Fault::UnknownLost; 20]);
    stage.events(&["a"]);
    assert_eq!(reader.within(A_WHILE).await, Seen::default());
    let calls = stage.faults.calls(Op::Append);
    assert!(calls <= 10, "asked {calls} times in two seconds");
    assert_eq!(
        reader.within(Duration::from_millis(200)).await.events,
        bare(&["a"])
    );
    stage.events(&["b"]);
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events, bare(&["b"]));
    stage.over().await.unwrap();
    assert_eq!(stage.later().await.events, sequenced(&["a", "b"]));
    assert_eq!(stage.counters.healed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_end_while_the_journal_is_away_is_shown_and_committed_later() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    stage.faults.set_down(true);
    stage.events(&["a"]);
    stage.end();
    let seen = reader.rest().await;
    assert_eq!(seen.events, bare(&["a"]));
    assert_eq!(seen.end, terminal(Kind::Done, None, false));
    stage.faults.set_down(false);
    stage.over().await.unwrap();
    let later = stage.later().await;
    assert_eq!(later.events, sequenced(&["a"]));
    assert_eq!(later.end, done());
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_journal_is_away_is_committed_once_it_is_back() {
    let mut stage = Stage::running(Setup::default()).await;
    let reader = stage.reader();
    stage.faults.set_down(true);
    stage.events(&["a"]);
    stage.settle().await;
    stage.handle.stop(By::Client);
    let seen = reader.rest().await;
    assert_eq!(seen.texts(), ["a"]);
    assert_eq!(seen.end, terminal(Kind::Stopped, None, false));
    assert!(
        stage.dropped.load(std::sync::atomic::Ordering::Acquire),
        "the backend was let go at once"
    );
    stage.faults.set_down(false);
    stage.over().await.unwrap();
    let later = stage.later().await;
    assert_eq!(later.events, sequenced(&["a"]));
    assert_eq!(later.end, terminal(Kind::Stopped, None, true));
}

#[tokio::test(start_paused = true)]
async fn a_full_journal_shows_the_suffix_at_once() {
    let mut stage = Stage::running(Setup::default()).await;
    let mut reader = stage.reader();
    stage
        .faults
        .script(Op::Append, [Fault::Refuse(Refusal::Full); 3]);
    stage.events(&["a"]);
    assert_eq!(
        reader.within(Duration::from_millis(1)).await.events,
        bare(&["a"])
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.events(&["b"]);
    stage.end();
    assert_eq!(reader.rest().await.events, [("b".to_owned(), Some(3))]);
    stage.over().await.unwrap();
    assert_eq!(stage.later().await.events, sequenced(&["a", "b"]));
}
