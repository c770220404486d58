//! Who is woken, and who is not.

use crate::story::{MAX, PLAIN, Story};
use streamweld_journal::{Closed, Kind};

#[test]
fn a_commit_wakes_everybody_who_waits_once() {
    let story = Story::new();
    let mut readers: Vec<_> = (0..10).map(|_| story.read(1, PLAIN)).collect();
    for reader in &mut readers[..7] {
        reader.waits();
    }
    story.events(&["a"]).commit_all();
    story.events(&["b"]).commit_all();
    let wakes: Vec<usize> = readers.iter().map(|reader| reader.wakes()).collect();
    assert_eq!(wakes, [1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
}

#[test]
fn staging_alone_wakes_nobody() {
    let story = Story::new();
    let mut reader = story.read(1, PLAIN);
    reader.waits();
    story.events(&["a"]);
    story.terminal(Kind::Done, "");
    assert_eq!(reader.wakes(), 0);
}

#[test]
fn a_reader_polled_twice_is_woken_once() {
    let story = Story::new();
    let mut reader = story.read(1, PLAIN);
    reader.waits().waits().waits();
    story.events(&["a"]).commit_all();
    assert_eq!(reader.wakes(), 1);
}

#[test]
fn a_reader_that_moved_to_another_task_wakes_that_one() {
    let story = Story::new();
    let mut first = story.read(1, PLAIN);
    first.waits();
    let mut second = story.read(1, PLAIN);
    std::mem::swap(&mut first.reader, &mut second.reader);
    // The reader that waited is now polled by the second task.
    second.waits();
    drop(first);
    story.events(&["a"]).commit_all();
    assert_eq!(second.wakes(), 1);
}

#[test]
fn a_reader_that_left_is_forgotten() {
    let story = Story::new();
    let mut stays = story.read(1, PLAIN);
    stays.waits();
    for _ in 0..1_000 {
        let mut leaves = story.read(1, PLAIN);
        leaves.waits();
    }
    let mut late = story.read(1, PLAIN);
    late.waits();
    drop(stays);
    story.events(&["a"]).commit_all();
    assert_eq!(late.wakes(), 1);
    late.gets(&story.wires(&[(2, "a")]), 2);
}

#[test]
fn a_reader_that_was_woken_and_leaves_takes_nobody_elses_place() {
    let story = Story::new();
    let mut first = story.read(1, PLAIN);
    first.waits();
    story.events(&["a"]).commit_all();
    let mut second = story.read(2, PLAIN);
    second.waits();
    drop(first);
    story.events(&["b"]).commit_all();
    assert_eq!(second.wakes(), 1);
}

#[test]
fn closing_wakes() {
    let story = Story::new();
    let mut reader = story.read(1, PLAIN);
    reader.waits();
    story.window.close(Closed::Failed);
    story.window.close(Closed::Shutdown);
    assert_eq!(reader.wakes(), 1);
    assert!(reader.poll(MAX).is_ready());
}

#[test]
fn committing_again_wakes_nobody() {
    let story = Story::new();
    story.events(&["a"]).commit_all();
    let mut reader = story.read(2, PLAIN);
    reader.waits();
    story.commit(1).commit(2);
    assert_eq!(reader.wakes(), 0);
}
