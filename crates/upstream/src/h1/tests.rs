//! The pure parts of HTTP/1.1: tables, every cut, and random bytes against the oracle.

use std::fs;
use std::path::Path;

use http::Method;
use proptest::prelude::*;

use super::check::{self, End, Head, Outcome, asked, run};
use crate::head::{BadHead, Framing};

fn get(response: &[u8]) -> Outcome {
    for at in 0..=response.len() {
        check::check(response, &Method::GET, &[at]);
    }
    check::check(response, &Method::GET, &vec![1; response.len()]);
    run(&[response], &asked(Method::GET))
}

#[track_caller]
fn bad_head(response: &str, error: BadHead) {
    assert_eq!(
        get(response.as_bytes()).head,
        Head::Bad(error),
        "{response:?}"
    );
}

#[track_caller]
fn framed(response: &str, framing: Framing) {
    match get(response.as_bytes()).head {
        Head::Whole { framing: seen, .. } => assert_eq!(seen, framing, "{response:?}"),
        head => panic!("{response:?}: {head:?}"),
    }
}

#[test]
fn framings() {
    framed(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        Framing::Length(5),
    );
    framed(
        "HTTP/1.1 200 OK\r\nContent-Length: 05, 05\r\n\r\n",
        Framing::Length(5),
    );
    framed(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n",
        Framing::Chunked,
    );
    framed("HTTP/1.1 200\r\n\r\n", Framing::UntilClose);
    framed("HTTP/1.0 200 OK\r\n\r\n", Framing::UntilClose);
    framed("HTTP/1.1 204 No Content\r\n\r\n", Framing::Empty);
    framed(
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
        Framing::Empty,
    );
    framed(
        "HTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        Framing::UntilClose,
    );
    framed(
        "HTTP/1.1 100 C\r\ncontent-length: 0\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
        Framing::Empty,
    );
    framed("HTTP/1.1 999 Odd \x7e\r\n\r\n", Framing::UntilClose);
}

#[test]
fn heads_that_are_refused() {
    use BadHead::*;
    for start in [
        "HTTP/2.0 200 OK",
        "HTTP/11 200 OK",
        " HTTP/1.1 200 OK",
        "\r\nHTTP/1.1 200",
        "SSH-2.0-x",
    ] {
        bad_head(&format!("{start}\r\n\r\n"), NotHttp);
    }
    bad_head("H\n", NotHttp);
    for line_end in [
        "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\na: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n\n",
    ] {
        bad_head(line_end, LineEnd);
    }
    for (lines, error) in [
        ("HTTP/1.1 2x0 OK", httparse::Error::Status),
        ("HTTP/1.1 20", httparse::Error::Status),
        ("HTTP/1.1  200 OK", httparse::Error::Status),
        ("HTTP/1.1 2000 OK", httparse::Error::Status),
        ("HTTP/1.x 200 OK", httparse::Error::Version),
        ("HTTP/1.1 200 OK\r\na: b\r\n c", httparse::Error::HeaderName),
        ("HTTP/1.1 200 OK\r\n a: b", httparse::Error::HeaderName),
        ("HTTP/1.1 200 OK\r\na : b", httparse::Error::HeaderName),
        ("HTTP/1.1 200 OK\r\na b: c", httparse::Error::HeaderName),
        ("HTTP/1.1 200 OK\r\n: b", httparse::Error::HeaderName),
        ("HTTP/1.1 200 OK\r\na", httparse::Error::HeaderName),
        ("HTTP/1.1 200 OK\r\na: b\0c", httparse::Error::HeaderValue),
        ("HTTP/1.1 200 OK\r\na: b\rc", httparse::Error::HeaderValue),
        ("HTTP/1.1 200 OK\r\na: b\r\r", httparse::Error::HeaderValue),
    ] {
        bad_head(&format!("{lines}\r\n\r\n"), Malformed(error));
    }
    bad_head("HTTP/1.1 099 OK\r\n\r\n", Status);
    bad_head("HTTP/1.1 101 S\r\n\r\n", UnaskedUpgrade);
    bad_head(
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        Encoding,
    );
    bad_head("HTTP/1.1 103 E\r\ncontent-length: 5\r\n\r\n", InterimBody);
    bad_head(
        "HTTP/1.1 100 C\r\ntransfer-encoding: chunked\r\n\r\n",
        InterimBody,
    );
    for length in [
        "+5",
        "-1",
        "0x5",
        "5x",
        "5,",
        ",5",
        "",
        "5 5",
        "99999999999999999999",
    ] {
        bad_head(
            &format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"),
            Length,
        );
    }
}

#[test]
fn heads_are_bounded() {
    let head = |length: usize| {
        let rest = "y".repeat(length - "HTTP/1.1 200 OK\r\nx: \r\n\r\n".len());
        format!("HTTP/1.1 200 OK\r\nx: {rest}\r\n\r\n")
    };
    let seen = |response: String| run(&[response.as_bytes()], &asked(Method::GET)).head;
    assert!(matches!(seen(head(check::MAX_HEAD)), Head::Whole { .. }));
    assert_eq!(
        seen(head(check::MAX_HEAD + 1)),
        Head::Bad(BadHead::TooLarge)
    );
    let endless = format!("HTTP/1.1 200 {}", "y".repeat(check::MAX_HEAD));
    assert_eq!(seen(endless), Head::Bad(BadHead::TooLarge));

    let lines = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert!(matches!(seen(lines(100)), Head::Whole { .. }));
    assert_eq!(seen(lines(101)), Head::Bad(BadHead::TooManyHeaders));

    let interim = |count: usize| "HTTP/1.1 100 C\r\n\r\n".repeat(count) + "HTTP/1.1 200 OK\r\n\r\n";
    assert!(matches!(seen(interim(32)), Head::Whole { .. }));
    assert_eq!(seen(interim(33)), Head::Bad(BadHead::TooManyInterim));
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[track_caller]
fn chunks(body: &str, payload: &str, end: End) {
    let outcome = get(format!("{CHUNKED}{body}").as_bytes());
    let seen = String::from_utf8_lossy(&outcome.payload);
    assert_eq!((&*seen, outcome.end), (payload, end), "{body:?}");
}

#[test]
fn chunks_that_are_taken() {
    chunks("0\r\n\r\n", "", End::Whole(true));
    chunks(
        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        "abcde",
        End::Whole(true),
    );
    chunks(
        "A;x=\"y\";z \r\n0123456789\r\n0;last\r\n\r\n",
        "0123456789",
        End::Whole(true),
    );
    chunks(
        "0000000000000001 \t\r\na\r\n000\r\n\r\n",
        "a",
        End::Whole(true),
    );
    chunks("1\r\na\r\n0\r\nx: y\r\nz:\r\n\r\n", "a", End::Whole(true));
    chunks("1\r\na\r\n0\r\n\r\nX", "a", End::Whole(false));
    chunks("ffffffffffffffff\r\nabc", "abc", End::Open);
}

#[test]
fn chunks_that_are_refused() {
    for body in [
        "+1\r\n",
        "-1\r\n",
        "0x1\r\n",
        "x\r\n",
        "\r\n",
        " 1\r\n",
        "00000000000000001\r\n",
        "1 1\r\n",
        "1;\0\r\n",
        "1;\x7f\r\n",
        "1\n",
        "1;x\n",
        "1\rX",
    ] {
        chunks(body, "", End::Bad);
    }
    for body in [
        "1\r\nab\r\n",
        "1\r\na\n",
        "1\r\na\rX",
        "1\r\na\r\n0\r\nx\r\n\r\n",
        "1\r\na\r\n0\r\nx: y\n\r\n",
        "1\r\na\r\n0\r\nx : y\r\n\r\n",
        "1\r\na\r\n0\r\n x: y\r\n\r\n",
        "1\r\na\r\n0\r\nx: y\r\n z\r\n\r\n",
        "1\r\na\r\n0\r\nx: \0\r\n\r\n",
        "1\r\na\r\n0\r\n\n",
    ] {
        chunks(body, "a", End::Bad);
    }
}

#[test]
fn what_comes_around_chunks_is_bounded() {
    let end = |body: String| {
        run(
            &[format!("{CHUNKED}{body}").as_bytes()],
            &asked(Method::GET),
        )
        .end
    };
    let extension = |length: usize| format!("0;{}\r\n\r\n", "x".repeat(length - 1));
    assert_eq!(end(extension(4096)), End::Whole(true));
    assert_eq!(end(extension(4097)), End::Bad);
    let trailers = |count: usize| format!("0\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert_eq!(end(trailers(100)), End::Whole(true));
    assert_eq!(end(trailers(101)), End::Bad);
    let trailer = |length: usize| format!("0\r\na:{}\r\n\r\n", "b".repeat(length - 6));
    assert_eq!(end(trailer(16 * 1024)), End::Whole(true));
    assert_eq!(end(trailer(16 * 1024 + 1)), End::Bad);
}

/// Bytes that are mostly a chunked body.
fn nearly_chunked() -> impl Strategy<Value = Vec<u8>> {
    let chunk = prop::collection::vec(any::<u8>(), 0..40)
        .prop_map(|data| [format!("{:X}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat());
    let token = prop::sample::select(vec![
        &b"0\r\n"[..],
        b"\r\n",
        b"\r",
        b"\n",
        b"0",
        b"f",
        b";",
        b";x=y",
        b" ",
        b"x: y\r\n",
        b":",
        b"\0",
    ]);
    let piece = prop_oneof![5 => chunk, 3 => token.prop_map(<[u8]>::to_vec)];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunked_body_is_what_the_oracle_says(
        body in nearly_chunked(),
        sizes in prop::collection::vec(0..60_usize, 0..12),
    ) {
        check::check(&body, &Method::GET, &sizes);
    }

    #[test]
    fn any_response_is_the_same_however_it_is_cut(
        lines in prop::collection::vec("[a-cA-C:, 0-2\t]{0,12}(\r\n|\r\n|\r\n|\n|\r)", 0..8),
        length in prop::option::of(0..40_usize),
        body in nearly_chunked(),
        head in any::<bool>(),
        sizes in prop::collection::vec(0..60_usize, 0..12),
    ) {
        let length = length.map_or("transfer-encoding: chunked".to_owned(), |length| format!("content-length: {length}"));
        let start = format!("HTTP/1.1 200 OK\r\n{length}\r\n{}\r\n", lines.concat());
        let method = if head { Method::HEAD } else { Method::GET };
        check::check(&[start.as_bytes(), &body].concat(), &method, &sizes);
    }
}

/// What was found once stays found without a fuzzer.
#[test]
fn the_corpus_is_read_without_a_surprise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/h1_response");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let file = fs::read(entry.expect("a readable folder").path()).expect("a readable file");
        check::fuzz(&file);
        count += 1;
    }
    assert!(count > 10, "{count} files");
}
