//! Runs that come with where their entries lie.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::{Listing, Window, WindowConfig};
use crate::id::StreamId;
use crate::reader::{Reader, Step};
use crate::types::{Epoch, Kind, Seq, View};

const ALL: View = View {
    ids: true,
    control: true,
};
const EVENTS: View = View {
    ids: true,
    control: false,
};

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + second)
}

/// An entry of each kind that is no end, of different lengths and times; the last one under another epoch.
fn window(max_bytes: usize) -> Arc<Window> {
    let id = StreamId::generate(at(0));
    let window = Window::new(id, Epoch::FIRST, at(0), WindowConfig { max_bytes });
    let kinds = [
        Kind::Open,
        Kind::Event,
        Kind::Event,
        Kind::Warning,
        Kind::Event,
    ];
    for (place, kind) in (0..).zip(kinds) {
        let mut staging = window.stage(at(place));
        staging.push(kind, |out| {
            out.extend_from_slice(format!("data: {}\n", "x".repeat(place as usize)).as_bytes());
        });
        drop(staging);
        window.commit(Seq::new(place + 1));
    }
    window.begin_epoch(Epoch::FIRST.above(41));
    window
        .stage(at(9))
        .push(Kind::Event, |out| out.extend_from_slice(b"data: y\n"));
    window.commit(Seq::new(6));
    window
}

/// Everything that a reader is given, entry by entry: its sequence, its time, and its lines.
fn listed(window: &Arc<Window>, view: View, max: usize) -> Vec<(u64, SystemTime, String)> {
    let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
    let (mut listing, mut given) = (Listing::default(), Vec::new());
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Step::Run { bytes, .. }) = reader.poll_listed(&mut cx, max, &mut listing)
    {
        let mut end = 0;
        for index in 0..listing.len() {
            let entry = listing.entry(index).expect("is listed");
            assert_eq!(entry.block.start, end, "side by side");
            assert_eq!(window.epoch_of(entry.seq), Some(entry.epoch));
            end = entry.block.end;
            let lines = std::str::from_utf8(&bytes[entry.lines]).expect("UTF-8");
            given.push((entry.seq.get(), entry.time, lines.to_owned()));
        }
        assert_eq!(end, bytes.len(), "all of it");
        assert!(listing.entry(listing.len()).is_none() && !listing.is_empty());
    }
    given
}

#[test]
fn each_entry_is_where_it_is_said_to_be() {
    let window = window(1 << 20);
    for max in [1, 100, 1 << 20] {
        let all = listed(&window, ALL, max);
        let seqs: Vec<_> = all.iter().map(|(seq, ..)| *seq).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
        for (seq, time, lines) in &all {
            let (second, data) = match seq {
                6 => (9, "y".to_owned()),
                seq => (seq - 1, "x".repeat(*seq as usize - 1)),
            };
            assert_eq!((*time, lines), (at(second), &format!("data: {data}\n")));
        }
        let events = listed(&window, EVENTS, max);
        let shown: Vec<_> = all
            .into_iter()
            .filter(|(seq, ..)| ![1, 4].contains(seq))
            .collect();
        assert_eq!(events, shown);
    }
}

#[test]
fn what_is_not_committed_is_not_listed() {
    let window = window(1 << 20);
    window
        .stage(at(10))
        .push(Kind::Event, |out| out.extend_from_slice(b"data: z\n"));
    window.expose(true);
    assert_eq!(listed(&window, ALL, 1 << 20).len(), 6);
    window.commit(Seq::new(7));
    assert_eq!(listed(&window, ALL, 1 << 20).len(), 7);
}

#[test]
fn entries_are_found_by_their_time() {
    let window = window(1 << 20);
    for (second, expected) in [(0, 1), (1, 2), (4, 5), (5, 6), (9, 6), (10, 7)] {
        assert_eq!(
            window.first_since(at(second)),
            Seq::new(expected),
            "{second}"
        );
    }
    assert_eq!(window.first_since(UNIX_EPOCH), Seq::FIRST);
}
