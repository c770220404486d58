//! Holds the decoder and the encoder against the oracle, for one input and one way to cut it.
//!
//! The fuzz target includes this file and [`super::naive`] by path, so nothing here may need more
//! than the crate itself.

use streamweld_sse::{Decoder, Limits, Retry, encode_lines};

use super::naive;

/// Feeds `reads` to a new decoder, as one stream, and checks at each step what it holds.
pub(crate) fn run(reads: &[&[u8]], limits: Limits) -> naive::Outcome {
    let mut decoder = Decoder::new(limits);
    let mut outcome = naive::Outcome::default();
    for &read in reads {
        let mut input = read;
        loop {
            let left = input.len();
            match decoder.decode(&mut input) {
                Ok(Some(event)) => outcome.events.push(owned(&event)),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(*outcome.error.get_or_insert(error), error, "sticky");
                    break;
                }
            }
            assert!(input.len() < left, "an event takes at least one byte");
            assert!(decoder.buffered() <= limits.max_event);
        }
        assert!(outcome.error.is_some() || input.is_empty(), "all is taken");
        assert!(decoder.buffered() <= limits.max_event);
        if decoder.tail().is_empty() && outcome.error.is_none() {
            assert_eq!(decoder.buffered(), 0, "nothing is held for nothing");
        }
    }
    outcome.tail = decoder.tail().to_vec();
    outcome.tail_event = decoder.tail_event().as_ref().map(owned);
    outcome
}

/// An event with its accessors called, and held against one another.
fn owned(event: &streamweld_sse::Event<'_>) -> naive::Event {
    let lines: Vec<_> = event.data_lines().map(str::to_owned).collect();
    assert_eq!(event.has_data(), !lines.is_empty());
    assert_eq!(event.is_data_empty(), lines.concat().is_empty());
    assert_eq!(event.data(), lines.join("\n"));
    assert_eq!(event.field("data"), lines.last().map(String::as_str));
    naive::Event {
        name: event.name().map(str::to_owned),
        data: event.data().into_owned(),
        data_lines: lines,
        id: event.id().map(str::to_owned),
        retry: event.retry(),
        error: event.field("error").map(str::to_owned),
    }
}

/// Cuts `input` into reads of the given sizes; what is left over is the last read.
pub(crate) fn cut<'i>(mut input: &'i [u8], sizes: &[usize]) -> Vec<&'i [u8]> {
    let mut reads = Vec::new();
    for &size in sizes {
        let (read, rest) = input.split_at(size.min(input.len()));
        reads.push(read);
        input = rest;
    }
    reads.push(input);
    reads
}

/// The decoder agrees with the oracle on `input`, whole and cut into `sizes`.
#[track_caller]
pub(crate) fn agrees(input: &[u8], sizes: &[usize], limits: Limits) -> naive::Outcome {
    let expected = naive::decode(input, limits);
    assert_eq!(run(&[input], limits), expected, "in one read");
    assert_eq!(run(&cut(input, sizes), limits), expected, "cut {sizes:?}");
    expected
}

/// Writing what was read, and reading that, gives the same events; writing those gives the same
/// bytes.
#[track_caller]
pub(crate) fn round_trips(input: &[u8]) {
    let limits = Limits {
        max_event: usize::MAX,
    };
    let before = run(&[input], limits);
    let wire = encode(input, limits);
    // The id is not written; an event of which nothing is written disappears.
    let kept: Vec<_> = before
        .events
        .iter()
        .filter(|event| {
            event.name.is_some() || !event.data_lines.is_empty() || event.retry.is_some()
        })
        .map(|event| naive::Event {
            id: None,
            error: None,
            ..event.clone()
        })
        .collect();
    let after = run(&[&wire], limits);
    assert_eq!(after.events, kept);
    assert_eq!((after.error, after.tail), (None, Vec::new()));
    assert_eq!(encode(&wire, limits), wire);
}

/// The wire form of all complete events, each with its blank line, up to the first error.
fn encode(input: &[u8], limits: Limits) -> Vec<u8> {
    let mut decoder = Decoder::new(limits);
    let mut wire = Vec::new();
    let mut input = input;
    while let Ok(Some(event)) = decoder.decode(&mut input) {
        let before = wire.len();
        encode_lines(&event, Retry::Keep, &mut wire);
        if wire.len() > before {
            wire.push(b'\n');
        }
    }
    wire
}

/// The body of the fuzz target: a file is a head and a stream.
///
/// The head's first byte is how many sizes follow, from 0 to 15; each is a byte, the size of one
/// read. After them comes one byte for the limit: 255 stands for "none". The rest is the stream.
pub(crate) fn fuzz(file: &[u8]) {
    let Some((&count, rest)) = file.split_first() else {
        return;
    };
    let Some((sizes, rest)) = rest.split_at_checked(usize::from(count % 16)) else {
        return;
    };
    let Some((&limit, stream)) = rest.split_first() else {
        return;
    };
    let sizes: Vec<_> = sizes.iter().copied().map(usize::from).collect();
    let max_event = match limit {
        255 => usize::MAX,
        limit => usize::from(limit),
    };
    agrees(stream, &sizes, Limits { max_event });
    round_trips(stream);
}
