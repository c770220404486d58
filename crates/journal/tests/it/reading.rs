//! Readers of a window: what they are given, in which form, and how it ends.

use std::task::Poll;

use bytes::Bytes;
use streamweld_journal::{Closed, Digest, Epoch, Kind, Seq, Step, WindowConfig};

use crate::story::{BARE, CONTROL, MAX, PLAIN, Story, at, lines, text};

#[test]
fn an_event_is_stored_with_its_id_as_the_last_line() {
    let story = Story::new();
    story.events(&["a"]).commit_all();
    let id = story.window.id();
    story
        .read(0, PLAIN)
        .gets(&format!("data: a\nid: {id}:2\n\n"), 2)
        .waits();
}

#[test]
fn a_reader_from_the_start_gets_everything_once_and_then_waits() {
    let story = Story::new();
    let mut reader = story.read(0, PLAIN);
    reader.waits();
    story.events(&["a", "b"]).commit_all();
    reader.gets(&story.wires(&[(2, "a"), (3, "b")]), 3).waits();
    story.events(&["c"]).commit_all();
    reader.gets(&story.wires(&[(4, "c")]), 4).waits();
}

#[test]
fn a_cursor_is_exclusive() {
    let story = Story::new();
    story.events(&["a", "b", "c"]).commit_all();
    story.read(3, PLAIN).gets(&story.wires(&[(4, "c")]), 4);
    story.read(4, PLAIN).waits();
}

#[test]
fn what_is_staged_is_not_seen() {
    let story = Story::new();
    let mut reader = story.read(0, PLAIN);
    story.events(&["a", "b"]);
    reader.waits();
    story.commit(2);
    reader.gets(&story.wires(&[(2, "a")]), 2).waits();
}

#[test]
fn control_entries_are_stepped_over() {
    let story = Story::new();
    story.events(&["a"]);
    story.stage(Kind::Warning, "w");
    story.stage(Kind::Migration, "m");
    story.events(&["b"]).commit_all();
    let mut plain = story.read(0, PLAIN);
    plain
        .gets(&story.wires(&[(2, "a")]), 4)
        .gets(&story.wires(&[(5, "b")]), 5)
        .waits();
    let all = [
        story.wire(1, Kind::Open, "opened"),
        story.wire(2, Kind::Event, "a"),
        story.wire(3, Kind::Warning, "w"),
        story.wire(4, Kind::Migration, "m"),
        story.wire(5, Kind::Event, "b"),
    ];
    story.read(0, CONTROL).gets(&all.concat(), 5).waits();
}

#[test]
fn hidden_entries_alone_move_the_cursor_and_wake_nobody_for_nothing() {
    let story = Story::new();
    let mut reader = story.read(0, PLAIN);
    reader.waits();
    assert_eq!(reader.reader.cursor(), Seq::FIRST);
}

#[test]
fn a_view_without_ids_leaves_the_lines_out() {
    let story = Story::new();
    story.events(&["a", "b"]).commit_all();
    story
        .read(0, BARE)
        .gets("data: a\n\ndata: b\n\n", 3)
        .waits();
}

#[test]
fn a_run_is_bounded_but_never_torn() {
    let story = Story::new();
    story.events(&["a", "b", "c", "d"]).commit_all();
    let one = story.wires(&[(2, "a")]).len();
    let mut reader = story.read(0, PLAIN);
    assert_eq!(
        text(&reader.run(2 * one + 1).0),
        story.wires(&[(2, "a"), (3, "b")])
    );
    assert_eq!(text(&reader.run(1).0), story.wires(&[(4, "c")]));
    assert_eq!(text(&reader.run(one).0), story.wires(&[(5, "d")]));
}

#[test]
fn sealed_bytes_are_shared_not_copied() {
    let story = Story::new();
    let long = "x".repeat(241);
    for _ in 0..200 {
        story.events(&[&long]);
    }
    story.commit_all();
    let (mut one, mut two) = (story.read(0, PLAIN), story.read(0, PLAIN));
    let (first, second) = (one.run(MAX).0, two.run(MAX).0);
    assert_eq!(first.as_ptr(), second.as_ptr());
}

#[test]
fn many_blocks_join_without_a_gap() {
    let story = Story::new();
    let texts: Vec<String> = (0..5_000)
        .map(|n| format!("{n} {}", "y".repeat(n % 400)))
        .collect();
    for chunk in texts.chunks(7) {
        story
            .events(&chunk.iter().map(String::as_str).collect::<Vec<_>>())
            .commit_all();
    }
    let mut reader = story.read(0, PLAIN);
    let mut given = String::new();
    while let Poll::Ready(Step::Run {
        bytes,
        sequenced: true,
        ..
    }) = reader.poll(MAX)
    {
        assert!(bytes.len() <= MAX);
        given.push_str(text(&bytes));
    }
    let expected: Vec<(u64, &str)> = (2..).zip(texts.iter().map(String::as_str)).collect();
    assert!(given == story.wires(&expected));
}

#[test]
fn an_entry_larger_than_any_block_arrives_whole() {
    let story = Story::new();
    let huge = "z".repeat(3 << 20);
    story.events(&["a", &huge, "b"]).commit_all();
    let mut reader = story.read(0, PLAIN);
    reader.gets(&story.wires(&[(2, "a")]), 2);
    reader.gets(&story.wires(&[(3, &huge)]), 3);
    reader.gets(&story.wires(&[(4, "b")]), 4).waits();
}

#[test]
fn the_end_comes_after_every_entry_and_stays() {
    let story = Story::new();
    story.events(&["a"]);
    story.terminal(Kind::Done, "");
    let mut reader = story.read(0, CONTROL);
    reader.gets(&story.wire(1, Kind::Open, "opened"), 1).waits();
    assert_eq!(story.window.terminal(), None);
    story.commit_all();
    reader.gets(&story.wires(&[(2, "a")]), 2);
    reader.ends(3, true);
    reader.ends(3, true);
    assert_eq!(reader.reader.cursor(), Seq::new(3));
    story.read(2, PLAIN).ends(3, true);
}

#[test]
fn the_terminal_keeps_what_the_writer_gave() {
    let story = Story::new();
    story.terminal(Kind::Error, "data: {\"error\":{}}\n\n");
    story.commit_all();
    let terminal = story.window.terminal().unwrap();
    assert_eq!(terminal.kind, Kind::Error);
    assert_eq!(terminal.code.as_deref(), Some("because"));
    assert_eq!((terminal.seq, terminal.time), (Seq::new(2), at(9)));
    assert_eq!(text(&terminal.lines), lines(Kind::Error, "over"));
    assert_eq!(text(&terminal.ending), "data: {\"error\":{}}\n\n");
}

#[test]
#[should_panic(expected = "nothing follows a terminal")]
fn nothing_is_staged_behind_a_terminal() {
    let story = Story::new();
    story.terminal(Kind::Done, "");
    story.events(&["late"]);
}

#[test]
#[should_panic(expected = "`open`")]
fn a_log_begins_with_open() {
    let window = streamweld_journal::Window::new(
        streamweld_journal::StreamId::generate(at(0)),
        Epoch::FIRST,
        at(0),
        WindowConfig::default(),
    );
    window
        .stage(at(0))
        .push(Kind::Event, |out| out.extend_from_slice(b"data: a\n"));
}

#[test]
fn a_closed_window_gives_what_it_has_and_the_first_reason() {
    let story = Story::new();
    story.events(&["a"]).commit_all();
    story.window.close(Closed::Fenced);
    story.window.close(Closed::Shutdown);
    let mut reader = story.read(0, PLAIN);
    reader.gets(&story.wires(&[(2, "a")]), 2);
    assert!(matches!(
        reader.poll(MAX),
        Poll::Ready(Step::Closed(Closed::Fenced))
    ));
}

#[test]
fn a_terminal_wins_over_closing() {
    let story = Story::new();
    story.window.close(Closed::Shutdown);
    story.terminal(Kind::Stopped, "");
    story.commit_all();
    story.read(1, PLAIN).ends(2, true);
}

#[test]
fn a_reader_that_the_ring_passes_is_told_and_stays() {
    let story = Story::with(WindowConfig { max_bytes: 20_000 });
    let mut slow = story.read(0, PLAIN);
    let long = "x".repeat(1_000);
    for _ in 0..100 {
        story.events(&[&long]).commit_all();
    }
    let earliest = story.window.earliest();
    assert!(earliest > Seq::new(50) && earliest < Seq::new(101));
    assert!(story.window.held() <= 20_000);
    for _ in 0..2 {
        assert!(
            matches!(slow.poll(MAX), Poll::Ready(Step::Overtaken { earliest: told }) if told == earliest)
        );
    }
    let before = earliest.get() - 1;
    assert!(matches!(
        story.read(before - 1, PLAIN).poll(MAX),
        Poll::Ready(Step::Overtaken { .. })
    ));
    let (bytes, _, _) = story.read(before, PLAIN).run(1);
    assert_eq!(text(&bytes), story.wires(&[(earliest.get(), &long)]));
}

#[test]
fn the_ring_never_takes_the_last_committed_entry() {
    let story = Story::with(WindowConfig { max_bytes: 1_000 });
    let huge = "x".repeat(100_000);
    story.events(&["a"]).commit_all();
    story.events(&[&huge]).commit_all();
    story.read(2, PLAIN).gets(&story.wires(&[(3, &huge)]), 3);
    story.events(&["b"]).commit_all();
    assert_eq!(story.window.earliest(), Seq::new(4));
    story.read(3, PLAIN).gets(&story.wires(&[(4, "b")]), 4);
}

#[test]
fn the_label_survives_the_ring() {
    let story = Story::with(WindowConfig { max_bytes: 1_000 });
    story.window.set_label(Bytes::from_static(b"opened"));
    for _ in 0..20 {
        story.events(&[&"x".repeat(1_000)]).commit_all();
    }
    assert!(story.window.earliest() > Seq::FIRST);
    assert_eq!(&story.window.label()[..], b"opened");
}

#[test]
fn a_new_epoch_shows_in_the_ids_of_new_entries() {
    let story = Story::new();
    story.events(&["a"]).commit_all();
    story.window.begin_epoch(Epoch::new(2).unwrap());
    story.events(&["b"]).commit_all();
    let id = story.window.id();
    let mut reader = story.read(0, PLAIN);
    reader.gets(&format!("data: a\nid: {id}:2\n\n"), 2);
    reader.gets(&format!("data: b\nid: {id}:3~2\n\n"), 3);
    let mut bare = story.read(1, BARE);
    bare.gets("data: a\n\n", 2).gets("data: b\n\n", 3);
}

#[test]
fn times_are_kept_to_the_millisecond() {
    let story = Story::new();
    let when = at(2) + std::time::Duration::from_millis(345);
    story
        .window
        .stage(when)
        .push(Kind::Event, |out| out.extend_from_slice(b"data: a\n"));
    assert_eq!(story.window.last_time(), Some(at(1)));
    story.commit_all();
    assert_eq!(story.window.time_of(Seq::new(2)), Some(when));
    assert_eq!(story.window.last_time(), Some(when));
    assert_eq!(story.window.time_of(Seq::ZERO), None);
    assert_eq!(story.window.time_of(Seq::new(3)), None);
}

#[test]
fn entries_are_given_without_their_frame() {
    let story = Story::new();
    story.events(&["a", "b"]).commit(2);
    let entries = story.window.entries(Seq::ZERO, 10);
    let told: Vec<_> = entries
        .iter()
        .map(|it| (it.seq.get(), it.kind, text(&it.lines)))
        .collect();
    let open = lines(Kind::Open, "opened");
    assert_eq!(
        told,
        [
            (1, Kind::Open, open.as_str()),
            (2, Kind::Event, "data: a\n")
        ]
    );
    assert_eq!(story.window.entries(Seq::FIRST, 0), []);
    assert_eq!(story.window.entries(Seq::new(2), 10), []);
    assert_eq!(story.window.entries(Seq::ZERO, 1).len(), 1);
}

#[test]
fn a_batch_is_what_was_staged() {
    let story = Story::new();
    story.events(&["a", "b"]).commit(2);
    story.terminal(Kind::Done, "");
    let batch = story.window.staged(Seq::FIRST);
    let kinds: Vec<_> = batch
        .entries
        .iter()
        .map(|it| (it.seq.get(), it.kind))
        .collect();
    assert_eq!(kinds, [(2, Kind::Event), (3, Kind::Event), (4, Kind::Done)]);
    assert_eq!(batch.terminal.as_ref().map(|it| it.seq), Some(Seq::new(4)));
    let bytes = Bytes::from(batch.runs.concat());
    let expected = story.wires(&[(2, "a"), (3, "b")]) + &story.wire(4, Kind::Done, "over");
    assert_eq!(text(&bytes), expected);
    let last = batch.entries.last().unwrap().len;
    assert_eq!(
        story.window.digest(Seq::new(4)),
        Some(Digest::of(&bytes[bytes.len() - last..]))
    );
    let part = story.window.staged_through(Seq::FIRST, Seq::new(2));
    assert_eq!((part.through(), part.terminal), (Seq::new(2), None));
    assert!(story.window.staged(Seq::new(4)).is_empty());
}

#[test]
fn a_batch_says_where_it_really_begins() {
    let story = Story::with(WindowConfig { max_bytes: 1_000 });
    for _ in 0..20 {
        story.events(&[&"x".repeat(1_000)]).commit_all();
    }
    let batch = story.window.staged(Seq::FIRST);
    assert_eq!(batch.after.next(), story.window.earliest());
    assert_eq!(batch.entries[0].seq, story.window.earliest());
}

#[test]
fn a_reader_knows_whether_there_is_more_to_show() {
    let story = Story::new();
    assert!(!story.read(0, PLAIN).reader.has_more_to_show());
    assert!(story.read(0, CONTROL).reader.has_more_to_show());
    story.events(&["a"]).commit_all();
    assert!(story.read(1, PLAIN).reader.has_more_to_show());
    assert!(!story.read(2, PLAIN).reader.has_more_to_show());
    story.stage(Kind::Warning, "w");
    story.terminal(Kind::Done, "");
    story.commit_all();
    assert!(!story.read(2, PLAIN).reader.has_more_to_show());
    assert!(story.read(2, CONTROL).reader.has_more_to_show());
    assert!(!story.read(4, CONTROL).reader.has_more_to_show());
    let failed = Story::new();
    failed.terminal(Kind::Error, "data: {}\n\n");
    failed.commit_all();
    assert!(failed.read(1, PLAIN).reader.has_more_to_show());
    assert!(!failed.read(2, PLAIN).reader.has_more_to_show());
}
