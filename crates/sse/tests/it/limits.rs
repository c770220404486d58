//! What a stream may cost: the bound on a block, what is held of a torn one, and what an error
//! leaves behind.

use streamweld_sse::{DecodeError, Decoder, Limits};

use super::check;

const MIB: usize = 1024 * 1024;

fn limit(max_event: usize) -> Limits {
    Limits { max_event }
}

/// Decodes `reads` and gives the result of the last call, without the events.
fn feed<'a>(
    decoder: &mut Decoder,
    reads: impl IntoIterator<Item = &'a [u8]>,
) -> Result<usize, DecodeError> {
    let mut count = 0;
    for read in reads {
        let mut input = read;
        while decoder.decode(&mut input)?.is_some() {
            count += 1;
        }
        assert!(decoder.buffered() <= 16 * MIB);
    }
    Ok(count)
}

#[test]
fn the_bound_is_exact_for_every_cut() {
    for block in [
        "data: 123\n\n",
        "data: 1\rid: 2\r\r",
        "data: 1\r\n: 2\r\n\r\n",
    ] {
        for max_event in 0..block.len() + 3 {
            for first in 0..=block.len() {
                for second in 0..=block.len() - first {
                    check::agrees(block.as_bytes(), &[first, second], limit(max_event));
                }
            }
        }
    }
}

#[test]
fn the_bound_counts_from_the_first_field_to_the_blank_line() {
    let input = b"\n: a long comment before\n\ndata: 1\r\n\r\ndata: 22\r\n\r\n";
    let outcome = check::agrees(input, &[3, 30], limit(10));
    assert_eq!(outcome.events.len(), 1);
    assert_eq!(outcome.error, Some(DecodeError::TooLarge { limit: 10 }));
}

#[test]
fn a_line_far_above_the_limit_is_never_held() {
    let mut decoder = Decoder::new(limit(16 * MIB));
    let read = [b'x'; 16 * 1024];
    let reads = std::iter::once(&b"data: "[..]).chain((0..64 * 64).map(|_| &read[..]));
    let result = feed(&mut decoder, reads);
    assert_eq!(result, Err(DecodeError::TooLarge { limit: 16 * MIB }));
    assert_eq!(decoder.buffered(), 0);
    assert_eq!(decoder.tail(), b"");
}

#[test]
fn a_block_too_large_in_one_read_is_refused_unheld() {
    let line = vec![b'x'; 64 * MIB];
    let mut decoder = Decoder::new(limit(16 * MIB));
    let result = feed(&mut decoder, [&line[..]]);
    assert_eq!(result, Err(DecodeError::TooLarge { limit: 16 * MIB }));
    assert_eq!(decoder.buffered(), 0);
}

#[test]
fn a_block_of_the_largest_size_passes() {
    let mut block = b"data: ".to_vec();
    block.resize(16 * MIB - 2, b'x');
    block.extend_from_slice(b"\n\n");
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(feed(&mut decoder, [&block[..]]), Ok(1));
    assert_eq!(feed(&mut decoder, block.chunks(16 * 1024)), Ok(1));
    assert_eq!(decoder.buffered(), 0);
}

/// Quadratic work would take minutes here.
#[test]
fn a_long_block_byte_by_byte_is_linear() {
    let mut block = b"data: ".to_vec();
    block.resize(4 * MIB, b'x');
    block.extend_from_slice(b"\ndata\n\n");
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(feed(&mut decoder, block.chunks(1)), Ok(1));
}

#[test]
fn the_buffer_of_a_long_block_seldom_grows() {
    let mut decoder = Decoder::new(limit(100_000));
    let mut sizes = Vec::new();
    for _ in 0..100_000 {
        assert_eq!(feed(&mut decoder, [&b"x"[..]]), Ok(0));
        sizes.push(decoder.buffered());
    }
    sizes.dedup();
    assert!(sizes.len() < 20, "{sizes:?}");
    assert_eq!(sizes.last(), Some(&100_000));
}

#[test]
fn many_short_lines_byte_by_byte_are_linear() {
    let mut block = b"data\r\n".repeat(MIB / 2);
    block.extend_from_slice(b"\r\n");
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(feed(&mut decoder, block.chunks(1)), Ok(1));
}

#[test]
fn comments_and_blank_lines_cost_nothing() {
    let mut decoder = Decoder::new(limit(10));
    let comment = [b'x'; 16 * 1024];
    assert_eq!(feed(&mut decoder, [&b": "[..], &comment, &comment]), Ok(0));
    assert_eq!((decoder.buffered(), decoder.tail()), (0, &b""[..]));
    for _ in 0..1000 {
        assert_eq!(feed(&mut decoder, [&b"\n:\n"[..], b": ping\r\n\r"]), Ok(0));
        assert_eq!((decoder.buffered(), decoder.tail()), (0, &b""[..]));
    }
    assert_eq!(feed(&mut decoder, [&b"\ndata: 1\n\n"[..]]), Ok(1));
}

#[test]
fn a_torn_block_is_held_until_the_call_after_it() {
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(feed(&mut decoder, [&b"data: a"[..]]), Ok(0));
    assert!(decoder.buffered() >= 7);
    let mut input = &b"\n\n"[..];
    assert!(decoder.decode(&mut input).unwrap().is_some());
    assert_eq!(decoder.tail(), b"", "what was given out is no tail");
    assert!(decoder.decode(&mut input).unwrap().is_none());
    assert_eq!(decoder.buffered(), 0);
}

#[test]
fn events_before_the_fault_come_out_and_none_after_it() {
    let input = b"data: a\n\ndata: \xFF\n\ndata: b\n\n";
    let outcome = check::agrees(input, &[4, 9, 9], Limits::default());
    assert_eq!(outcome.events.len(), 1);
    assert_eq!(outcome.error, Some(DecodeError::InvalidUtf8));
}

#[test]
fn an_error_is_sticky() {
    let mut decoder = Decoder::new(limit(8));
    let error = DecodeError::TooLarge { limit: 8 };
    assert_eq!(feed(&mut decoder, [&b"data: 12345"[..]]), Err(error));
    for read in [&b""[..], b"\n\n", b"data: a\n\n"] {
        let mut input = read;
        assert_eq!(decoder.decode(&mut input).err(), Some(error));
        assert_eq!(input, read, "an input after the error is left as it is");
    }
    assert!(decoder.tail_event().is_none());
}

#[test]
fn damage_is_found_when_the_block_is_whole() {
    for bad in [
        &b"\xFF"[..],
        b"\xC0\x80",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"\xE4\xB8",
    ] {
        let block = [b"data: ", bad, b"\n\n"].concat();
        for size in 1..=block.len() {
            let outcome = check::agrees(&block, &[size; 9], Limits::default());
            assert_eq!(outcome.error, Some(DecodeError::InvalidUtf8), "{bad:?}");
        }
        let torn = &block[..block.len() - 1];
        let outcome = check::agrees(torn, &[7], Limits::default());
        assert_eq!((outcome.error, outcome.tail_event), (None, None));
    }
}

#[test]
fn neither_debug_form_shows_content() {
    let mut decoder = Decoder::new(Limits::default());
    let mut input = &b"event: e\ndata: secret\n\ndata: secret"[..];
    let shown = format!("{:?}", decoder.decode(&mut input).unwrap().unwrap());
    assert_eq!(shown, "Event { name: Some(\"e\"), bytes: 22, .. }");
    assert!(decoder.decode(&mut input).unwrap().is_none());
    assert!(!format!("{decoder:?}").contains("secret"));
}
