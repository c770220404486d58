//! A request as bytes: its head, and the frame around its body. Pure.
//!
//! The body decides the framing, whatever headers were given: its length if it knows it, chunks
//! otherwise.

use std::io::Write;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, HOST, MAX_FORWARDS, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body::Body;

/// How the end of a request body is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no body.
    Empty,
    /// This many bytes are left.
    Length(u64),
    Chunked,
}

impl Framing {
    pub(crate) fn of(body: &impl Body) -> Self {
        match body.size_hint().exact() {
            _ if body.is_end_stream() => Self::Empty,
            Some(0) => Self::Empty,
            Some(length) => Self::Length(length),
            None => Self::Chunked,
        }
    }
}

/// The request line and the headers. `parts` has an origin-form target.
pub(crate) fn head(parts: &Parts, framing: Framing) -> BytesMut {
    let target = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let size: usize = parts
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let mut head = BytesMut::with_capacity(size + target.len() + 64);
    head.put_slice(parts.method.as_str().as_bytes());
    head.put_u8(b' ');
    head.put_slice(target.as_bytes());
    head.put_slice(b" HTTP/1.1\r\n");
    if let Some(host) = parts.headers.get(HOST) {
        put_line(&mut head, &HOST, host);
    }
    for (name, value) in &parts.headers {
        if !matches!(*name, HOST | CONTENT_LENGTH | TRANSFER_ENCODING) {
            put_line(&mut head, name, value);
        }
    }
    match framing {
        // RFC 9110, 8.6: these are expected to have a body, and some backends insist on a length.
        Framing::Empty if matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) => {
            head.put_slice(b"content-length: 0\r\n");
        }
        Framing::Empty => {}
        Framing::Length(length) => {
            put_number(&mut head, format_args!("content-length: {length}\r\n"));
        }
        Framing::Chunked => head.put_slice(b"transfer-encoding: chunked\r\n"),
    }
    head.put_slice(b"\r\n");
    head
}

/// The line in front of a chunk.
pub(crate) fn put_chunk_size(out: &mut BytesMut, size: usize) {
    put_number(out, format_args!("{size:x}\r\n"));
}

/// What comes behind a chunk.
pub(crate) const CHUNK_END: &[u8] = b"\r\n";

/// What comes behind the last chunk.
pub(crate) const CHUNK_END_AND_LAST: &[u8] = b"\r\n0\r\n\r\n";

/// The last chunk, with trailers.
pub(crate) fn last_chunk(trailers: &HeaderMap) -> Bytes {
    let mut last = BytesMut::from(&b"0\r\n"[..]);
    for (name, value) in trailers {
        if !NO_TRAILERS.contains(name) {
            put_line(&mut last, name, value);
        }
    }
    last.put_slice(b"\r\n");
    last.freeze()
}

fn put_line(out: &mut BytesMut, name: &HeaderName, value: &HeaderValue) {
    out.put_slice(name.as_str().as_bytes());
    out.put_slice(b": ");
    out.put_slice(value.as_bytes());
    out.put_slice(b"\r\n");
}

fn put_number(out: &mut BytesMut, line: std::fmt::Arguments<'_>) {
    out.writer().write_fmt(line).expect("memory takes all");
}

/// RFC 9110, 6.5.1: what frames, routes or authorizes a message, or says how to read it, is no
/// trailer. A backend that merged them would be told another request than the one that was checked.
const NO_TRAILERS: [HeaderName; 13] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    HOST,
    MAX_FORWARDS,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
];
