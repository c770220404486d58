//! What is kept beside entries goes where they go.

use super::*;
use crate::window::beside::Beside;

/// Stages an entry with this beside it.
fn stage_with(window: &Window, len: usize, beside: &[u8]) -> Seq {
    let mut staging = window.stage(at(1));
    let seq = staging.push(Kind::Event, |out| write_line(out, len));
    staging.beside(beside);
    seq
}

fn opened(max_bytes: usize) -> Arc<Window> {
    let window = window(max_bytes);
    stage(&window, Kind::Open, 20);
    window
}

fn beside(window: &Window, after: u64, through: u64) -> Vec<u8> {
    window
        .staged_through(Seq::new(after), Seq::new(through))
        .beside
}

#[test]
fn a_range_has_what_is_beside_its_entries() {
    let window = opened(1 << 20);
    stage_with(&window, 30, b"two");
    stage(&window, Kind::Event, 30);
    let mut staging = window.stage(at(1));
    staging.push(Kind::Event, |out| write_line(out, 30));
    staging.beside(b"fo");
    staging.beside(b"");
    staging.beside(b"ur");
    staging.push(Kind::Event, |out| write_line(out, 30));
    staging.beside(b"five");
    drop(staging);
    for (after, through, expected) in [
        (0, 5, "twofourfive"),
        (0, 1, ""),
        (1, 2, "two"),
        (2, 3, ""),
        (2, 4, "four"),
        (4, 5, "five"),
        (5, 5, ""),
        (0, 99, "twofourfive"),
    ] {
        let beside = beside(&window, after, through);
        assert_eq!(beside, expected.as_bytes(), "{after} to {through}");
    }
    // Committed or not: it may have to be appended again.
    window.commit(Seq::new(4));
    assert_eq!(window.staged(Seq::FIRST).beside, b"twofourfive");
}

#[test]
fn who_stages_none_holds_none() {
    assert_eq!(size_of::<Beside>(), size_of::<usize>());
    let (with, without) = (opened(1 << 20), opened(1 << 20));
    stage_with(&with, 30, b"");
    stage(&without, Kind::Event, 30);
    assert_eq!(with.held(), without.held());
    stage_with(&with, 30, &[7; 1000]);
    stage(&without, Kind::Event, 30);
    assert!(with.held() >= without.held() + 1000);
}

#[test]
fn it_goes_with_the_ring() {
    let window = opened(64 << 10);
    for seq in 2..=4_000 {
        stage_with(&window, 200, &[7; 50]);
        window.commit(Seq::new(seq));
        assert!(window.held() < 80 << 10, "{}", window.held());
    }
    let earliest = window.earliest();
    assert!(earliest > Seq::new(3_000), "the ring has turned");
    let kept = 4_001 - earliest.get();
    // Of a tenth of what could be held there is more than the half.
    assert!(kept > 100, "{kept}");
    assert_eq!(window.staged(Seq::ZERO).beside, vec![7; kept as usize * 50]);
}

#[test]
fn it_is_given_up_with_its_entries() {
    let window = opened(1 << 20);
    stage_with(&window, 30, b"kept");
    window.commit(Seq::new(2));
    stage_with(&window, 30, b"gone");
    window.abandon();
    assert_eq!(window.staged(Seq::ZERO).beside, b"kept");

    let window = opened(1 << 20);
    stage_with(&window, 30, b"gone");
    window.give_up();
    stage_with(&window, 30, b"never kept");
    assert_eq!(window.staged(Seq::ZERO).beside, b"");
}

/// Nobody continues a log that has its end.
#[test]
fn it_goes_when_the_end_stands() {
    let window = opened(1 << 20);
    stage_with(&window, 30, b"until the end");
    window.stage_terminal(at(2), terminal());
    assert_eq!(window.staged(Seq::ZERO).beside, b"until the end");
    let before = window.held();
    window.commit(Seq::new(3));
    assert_eq!(window.staged(Seq::ZERO).beside, b"");
    assert!(window.held() < before);
}

#[test]
#[should_panic(expected = "bytes are beside an entry")]
fn it_needs_an_entry_of_the_same_staging() {
    let window = opened(1 << 20);
    window
        .stage(at(1))
        .beside(b"of an entry that may be under way");
}
