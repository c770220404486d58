//! The same bytes give the same events, however they were cut into reads; and each event comes as
//! early as it can.

use streamweld_sse::{Decoder, Limits};

use super::{check, naive, spec::CASES};

#[track_caller]
fn check(name: &str, reads: &[&[u8]], expected: &naive::Outcome) {
    let outcome = check::run(reads, Limits::default());
    assert_eq!(&outcome, expected, "{name}, as {reads:?}");
}

fn whole(input: &[u8]) -> naive::Outcome {
    naive::decode(input, Limits::default())
}

#[test]
fn cut_at_every_place() {
    for case in CASES {
        let expected = whole(case.input);
        for at in 0..=case.input.len() {
            let (a, b) = case.input.split_at(at);
            check(case.name, &[a, b], &expected);
            check(case.name, &[b"", a, b"", b"", b, b""], &expected);
        }
    }
}

#[test]
fn cut_at_every_pair_of_places() {
    for case in CASES {
        let expected = whole(case.input);
        for first in 0..=case.input.len() {
            for second in 0..=case.input.len() - first {
                let reads = check::cut(case.input, &[first, second]);
                check(case.name, &reads, &expected);
            }
        }
    }
}

#[test]
fn byte_by_byte() {
    for case in CASES {
        let expected = whole(case.input);
        let bytes: Vec<_> = case.input.chunks(1).collect();
        check(case.name, &bytes, &expected);
        let with_empty: Vec<_> = bytes.iter().flat_map(|&byte| [byte, b""]).collect();
        check(case.name, &with_empty, &expected);
    }
}

/// All cases as one stream, to see that nothing is carried from one block into the next.
#[test]
fn case_after_case_in_one_stream() {
    let mut stream = Vec::new();
    for case in CASES {
        stream.extend_from_slice(case.input);
        stream.extend_from_slice(b"\n\n");
    }
    // The torn character among the cases ends the stream, so that goes.
    let stream: Vec<_> = String::from_utf8_lossy(&stream).into_owned().into_bytes();
    for size in 1..100 {
        let expected = whole(&stream);
        assert_eq!(expected.error, None);
        check("all", &stream.chunks(size).collect::<Vec<_>>(), &expected);
    }
}

/// How many events have been given out after each read.
#[track_caller]
fn check_counts(reads: &[(&[u8], usize)]) {
    let mut decoder = Decoder::new(Limits::default());
    let mut count = 0;
    for &(read, expected) in reads {
        let mut input = read;
        while decoder.decode(&mut input).unwrap().is_some() {
            count += 1;
        }
        assert_eq!(
            count,
            expected,
            "after {:?}",
            read.escape_ascii().to_string()
        );
    }
}

#[test]
fn crlf_in_two_reads_is_one_line_end() {
    check_counts(&[
        (b"data: A\r\n", 0),
        (b"data: B\r", 0),
        (b"\n", 0),
        (b"data: C\r\n", 0),
        (b"\r\n", 1),
    ]);
}

#[test]
fn crlf_in_two_reads_survives_an_empty_one() {
    check_counts(&[
        (b"data: A\r", 0),
        (b"", 0),
        (b"\n", 0),
        (b"", 0),
        (b"\n", 1),
    ]);
}

#[test]
fn a_lone_cr_ends_an_event_at_once() {
    check_counts(&[(b"data: A\r", 0), (b"\r", 1), (b"data: B\r\r", 2)]);
}

#[test]
fn the_lf_after_a_final_cr_is_swallowed() {
    check_counts(&[
        (b"data: A\r\n\r", 1),
        (b"\n", 1),
        (b"data: B\n", 1),
        (b"\n", 2),
    ]);
    check_counts(&[
        (b"data: A\r\n\r", 1),
        (b"", 1),
        (b"\ndata: B\n", 1),
        (b"\n", 2),
    ]);
}

#[test]
fn an_event_comes_with_the_last_byte_of_its_blank_line() {
    check_counts(&[(b"data: A\n\ndata: B\n", 1), (b"\nd", 2)]);
}

#[test]
fn a_bom_survives_an_empty_read_and_a_cut() {
    check_counts(&[
        (b"", 0),
        (b"\xEF\xBB", 0),
        (b"", 0),
        (b"\xBFdata: x\n\n", 1),
    ]);
    let outcome = check::run(&[b"", b"\xEF\xBB", b"\xBFdata: x\n\n"], Limits::default());
    assert_eq!(outcome.events[0].data, "x");
}

#[test]
fn what_began_like_a_bom_is_given_back() {
    let outcome = check::run(&[b"\xEF", b"\xBB", b"\xAA: x\n\n"], Limits::default());
    assert_eq!(outcome, whole("\u{feea}: x\n\n".as_bytes()));
    assert_eq!(outcome.events.len(), 1);
}

#[test]
fn a_block_in_one_read_is_not_copied() {
    let read = b": x\n\nevent: a\ndata: b\n\ndata: c\n\ndata: torn";
    let mut decoder = Decoder::new(Limits::default());
    let mut input = &read[..];
    for _ in 0..2 {
        let event = decoder.decode(&mut input).unwrap().unwrap();
        let data = event.data_lines().next().unwrap();
        assert!(read.as_ptr_range().contains(&data.as_ptr()));
        assert_eq!(decoder.buffered(), 0);
    }
    assert!(decoder.decode(&mut input).unwrap().is_none());
    assert_eq!(decoder.tail(), b"data: torn");
}

#[test]
fn an_event_outlives_the_cursor_into_the_read() {
    let mut decoder = Decoder::new(Limits::default());
    let read = *b"data: a\n\ndata: b\n\n";
    let event = {
        let mut input = &read[..];
        decoder.decode(&mut input).unwrap().unwrap()
    };
    assert_eq!(event.data(), "a");
}
