//! A file as a record: it is refused, or is exactly what its record says, and does no harm to a window that is to
//! show it, nor to who reads that. The fuzz target includes this file by path.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use streamweld_journal::{
    Adoption, Batch, Epoch, Kind, Reader, Seq, Step, StreamId, View, Window, WindowConfig,
};

use super::record::{self, Record};

/// The generation that the records of the corpus belong to.
pub(crate) fn id() -> StreamId {
    StreamId::parse("01arz3ndektsv4rrffq69g5fav").expect("it is one")
}

/// A window of that generation with so many entries.
pub(crate) fn window_with(entries: u64) -> Arc<Window> {
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let window = Window::new(id(), Epoch::FIRST, now, WindowConfig::default());
    for seq in 0..entries {
        let kind = if seq == 0 { Kind::Open } else { Kind::Event };
        let mut staging = window.stage(now);
        staging.push(kind, |out| out.extend_from_slice(b"data: {}\n"));
    }
    window.commit(Seq::new(entries));
    window
}

pub(crate) fn fuzz(file: &[u8]) {
    let Ok(record) = record::decode(file) else {
        return;
    };
    says_what_it_is(&record, file);
    let before = record.first.get() - 1;
    for entries in [0, 1, before.min(MOST), before.saturating_add(1).min(MOST)] {
        shows_the_same_in_parts(&record, entries);
    }
}

/// There is one way to write a record, and what was written in version 1 says the same in it.
fn says_what_it_is(record: &Record<'_>, file: &[u8]) {
    let after = Seq::new(record.first.get() - 1);
    if record.entries.is_empty() {
        assert_eq!(record.last(), None);
        assert_eq!(record.terminal, None);
        match record.follows {
            Some(before) if before < record.epoch => {
                let adoption = Adoption::new(before, after, record.epoch);
                assert_eq!(record::change(adoption), file);
            }
            Some(own) if own == record.epoch => {
                assert_eq!(record::stand(own, after), file);
            }
            // Nobody writes such a one, or nobody does any more.
            Some(_) | None => {}
        }
        return;
    }
    let batch = Batch {
        after,
        entries: record.entries.clone(),
        runs: vec![Bytes::copy_from_slice(record.bytes)],
        beside: Vec::new(),
        terminal: record.terminal.clone().map(Arc::new),
    };
    let written = record::encode(&batch, record.epoch);
    match file[0] {
        1 => assert_eq!(record::decode(&written), Ok(record.clone())),
        _ => assert_eq!(written, file),
    }
}

/// What a window takes it takes as well when a part of it stands there already, and takes only once.
fn shows_the_same_in_parts(record: &Record<'_>, entries: u64) {
    let window = window_with(entries);
    let shown = record.show(&window);
    assert_eq!(record.show(&window).is_ok(), shown.is_ok());
    let Ok(last) = shown else {
        assert_eq!(window.committed(), Seq::new(entries), "nothing was changed");
        return;
    };
    assert_eq!(window.committed(), last);
    assert_eq!(window.received(), last);
    let text = read(&window);
    for count in [1, record.entries.len() / 2] {
        let parts = window_with(entries);
        if let Some(part) = part(record, count) {
            // Malformed when it begins behind what stands; the whole one would be a gap then.
            part.show(&parts).expect("the whole was taken");
        }
        assert_eq!(record.show(&parts), Ok(last));
        assert_eq!(
            parts.entries(Seq::ZERO, ALL),
            window.entries(Seq::ZERO, ALL)
        );
        assert_eq!(read(&parts), text);
    }
}

/// The first entries of a record, without its terminal.
fn part<'a>(record: &Record<'a>, count: usize) -> Option<Record<'a>> {
    let entries = record.entries.get(..count)?;
    let is_whole = count == record.entries.len();
    if count == 0 || is_whole {
        return None;
    }
    let len = entries.iter().map(|entry| entry.len).sum();
    Some(Record {
        entries: entries.to_vec(),
        bytes: &record.bytes[..len],
        terminal: None,
        ..record.clone()
    })
}

/// What readers of either kind see.
fn read(window: &Arc<Window>) -> [Vec<u8>; 2] {
    [true, false].map(|full| {
        let view = View {
            ids: full,
            control: full,
        };
        let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
        let mut text = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(step) = reader.poll_next(&mut cx, 1 << 10) {
            match step {
                Step::Run { bytes, .. } => text.extend_from_slice(&bytes),
                _ => break,
            }
        }
        text
    })
}

/// Entries that stand before a record at most: those of later ones are not made.
const MOST: u64 = 16;
const ALL: usize = usize::MAX;
