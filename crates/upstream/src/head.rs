//! Which response heads are believed.
//!
//! The end of a response decides where the next one starts, so a head that leaves room for two
//! opinions about it is refused, and its connection dropped. Much of that hyper does by itself. This
//! is what hyper 1.12 (with hyper-util's pooled client) was measured to do, and what is done about
//! it; `tests/it/hyper_alone.rs` holds the measurement.
//!
//! | the backend sends | hyper alone | here |
//! |---|---|---|
//! | content-length and transfer-encoding | takes the chunks, keeps both headers, **uses the connection again** | refused |
//! | `transfer-encoding: gzip, chunked` | takes the chunks, leaves gzip to nobody, uses the connection again | refused |
//! | a transfer-encoding that does not end in chunked | reads until the connection ends | refused |
//! | transfer-encoding in HTTP/1.0 | refuses, closes | the same |
//! | differing or malformed content-lengths | refuses, closes | the same |
//! | the same where no body can be (HEAD, 204, 304) | does not look, uses the connection again | refused |
//! | equal content-lengths | takes it, keeps both headers | made one |
//! | bytes behind the end, in the same segment | gives the response, closes silently | the same |
//! | a body where none can be | gives the response, closes silently | the same |
//! | 101 that nobody asked for | gives it as a response, closes | refused |
//! | 100, 102, 103 before the response | dropped | the same |
//! | folded, malformed header lines, NUL or CR in a value | refuses, closes | the same |
//! | over 100 headers, or too many bytes | refuses, closes | the same; counted in HTTP/2, too |
//! | a bad chunk size | fails the body, closes | the same |
//! | HTTP/2: RST_STREAM(NO_ERROR) in mid-body | **calls the body complete** | a cut, see `source` |
//! | HTTP/2: GOAWAY(NO_ERROR) that disowns a stream in mid-body | **calls the body complete** | a cut |
//!
//! What no client can see: bytes behind the end that arrive only after the next request was sent
//! are that request's answer. hyper closes an idle connection as soon as anything arrives on it.
//! Interim responses are not counted; only the first byte timeout ends an endless row of them.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode};

use crate::connect::Spoken;

/// How the end of a body shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// By a length, by chunks, by HTTP/2, or there is no body.
    Explicit,
    /// By the end of the connection, which a cut looks like as well.
    UntilClose,
}

/// Why a response head was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHead {
    #[error("both content-length and transfer-encoding")]
    LengthAndEncoding,
    #[error("a transfer-encoding other than chunked")]
    Encoding,
    #[error("an invalid content-length, or several that differ")]
    Length,
    #[error("101 without a requested upgrade")]
    UnaskedUpgrade,
    #[error("more than {MAX_HEADERS} headers")]
    TooManyHeaders,
}

/// As many as hyper takes over HTTP/1.1; it does not count them over HTTP/2.
const MAX_HEADERS: usize = 100;

/// What was asked, as far as it matters for the response.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) upgrade: bool,
}

/// Refuses a head that cannot be trusted; says how the body ends otherwise. Several equal lengths
/// become one.
pub(crate) fn check(head: &mut Parts, asked: &Asked, spoken: Spoken) -> Result<Framing, BadHead> {
    if head.headers.len() > MAX_HEADERS {
        return Err(BadHead::TooManyHeaders);
    }
    if head.status == StatusCode::SWITCHING_PROTOCOLS && !asked.upgrade {
        return Err(BadHead::UnaskedUpgrade);
    }
    let has_length = merge_lengths(&mut head.headers)?;
    let has_encoding = head.headers.contains_key(TRANSFER_ENCODING);
    if has_length && has_encoding {
        return Err(BadHead::LengthAndEncoding);
    }
    if has_encoding && !is_only_chunked(&head.headers) {
        return Err(BadHead::Encoding);
    }
    if has_length || has_encoding || spoken == Spoken::Http2 || is_bodyless(head.status, asked) {
        Ok(Framing::Explicit)
    } else {
        Ok(Framing::UntilClose)
    }
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

/// Whether there is a length. hyper checks it too, except where it expects no body.
fn merge_lengths(headers: &mut HeaderMap) -> Result<bool, BadHead> {
    let mut length: Option<&[u8]> = None;
    let mut count = 0;
    for value in headers.get_all(CONTENT_LENGTH) {
        for part in value.as_bytes().split(|&byte| byte == b',') {
            let part = part.trim_ascii();
            let is_number = !part.is_empty() && part.iter().all(u8::is_ascii_digit);
            if !is_number || length.is_some_and(|length| length != part) {
                return Err(BadHead::Length);
            }
            length = Some(part);
            count += 1;
        }
    }
    let Some(length) = length else {
        return Ok(false);
    };
    if count > 1 {
        let length = http::HeaderValue::from_bytes(length).map_err(|_| BadHead::Length)?;
        headers.insert(CONTENT_LENGTH, length);
    }
    Ok(true)
}
