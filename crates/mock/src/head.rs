//! Heads: reading a request's, writing an answer's.

use bytes::{Buf, BytesMut};
use http::{Method, StatusCode};

/// Larger request heads are refused.
const LARGEST: usize = 256 * 1024;
/// More header lines are refused.
const MOST_LINES: usize = 256;

/// A request head.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) version: u8,
    pub(crate) headers: Vec<(String, String)>,
}

/// How the body of a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(u64),
    Chunked,
}

/// The client's bytes are no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bad request")]
pub(crate) struct BadRequest;

impl RequestHead {
    /// Takes a head from the front of `input`, if it is complete.
    pub(crate) fn take(input: &mut BytesMut) -> Result<Option<Self>, BadRequest> {
        let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
        let mut request = httparse::Request::new(&mut lines);
        let httparse::Status::Complete(size) = request.parse(input).map_err(|_| BadRequest)? else {
            return if input.len() > LARGEST {
                Err(BadRequest)
            } else {
                Ok(None)
            };
        };
        let method = request.method.unwrap_or_default();
        let head = Self {
            method: Method::from_bytes(method.as_bytes()).map_err(|_| BadRequest)?,
            target: request.path.unwrap_or_default().to_owned(),
            version: 10 + request.version.unwrap_or(1),
            headers: request
                .headers
                .iter()
                .map(|line| {
                    (
                        line.name.to_owned(),
                        String::from_utf8_lossy(line.value).into_owned(),
                    )
                })
                .collect(),
        };
        input.advance(size);
        Ok(Some(head))
    }

    /// The values of all headers of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether a list-valued header has this member, in any case.
    pub(crate) fn lists(&self, name: &str, member: &str) -> bool {
        self.all(name)
            .flat_map(|line| line.split(','))
            .any(|one| one.trim().eq_ignore_ascii_case(member))
    }

    /// Whether the client wants to send another request.
    pub(crate) fn keep_alive(&self) -> bool {
        match self.version {
            10 => self.lists("connection", "keep-alive"),
            _ => !self.lists("connection", "close"),
        }
    }

    /// How the body is framed. Contradictions are refused: an honest server does not guess.
    pub(crate) fn body(&self) -> Result<BodyFraming, BadRequest> {
        let mut lengths = self.all("content-length");
        let length = match (lengths.next(), lengths.next()) {
            (None, _) => None,
            (Some(length), None) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(length.parse().map_err(|_| BadRequest)?)
            }
            _ => return Err(BadRequest),
        };
        let coded = self.all("transfer-encoding").next().is_some();
        match (coded, length) {
            (true, None) if self.lists("transfer-encoding", "chunked") => Ok(BodyFraming::Chunked),
            (true, _) => Err(BadRequest),
            (false, length) => Ok(BodyFraming::Length(length.unwrap_or(0))),
        }
    }
}

/// An answer's head in the making. Lines are written as they come, checked by nobody.
#[derive(Debug)]
pub(crate) struct ResponseHead(Vec<u8>);

impl ResponseHead {
    pub(crate) fn new(version: u8, status: u16) -> Self {
        let reason = StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason());
        let minor = version % 10;
        let reason = reason.unwrap_or("Unknown");
        Self(format!("HTTP/1.{minor} {status} {reason}\r\n").into_bytes())
    }

    pub(crate) fn line(&mut self, name: &str, value: &str) -> &mut Self {
        for part in [name, ": ", value, "\r\n"] {
            self.0.extend_from_slice(part.as_bytes());
        }
        self
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"\r\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> RequestHead {
        RequestHead::take(&mut BytesMut::from(text))
            .unwrap()
            .unwrap()
    }

    #[track_caller]
    fn check(lines: &str, body: Result<BodyFraming, BadRequest>) {
        assert_eq!(
            head(&format!("POST / HTTP/1.1\r\n{lines}\r\n")).body(),
            body,
            "{lines}"
        );
    }

    #[test]
    fn body_framing() {
        check("", Ok(BodyFraming::Length(0)));
        check("Content-Length: 5\r\n", Ok(BodyFraming::Length(5)));
        check("Transfer-Encoding: Chunked\r\n", Ok(BodyFraming::Chunked));
        check(
            "content-length: 5\r\ntransfer-encoding: chunked\r\n",
            Err(BadRequest),
        );
        check(
            "content-length: 5\r\ncontent-length: 5\r\n",
            Err(BadRequest),
        );
        check("content-length: +5\r\n", Err(BadRequest));
        check("transfer-encoding: gzip\r\n", Err(BadRequest));
    }

    #[test]
    fn keep_alive_by_version() {
        assert!(head("GET / HTTP/1.1\r\n\r\n").keep_alive());
        assert!(!head("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").keep_alive());
        assert!(!head("GET / HTTP/1.0\r\n\r\n").keep_alive());
    }
}
