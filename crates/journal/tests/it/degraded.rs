//! A window whose journal does not answer.

use std::task::Poll;

use streamweld_journal::{Closed, Kind, Seq, Step, WindowConfig};

use crate::story::{MAX, PLAIN, Story};

#[test]
fn an_exposed_suffix_is_shown_without_ids() {
    let story = Story::new();
    story.events(&["a", "b"]).commit(2);
    story.window.expose(true);
    let mut reader = story.read(0, PLAIN);
    reader.gets(&story.wires(&[(2, "a")]), 2);
    reader.gets_unsequenced("data: b\n\n", 3).waits();
}

#[test]
fn exposing_and_staging_wake_readers() {
    let story = Story::new();
    let mut reader = story.read(1, PLAIN);
    reader.waits();
    story.events(&["a"]);
    assert_eq!(reader.wakes(), 0);
    story.window.expose(true);
    assert_eq!(reader.wakes(), 1);
    reader.gets_unsequenced("data: a\n\n", 2).waits();
    story.events(&["b"]);
    assert_eq!(reader.wakes(), 2);
    reader.gets_unsequenced("data: b\n\n", 3);
}

#[test]
fn what_was_shown_is_not_shown_again_when_healed() {
    let story = Story::new();
    let mut reader = story.read(1, PLAIN);
    story.events(&["a", "b"]);
    story.window.expose(true);
    reader.gets_unsequenced("data: a\n\ndata: b\n\n", 3);
    story.events(&["c"]);
    story.window.expose(false);
    reader.waits();
    story.commit_all();
    reader.gets(&story.wires(&[(4, "c")]), 4).waits();
    let expected = story.wires(&[(2, "a"), (3, "b"), (4, "c")]);
    story.read(1, PLAIN).gets(&expected, 4);
}

#[test]
fn a_terminal_that_cannot_be_committed_is_shown_without_a_sequence() {
    let story = Story::new();
    let mut reader = story.read(1, PLAIN);
    reader.waits();
    story.window.expose(true);
    story.events(&["a"]);
    story.terminal(Kind::Done, "");
    assert!(reader.wakes() > 0);
    reader.gets_unsequenced("data: a\n\n", 2);
    reader.ends(3, false);
    assert_eq!(story.window.terminal(), None);
    story.commit_all();
    story.read(2, PLAIN).ends(3, true);
}

#[test]
fn an_abandoned_suffix_is_replaced_by_a_terminal() {
    let story = Story::new();
    story.events(&["a", "b", "c"]).commit(2);
    story.window.expose(true);
    let mut ahead = story.read(1, PLAIN);
    ahead
        .gets(&story.wires(&[(2, "a")]), 2)
        .gets_unsequenced("data: b\n\ndata: c\n\n", 4)
        .waits();
    let mut behind = story.read(1, PLAIN);
    story.window.abandon();
    assert_eq!(story.window.received(), Seq::new(2));
    assert_eq!(story.terminal(Kind::Error, "").get(), 3);
    assert_eq!(ahead.wakes(), 1);
    ahead.ends(3, false);
    story.commit_all();
    ahead.ends(3, true);
    behind.gets(&story.wires(&[(2, "a")]), 2).ends(3, true);
}

#[test]
fn an_abandoned_terminal_makes_room_for_another() {
    let story = Story::new();
    story.events(&["a"]);
    story.terminal(Kind::Done, "");
    story.window.abandon();
    assert_eq!(story.terminal(Kind::Error, "").get(), 2);
    story.commit_all();
    assert_eq!(story.window.terminal().unwrap().kind, Kind::Error);
}

#[test]
fn abandoning_cuts_through_sealed_blocks() {
    let story = Story::new();
    let long = "x".repeat(500);
    for _ in 0..200 {
        story.events(&[&long]);
    }
    for committed in [150, 100, 99, 3] {
        let story = Story::new();
        for _ in 0..200 {
            story.events(&[&long]);
        }
        story.commit(committed);
        story.window.abandon();
        assert_eq!(story.window.received().get(), committed);
        story.terminal(Kind::Error, "");
        story.commit_all();
        let mut reader = story.read(committed - 1, PLAIN);
        reader
            .gets(&story.wires(&[(committed, &long)]), committed)
            .ends(committed + 1, true);
    }
}

#[test]
fn abandoning_nothing_changes_nothing() {
    let story = Story::new();
    story.events(&["a"]).commit_all();
    story.window.abandon();
    story.events(&["b"]).commit_all();
    story.read(2, PLAIN).gets(&story.wires(&[(3, "b")]), 3);
}

#[test]
#[should_panic(expected = "only a terminal")]
fn no_event_takes_the_place_of_an_abandoned_one() {
    let story = Story::new();
    story.events(&["a"]);
    story.window.abandon();
    story.events(&["other"]);
}

#[test]
fn an_abandoned_window_can_be_closed() {
    let story = Story::new();
    story.events(&["a"]);
    let mut reader = story.read(1, PLAIN);
    reader.waits();
    story.window.abandon();
    story.window.close(Closed::Incomplete);
    assert_eq!(reader.wakes(), 1);
    assert!(matches!(
        reader.poll(MAX),
        Poll::Ready(Step::Closed(Closed::Incomplete))
    ));
}

#[test]
fn a_log_that_could_not_even_open_can_end() {
    let story = Story::untold(WindowConfig::default());
    story.events(&["a"]);
    story.window.expose(true);
    let mut reader = story.read(0, PLAIN);
    reader.gets_unsequenced("data: a\n\n", 2);
    story.window.abandon();
    assert_eq!(story.terminal(Kind::Error, ""), Seq::FIRST);
    reader.ends(1, false);
}

#[test]
fn a_log_that_is_given_up_goes_on_for_those_who_are_attached() {
    let story = Story::with(WindowConfig { max_bytes: 20_000 });
    let long = "x".repeat(1_000);
    let mut slow = story.read(1, PLAIN);
    let mut fast = story.read(1, PLAIN);
    fast.waits();
    story.events(&[&long]);
    story.window.give_up();
    assert!(story.window.is_exposed());
    assert_eq!(fast.wakes(), 1);
    for seq in 2..102 {
        fast.gets_unsequenced(&format!("data: {long}\n\n"), seq)
            .waits();
        story.events(&[&long]);
        assert!(story.window.held() < 22_000);
    }
    assert!(matches!(
        slow.poll(MAX),
        Poll::Ready(Step::Overtaken { .. })
    ));
    story.terminal(Kind::Done, "");
    fast.gets_unsequenced(&format!("data: {long}\n\n"), 102)
        .ends(103, false);
}
