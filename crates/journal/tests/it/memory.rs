//! The memory backend beyond the contract: time and caps.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use streamweld_journal::{
    Claim, Found, Journal, Kind, Memory, MemoryConfig, Open, OpenRefusal, Outcome, Refusal, Seq,
    Step, StreamId, Usage, WindowConfig,
};

use crate::story::{PLAIN, Story, at, block_on};

const ACCESS: [u8; 32] = [3; 32];
const RETENTION: u64 = 600;

fn small(max_total: u64) -> Memory {
    let (retention, tombstone) = (
        Duration::from_secs(RETENTION),
        Duration::from_secs(RETENTION),
    );
    Memory::new(MemoryConfig {
        max_total,
        retention,
        tombstone,
        ..MemoryConfig::default()
    })
}

fn open(journal: &Memory) -> (Story, Outcome<OpenRefusal>) {
    let story = Story::untold(WindowConfig::default());
    let outcome = block_on(journal.open(&story.window, &Open { access: ACCESS }, at(0)));
    if outcome == Outcome::Yes {
        story.commit(1);
    }
    (story, outcome)
}

fn opened(journal: &Memory) -> Story {
    let (story, outcome) = open(journal);
    assert_eq!(outcome, Outcome::Yes);
    story
}

fn append(journal: &Memory, story: &Story, bytes: usize) -> Outcome<Refusal> {
    let expected = story.window.committed();
    story.events(&[&"x".repeat(bytes)]);
    let through = story.window.received();
    let outcome = block_on(journal.append(&story.window, expected, through));
    if outcome == Outcome::Yes {
        story.window.commit(through);
    }
    outcome
}

fn finish(journal: &Memory, story: &Story, secs: u64) {
    let expected = story.window.committed();
    story.terminal(Kind::Done, "");
    assert_eq!(
        block_on(journal.finish(&story.window, expected, at(secs))),
        Outcome::Yes
    );
    story.commit_all();
}

/// A finished generation of about this size.
fn finished(journal: &Memory, bytes: usize) -> Story {
    let story = opened(journal);
    assert_eq!(append(journal, &story, bytes), Outcome::Yes);
    finish(journal, &story, 0);
    story
}

fn find(journal: &Memory, id: StreamId, secs: u64) -> &'static str {
    match block_on(journal.find(id, at(secs))).expect("memory is never out of reach") {
        Found::Here { access, .. } => {
            assert_eq!(access, ACCESS);
            "here"
        }
        Found::Expired { access } => {
            assert_eq!(access, ACCESS);
            "expired"
        }
        Found::Unknown => "unknown",
    }
}

#[test]
fn a_finished_generation_expires_and_is_then_forgotten() {
    let journal = small(1 << 20);
    let id = finished(&journal, 10).window.id();
    for (secs, expected) in [
        (0, "here"),
        (599, "here"),
        (600, "expired"),
        (1199, "expired"),
        (1200, "unknown"),
    ] {
        assert_eq!(find(&journal, id, secs), expected, "after {secs} s");
    }
}

#[test]
fn finding_late_needs_no_sweep_in_between() {
    let journal = small(1 << 20);
    let id = finished(&journal, 10).window.id();
    assert_eq!(find(&journal, id, 5_000), "unknown");
    assert_eq!(journal.usage(), Usage::default());
}

#[test]
fn sweeping_lets_go_of_what_is_due() {
    let journal = small(1 << 20);
    let old = finished(&journal, 10);
    let live = opened(&journal);
    let young = opened(&journal);
    finish(&journal, &young, 300);
    journal.sweep(at(600));
    let usage = journal.usage();
    assert_eq!(
        (
            usage.live,
            usage.finished,
            usage.tombstones,
            usage.evicted_early
        ),
        (1, 1, 1, 0)
    );
    assert_eq!(find(&journal, old.window.id(), 600), "expired");
    journal.sweep(at(1200));
    let usage = journal.usage();
    assert_eq!((usage.live, usage.finished, usage.tombstones), (1, 0, 1));
    journal.sweep(at(100_000));
    let usage = journal.usage();
    assert_eq!((usage.live, usage.finished, usage.tombstones), (1, 0, 0));
    assert_eq!(find(&journal, live.window.id(), 100_000), "here");
}

#[test]
fn a_reader_of_an_expired_generation_finishes_undisturbed() {
    let journal = small(1 << 20);
    let story = finished(&journal, 10);
    let mut reader = story.read(0, PLAIN);
    journal.sweep(at(10_000));
    assert_eq!(find(&journal, story.window.id(), 10_000), "unknown");
    reader
        .gets(&story.wires(&[(2, &"x".repeat(10))]), 2)
        .ends(3, true);
}

#[test]
fn bytes_are_what_the_windows_hold() {
    let journal = small(1 << 20);
    assert_eq!(journal.usage().bytes, 0);
    let (one, two) = (opened(&journal), opened(&journal));
    let besides = journal.usage().bytes - one.window.held() as u64 - two.window.held() as u64;
    assert!(besides < 2 * 200, "{besides} bytes beside the windows");
    for bytes in [10, 5_000, 100_000, 3] {
        assert_eq!(append(&journal, &one, bytes), Outcome::Yes);
        let held = (one.window.held() + two.window.held()) as u64;
        assert_eq!(journal.usage().bytes, held + besides);
    }
    finish(&journal, &one, 0);
    assert_eq!(
        journal.usage().bytes,
        (one.window.held() + two.window.held()) as u64 + besides
    );
    block_on(journal.remove(one.window.id()));
    block_on(journal.remove(two.window.id()));
    assert_eq!(journal.usage(), Usage::default());
}

#[test]
fn the_ring_gives_its_bytes_back_at_once() {
    let journal = small(1 << 20);
    let story = Story::untold(WindowConfig { max_bytes: 20_000 });
    let outcome = block_on(journal.open(&story.window, &Open { access: ACCESS }, at(0)));
    assert_eq!(outcome, Outcome::Yes);
    story.commit(1);
    for _ in 0..100 {
        assert_eq!(append(&journal, &story, 1_000), Outcome::Yes);
    }
    assert!(journal.usage().bytes < 21_000);
}

#[test]
fn what_is_kept_elsewhere_counts() {
    let journal = small(1 << 20);
    let old = finished(&journal, 600_000);
    let before = journal.usage().bytes;
    let kept = journal.keep(100_000).expect("there is room");
    assert_eq!(journal.usage().bytes, before + 100_000);
    assert_eq!(find(&journal, old.window.id(), 0), "here");
    // What has ended goes for it, and what runs does not.
    let more = journal.keep(400_000).expect("there can be room");
    assert_eq!(find(&journal, old.window.id(), 0), "expired");
    drop((kept, more));
    let live = opened(&journal);
    assert_eq!(append(&journal, &live, 800_000), Outcome::Yes);
    let before = journal.usage().bytes;
    assert!(journal.keep(400_000).is_none());
    // More than half is nobody's, whatever is free.
    block_on(journal.remove(live.window.id()));
    assert!(journal.keep(600_000).is_none());
    assert!(journal.usage().bytes < before);
    let kept = journal.keep(500_000);
    assert!(kept.is_some_and(|kept| kept.bytes() == 500_000));
}

#[test]
fn the_least_recently_read_goes_first() {
    let journal = small(400_000);
    let stories: Vec<Story> = (0..3).map(|_| finished(&journal, 100_000)).collect();
    let ids: Vec<StreamId> = stories.iter().map(|story| story.window.id()).collect();
    assert_eq!(find(&journal, ids[0], 1), "here");
    let live = opened(&journal);
    assert_eq!(append(&journal, &live, 150_000), Outcome::Yes);
    assert_eq!(find(&journal, ids[1], 1), "expired");
    assert_eq!(find(&journal, ids[0], 1), "here");
    assert_eq!(find(&journal, ids[2], 1), "here");
    let usage = journal.usage();
    assert_eq!(
        (
            usage.live,
            usage.finished,
            usage.tombstones,
            usage.evicted_early
        ),
        (1, 2, 1, 1)
    );
}

#[test]
fn what_comes_with_the_end_makes_room_as_well() {
    let journal = small(400_000);
    let old = finished(&journal, 150_000).window.id();
    let story = opened(&journal);
    story.events(&[&"x".repeat(300_000)]);
    finish(&journal, &story, 0);
    assert!(journal.usage().bytes <= 400_000);
    assert_eq!(find(&journal, old, 1), "expired");
    assert_eq!(find(&journal, story.window.id(), 1), "here");
}

#[test]
fn an_evicted_generation_is_remembered_as_long_as_it_would_have_been() {
    let journal = small(200_000);
    let id = finished(&journal, 100_000).window.id();
    let live = opened(&journal);
    assert_eq!(append(&journal, &live, 150_000), Outcome::Yes);
    assert_eq!(find(&journal, id, 1_199), "expired");
    assert_eq!(find(&journal, id, 1_200), "unknown");
}

#[test]
fn live_generations_are_never_evicted() {
    let journal = small(200_000);
    let one = opened(&journal);
    assert_eq!(append(&journal, &one, 150_000), Outcome::Yes);
    let two = opened(&journal);
    assert_eq!(append(&journal, &two, 150_000), Outcome::No(Refusal::Full));
    assert_eq!(open(&journal).1, Outcome::No(OpenRefusal::Full));
    assert_eq!(find(&journal, one.window.id(), 0), "here");
    assert_eq!(journal.usage().evicted_early, 0);
    // What was refused was not appended: the same batch goes in once there is room.
    finish(&journal, &one, 0);
    let (expected, through) = (Seq::FIRST, Seq::new(2));
    assert_eq!(
        block_on(journal.append(&two.window, expected, through)),
        Outcome::Yes
    );
    assert_eq!(find(&journal, one.window.id(), 0), "expired");
}

#[test]
fn a_full_journal_still_takes_terminals() {
    let journal = small(100_000);
    let story = opened(&journal);
    assert_eq!(
        append(&journal, &story, 150_000),
        Outcome::No(Refusal::Full)
    );
    story.window.abandon();
    finish(&journal, &story, 0);
    assert_eq!(find(&journal, story.window.id(), 0), "here");
}

#[test]
fn tombstones_go_before_anything_is_refused() {
    let journal = small(20_000);
    for _ in 0..1_000 {
        finished(&journal, 100);
    }
    let live = opened(&journal);
    assert!(journal.usage().tombstones > 0);
    assert_eq!(append(&journal, &live, 15_000), Outcome::Yes);
    assert!(journal.usage().bytes <= 20_000);
}

#[test]
fn an_id_is_not_opened_again_while_it_is_remembered() {
    let journal = small(1 << 20);
    let story = finished(&journal, 10);
    journal.sweep(at(600));
    let outcome = block_on(journal.open(&story.window, &Open { access: ACCESS }, at(600)));
    assert_eq!(outcome, Outcome::No(OpenRefusal::Exists));
}

#[test]
fn a_closed_window_without_a_terminal_can_be_removed() {
    let journal = small(1 << 20);
    let story = opened(&journal);
    story.window.close(streamweld_journal::Closed::Failed);
    let mut reader = story.read(1, PLAIN);
    block_on(journal.remove(story.window.id()));
    assert!(matches!(reader.poll(1), Poll::Ready(Step::Closed(_))));
    assert_eq!(journal.usage(), Usage::default());
}

#[test]
fn a_claim_that_is_never_opened_lapses() {
    let journal = small(1 << 20);
    let claim = |id, secs| block_on(journal.claim([1; 32], id, at(secs))).unwrap();
    let (one, two) = (StreamId::generate(at(0)), StreamId::generate(at(0)));
    assert_eq!(claim(one, 0), Claim::Won);
    assert_eq!(
        claim(two, 29),
        Claim::Taken {
            id: one,
            body: None
        }
    );
    assert_eq!(claim(two, 30), Claim::Won);
    assert_eq!(
        claim(one, 31),
        Claim::Taken {
            id: two,
            body: None
        }
    );
    // Asking again counts anew.
    assert_eq!(claim(two, 50), Claim::Won);
    assert_eq!(
        claim(one, 79),
        Claim::Taken {
            id: two,
            body: None
        }
    );
    journal.sweep(at(80));
    assert_eq!(claim(one, 80), Claim::Won);
}

#[test]
fn a_claim_lives_as_long_as_its_log() {
    let journal = small(1 << 20);
    let claim = |id, secs| block_on(journal.claim([1; 32], id, at(secs))).unwrap();
    let story = Story::untold(WindowConfig::default());
    let id = story.window.id();
    assert_eq!(claim(id, 0), Claim::Won);
    let outcome = block_on(journal.open(&story.window, &Open { access: ACCESS }, at(1)));
    assert_eq!(outcome, Outcome::Yes);
    story.commit(1);
    finish(&journal, &story, 1_000);
    journal.sweep(at(1_000 + RETENTION - 1));
    let other = StreamId::generate(at(0));
    assert_eq!(
        claim(other, 1_000 + RETENTION - 1),
        Claim::Taken { id, body: None }
    );
    journal.sweep(at(1_000 + RETENTION));
    assert_eq!(claim(other, 1_000 + RETENTION), Claim::Won);
}

#[test]
fn what_is_found_is_the_writers_own_window() {
    let journal = small(1 << 20);
    let story = opened(&journal);
    let Found::Here { window, .. } = block_on(journal.find(story.window.id(), at(0))).unwrap()
    else {
        panic!("here")
    };
    assert!(Arc::ptr_eq(&window, &story.window));
}

#[test]
fn times_beyond_the_clock_are_no_accident() {
    let journal = Memory::new(MemoryConfig {
        max_total: 1 << 20,
        retention: Duration::MAX,
        tombstone: Duration::MAX,
        claim: Duration::MAX,
    });
    let id = finished(&journal, 10).window.id();
    assert_eq!(find(&journal, id, 1_000_000_000), "here");
    let (one, two) = (StreamId::generate(at(0)), StreamId::generate(at(0)));
    let claim = |id, secs| block_on(journal.claim([1; 32], id, at(secs))).unwrap();
    assert_eq!(claim(one, 0), Claim::Won);
    assert_ne!(claim(two, 1_000_000_000), Claim::Won);
}
