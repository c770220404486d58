//! A response head as bytes: where it ends, and what it says. Pure.
//!
//! The end is looked for first and each byte only once, so that a head which trickles in is not
//! parsed again and again. Lines have to end in CRLF: with other ends two readers may see two heads.
//! The lines are httparse's to read, at its strictest, which is how it comes.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode, Version};

use crate::head::{BadHead, MAX_HEADERS};

/// Looks for the end of a head in bytes that grow.
#[derive(Debug, Default)]
pub(crate) struct EndOfHead {
    /// Bytes looked at.
    seen: usize,
    /// Where the line at `seen` starts.
    line: usize,
}

impl EndOfHead {
    /// The length of the head, once it is complete. `bytes` holds what it did last time, and more.
    pub(crate) fn find(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, BadHead> {
        if self.seen < START.len() && !bytes.iter().zip(START).all(|(byte, start)| byte == start) {
            return Err(BadHead::NotHttp);
        }
        while let Some(at) = bytes[self.seen..].iter().position(|&byte| byte == b'\n') {
            let line_feed = self.seen + at;
            let line = bytes[self.line..line_feed].strip_suffix(b"\r");
            let line = line.ok_or(BadHead::LineEnd)?;
            self.seen = line_feed + 1;
            self.line = self.seen;
            if line.is_empty() {
                let fits = self.seen <= limit;
                return fits.then_some(Some(self.seen)).ok_or(BadHead::TooLarge);
            }
        }
        self.seen = bytes.len();
        if self.seen > limit {
            return Err(BadHead::TooLarge);
        }
        Ok(None)
    }
}

/// Reads a complete head.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parts, BadHead> {
    // One copy, which all values share.
    let bytes = Bytes::copy_from_slice(bytes);
    let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut lines);
    match head.parse(&bytes) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Ok(_) => return Err(BadHead::LineEnd),
        Err(httparse::Error::TooManyHeaders) => return Err(BadHead::TooManyHeaders),
        Err(error) => return Err(BadHead::Malformed(error)),
    }
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.version = match head.version {
        Some(1) => Version::HTTP_11,
        Some(0) => Version::HTTP_10,
        _ => return Err(BadHead::NotHttp),
    };
    let status = head.code.map(StatusCode::from_u16);
    parts.status = status.and_then(Result::ok).ok_or(BadHead::Status)?;
    parts.headers = headers(&bytes, head.headers)?;
    Ok(parts)
}

/// Header lines, or trailers, that lie in `bytes`.
pub(crate) fn headers(bytes: &Bytes, lines: &[httparse::Header<'_>]) -> Result<HeaderMap, BadHead> {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        let name = name.map_err(|_| BadHead::Malformed(httparse::Error::HeaderName))?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(line.value));
        let value = value.map_err(|_| BadHead::Malformed(httparse::Error::HeaderValue))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// What every response starts with. A peer that speaks first, or something else, is known by it
/// before it has sent a whole head, which it may never do.
const START: &[u8] = b"HTTP/1.";
