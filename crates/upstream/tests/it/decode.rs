//! Content codings: what comes out, when, and where it stops.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use streamweld_upstream::{Coding, DecodeError, Decoder};

const TEXT: &[u8] = b"data: one\n\ndata: two\n\ndata: three\n\n";

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Decodes `encoded` in pieces of `size`.
fn decode(coding: Coding, encoded: &[u8], size: usize) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(coding);
    let mut out = Vec::new();
    for piece in encoded.chunks(size) {
        out.extend_from_slice(&decoder.push(Bytes::copy_from_slice(piece))?);
    }
    decoder.finish()?;
    Ok(out)
}

#[track_caller]
fn check(coding: Coding, encoded: &[u8], expected: &[u8]) {
    for size in 1..=encoded.len() {
        assert_eq!(
            decode(coding, encoded, size).unwrap(),
            expected,
            "by {size}"
        );
    }
}

#[test]
fn every_coding_decodes_however_it_is_cut() {
    check(Coding::Identity, TEXT, TEXT);
    check(Coding::Gzip, &gzip(TEXT), TEXT);
    check(Coding::Deflate, &zlib(TEXT), TEXT);
    check(Coding::Deflate, &raw_deflate(TEXT), TEXT);
}

#[test]
fn gzip_members_are_one_text() {
    let two = [gzip(TEXT), gzip(TEXT)].concat();
    check(Coding::Gzip, &two, &[TEXT, TEXT].concat());
}

#[test]
fn what_was_flushed_comes_out_at_once() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut decoder = Decoder::new(Coding::Gzip);
    for event in ["data: one\n\n", "data: two\n\n"] {
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
        let piece = std::mem::take(encoder.get_mut());
        assert_eq!(decoder.push(piece.into()).unwrap(), event);
    }
}

#[test]
fn a_bomb_is_stopped() {
    let zeros = vec![0; 8 * 1024 * 1024];
    for size in [100, usize::MAX] {
        assert_eq!(
            decode(Coding::Gzip, &gzip(&zeros), size),
            Err(DecodeError::Bomb)
        );
        assert_eq!(
            decode(Coding::Deflate, &zlib(&zeros), size),
            Err(DecodeError::Bomb)
        );
    }
}

#[test]
fn a_little_that_expands_a_lot_is_no_bomb() {
    let zeros = vec![0; 1024 * 1024];
    assert_eq!(decode(Coding::Gzip, &gzip(&zeros), 10), Ok(zeros));
}

#[test]
fn corruption_is_found_and_stays() {
    let mut decoder = Decoder::new(Coding::Gzip);
    let junk = Bytes::from_static(b"not gzip at all");
    assert_eq!(decoder.push(junk), Err(DecodeError::Corrupt));
    assert_eq!(decoder.push(gzip(TEXT).into()), Err(DecodeError::Corrupt));
    assert_eq!(decoder.finish(), Err(DecodeError::Corrupt));
}

#[test]
fn a_wrong_checksum_is_found_at_the_end() {
    let mut wrong_sum = gzip(TEXT);
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    let result = decode(Coding::Gzip, &wrong_sum, usize::MAX);
    assert_eq!(result, Err(DecodeError::Incomplete));
}

#[test]
fn an_unfinished_body_is_incomplete() {
    for (coding, whole) in [
        (Coding::Gzip, gzip(TEXT)),
        (Coding::Deflate, zlib(TEXT)),
        (Coding::Deflate, raw_deflate(TEXT)),
    ] {
        for length in 1..whole.len() {
            let result = decode(coding, &whole[..length], usize::MAX);
            assert_eq!(result, Err(DecodeError::Incomplete), "{coding:?} {length}");
        }
    }
}

#[test]
fn names() {
    for (name, coding) in [
        ("", Ok(Coding::Identity)),
        ("identity", Ok(Coding::Identity)),
        ("gzip", Ok(Coding::Gzip)),
        (" X-GZip ", Ok(Coding::Gzip)),
        ("deflate", Ok(Coding::Deflate)),
        ("br", Err(DecodeError::Unsupported)),
        ("gzip, gzip", Err(DecodeError::Unsupported)),
    ] {
        assert_eq!(Coding::parse(name.as_bytes()), coding, "{name}");
    }
}
