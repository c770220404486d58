//! Which response heads are believed.
//!
//! The end of a response decides where the next one starts, so a head that leaves room for two
//! opinions about it is refused, and its connection dropped. HTTP/1.1 is read by this crate itself
//! (`h1`), HTTP/2 by hyper. What the rules are, and where they are kept:
//!
//! | the backend sends | what is done | where |
//! |---|---|---|
//! | content-length and transfer-encoding | refused | here |
//! | a transfer-encoding that is not one lone `chunked` | refused | here |
//! | transfer-encoding in HTTP/1.0 | refused | here |
//! | differing or malformed content-lengths, a body or not | refused | here |
//! | equal content-lengths | made one | here |
//! | 101 that nobody asked for, or before the whole request was sent | refused | here, `h1::exchange` |
//! | 100, 102, 103 before the response | dropped; refused if they announce a body, or beyond 32 | here, `h1::receiving` |
//! | over 100 headers, or too many bytes | refused, and in HTTP/2 too | here, `h1::response` |
//! | folded, malformed header lines, NUL or CR in a value | refused | `h1::response` |
//! | a line that ends in LF alone, an empty line first | refused | `h1::response` |
//! | a bad chunk size, a chunk or trailer line that does not end in CRLF | fails the body | `h1::chunked` |
//! | bytes behind the end, or a body where none can be | gives the response, closes | `h1::body` |
//! | bytes on a connection that nobody uses | closes | `h1::connection` |
//! | HTTP/2: RST_STREAM(NO_ERROR) in mid-body | a cut; hyper **calls the body complete** | `source` |
//! | HTTP/2: GOAWAY(NO_ERROR) that disowns a stream in mid-body | a cut; the same of hyper | `source` |
//!
//! `tests/it/heads.rs` and `tests/it/source.rs` hold the rows, `tests/it/hyper_alone.rs` what is
//! said of hyper. What no client can see: bytes behind the end that arrive only after the next
//! request was sent are that request's answer.

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};

/// How the end of a body shows in HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no body.
    Empty,
    /// This many bytes.
    Length(u64),
    /// By its last chunk.
    Chunked,
    /// By the end of the connection, which a cut looks like as well.
    UntilClose,
}

/// Why a response head was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHead {
    #[error("not HTTP/1")]
    NotHttp,
    #[error("a line that does not end in CRLF")]
    LineEnd,
    #[error("malformed")]
    Malformed(#[source] httparse::Error),
    #[error("a status that is none")]
    Status,
    #[error("more than the largest head allowed")]
    TooLarge,
    #[error("more than {MAX_HEADERS} headers")]
    TooManyHeaders,
    #[error("both content-length and transfer-encoding")]
    LengthAndEncoding,
    #[error("a transfer-encoding other than chunked, or in HTTP/1.0")]
    Encoding,
    #[error("an invalid content-length, or several that differ")]
    Length,
    #[error("101 without a requested upgrade")]
    UnaskedUpgrade,
    #[error("101 before the request was sent")]
    EarlyUpgrade,
    #[error("an interim response with a body")]
    InterimBody,
    #[error("too many interim responses")]
    TooManyInterim,
}

/// The most headers in one head, and in one trailer section.
pub(crate) const MAX_HEADERS: usize = 100;

/// What was asked, as far as it matters for the response.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) upgrade: bool,
}

/// Refuses a head that cannot be trusted. Several equal lengths become one.
pub(crate) fn check(head: &mut Parts, asked: &Asked) -> Result<(), BadHead> {
    frame(head, asked).map(|_| ())
}

/// [`check`], and how the body ends in HTTP/1.1.
pub(crate) fn frame(head: &mut Parts, asked: &Asked) -> Result<Framing, BadHead> {
    if head.headers.len() > MAX_HEADERS {
        return Err(BadHead::TooManyHeaders);
    }
    if head.status == StatusCode::SWITCHING_PROTOCOLS && !asked.upgrade {
        return Err(BadHead::UnaskedUpgrade);
    }
    let length = merge_lengths(&mut head.headers)?;
    let has_encoding = head.headers.contains_key(TRANSFER_ENCODING);
    if length.is_some() && has_encoding {
        return Err(BadHead::LengthAndEncoding);
    }
    if has_encoding && !(head.version >= Version::HTTP_11 && is_only_chunked(&head.headers)) {
        return Err(BadHead::Encoding);
    }
    if is_interim(head.status) {
        return match (length, has_encoding) {
            (None | Some(0), false) => Ok(Framing::Empty),
            _ => Err(BadHead::InterimBody),
        };
    }
    Ok(match length {
        _ if is_bodyless(head.status, asked) => Framing::Empty,
        Some(length) => Framing::Length(length),
        None if has_encoding => Framing::Chunked,
        None => Framing::UntilClose,
    })
}

/// Whether another response follows, to the same request.
pub(crate) fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

/// Whether the connection may be used again behind this response.
pub(crate) fn keeps_alive(head: &Parts) -> bool {
    let says = |option| names_option(&head.headers, option);
    !says("close") && (head.version >= Version::HTTP_11 || says("keep-alive"))
}

/// Whether `Connection` names this option.
pub(crate) fn names_option(headers: &HeaderMap, option: &str) -> bool {
    let mut values = headers.get_all(CONNECTION).iter();
    values.any(|value| {
        let mut options = value.as_bytes().split(|&byte| byte == b',');
        options.any(|named| named.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
    })
}

fn is_bodyless(status: StatusCode, asked: &Asked) -> bool {
    asked.method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Any other coding would have to be undone here, since the header does not go on to the client.
fn is_only_chunked(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter();
    let first = values.next().is_some_and(|value| {
        let value = value.as_bytes().trim_ascii();
        value.eq_ignore_ascii_case(b"chunked")
    });
    first && values.next().is_none()
}

fn merge_lengths(headers: &mut HeaderMap) -> Result<Option<u64>, BadHead> {
    let mut length: Option<&str> = None;
    let mut count = 0;
    for value in headers.get_all(CONTENT_LENGTH) {
        for part in value.to_str().map_err(|_| BadHead::Length)?.split(',') {
            let part = part.trim_ascii();
            if length.is_some_and(|length| length != part) {
                return Err(BadHead::Length);
            }
            length = Some(part);
            count += 1;
        }
    }
    let Some(text) = length else {
        return Ok(None);
    };
    // The number parser would take a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadHead::Length);
    }
    let length = text.parse().map_err(|_| BadHead::Length)?;
    if count > 1 {
        let one = HeaderValue::from_str(text).map_err(|_| BadHead::Length)?;
        headers.insert(CONTENT_LENGTH, one);
    }
    Ok(Some(length))
}
