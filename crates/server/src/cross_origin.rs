//! What lets a page of another origin read an answer of ours (protocol.md 4.5).
//!
//! The backend decides, once, in the head that began a generation. What it said is kept beside the log and said again
//! to whoever attaches; without it a page could read the first connection and no other. Nothing is added that the
//! backend did not allow: our fields are exposed only where it has allowed an origin at all. Pages of [origins that the
//! operator lists](Listed) are another matter.

mod listed;

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{Method, Response};
use streamweld_generation::HeadFields;

use crate::body::Body;
use crate::error::Error;

pub(crate) use self::listed::Listed;

/// What a backend allows to pages, and that the fields of ours may be read with it.
#[derive(Debug)]
pub(crate) struct CrossOrigin(HeaderMap);

impl CrossOrigin {
    /// From what was [kept].
    pub(crate) fn of(kept: &HeadFields) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in kept {
            // They come from a head, so that they are good for one.
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                headers.append(name, value);
            }
        }
        expose_ours(&mut headers);
        Self(headers)
    }

    /// Makes an answer about its generation readable to the same pages. Only for a caller that was found to be allowed
    /// to read it: whether it is there at all is nobody else's business.
    pub(crate) fn share(
        self,
        answer: Result<Response<Body>, Error>,
    ) -> Result<Response<Body>, Error> {
        match answer {
            Ok(mut response) => {
                response.headers_mut().extend(self.0);
                Ok(response)
            }
            Err(error) => Err(self.tell(error)),
        }
    }

    /// The same for an error.
    pub(crate) fn tell(self, error: Error) -> Error {
        error.with_fields(self.0)
    }
}

/// What of a backend's head is kept for those who attach. All or nothing: half of what a backend said could be taken
/// for something that it did not say.
pub(crate) fn kept(head: &HeaderMap) -> HeadFields {
    let kept: Option<HeadFields> = head
        .iter()
        .filter(|(name, _)| **name == VARY || name.as_str().starts_with("access-control-"))
        .map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    kept.filter(|kept| {
        let bytes: usize = kept
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        bytes <= MAX_KEPT
    })
    .unwrap_or_default()
}

/// Lets a page read our fields, where it may read the answer. Without it a script never learns its stream id.
pub(crate) fn expose_ours(headers: &mut HeaderMap) {
    if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        // Also beside a `*` of the backend, which is no wildcard where a page sends credentials.
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, OURS);
    }
}

/// Whether a browser asks here, for a page, what a later request may hold.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Our fields.
const OURS: HeaderValue = HeaderValue::from_static(
    "X-Streamweld-Stream-Id, X-Streamweld-Durability, X-Streamweld-Request-Id, X-Streamweld-Resume-Url, \
     X-Streamweld-Tail, X-Streamweld-Verdict",
);
/// Far above what a policy takes, with every method and dozens of field names, and little beside the log of any answer.
const MAX_KEPT: usize = 4 << 10;
