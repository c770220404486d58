//! Requests that two readers could take differently, and what HTTP/1 needs beside an answer itself.

use http::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Version};

use crate::body::Body;
use crate::client_body::Asked;

/// The longest target.
const MAX_TARGET: usize = 16 << 10;

/// What the connection of a request needs to be told with its answer.
pub(crate) struct Framing {
    http1: bool,
    /// The connection is not used again. Always so after a chunked request: two readers of one may disagree where it
    /// ends.
    close: bool,
}

impl Framing {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let http1 = request.version() <= Version::HTTP_11;
        Self {
            http1,
            close: http1 && request.headers().contains_key(TRANSFER_ENCODING),
        }
    }

    /// The answer to what the HTTP implementation lets through and is no valid request all the same.
    pub(crate) fn refuse_unusable<B>(&mut self, request: &Request<B>) -> Option<Response<Body>> {
        let status = unusable(request)?;
        self.close = self.http1;
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = status;
        Some(response)
    }

    /// Tells the connection of this answer. Whether the body of a client that still waits will come is its own decision,
    /// so that nobody could tell where its next request begins.
    pub(crate) fn finish(self, asked: &Asked, response: &mut Response<Body>) {
        asked.is_answered();
        let close = self.close || (self.http1 && asked.is_waiting());
        if close && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// A target without a path, which only `CONNECT` may have, or one that is too long; a host that is told twice, or not at
/// all where it has to be (RFC 9112, 3.2): what stands before this proxy may have looked at another one.
fn unusable<B>(request: &Request<B>) -> Option<StatusCode> {
    match request.uri().path_and_query() {
        None if request.method() != Method::CONNECT => return Some(StatusCode::BAD_REQUEST),
        Some(target) if target.as_str().len() > MAX_TARGET => {
            return Some(StatusCode::URI_TOO_LONG);
        }
        Some(_) | None => {}
    }
    match request.headers().get_all(HOST).iter().count() {
        1 => None,
        0 if request.version() != Version::HTTP_11 => None,
        _ => Some(StatusCode::BAD_REQUEST),
    }
}
