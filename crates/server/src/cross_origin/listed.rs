//! Pages of the origins that the operator lists (protocol.md 4.7). For them this proxy decides, and not the backend.
//!
//! No cookie is ever allowed: a page shows who it is by a field, which nobody but the page itself can set.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{Method, Response, StatusCode};

use super::{MAX_KEPT, OURS, is_preflight};
use crate::body::Body;
use crate::config::PageOrigin;

/// What the list says of one request.
pub(crate) enum Listed {
    /// There is no list.
    Nobody,
    /// There is one, without whoever asks.
    Other,
    /// A page of this origin asks.
    Page(HeaderValue),
    /// Its browser asks what it may, with fields of these names.
    Preflight(HeaderValue, Option<HeaderValue>),
}

impl Listed {
    /// `subject` is a field that no page may set: it is for the gateway to say.
    pub(crate) fn of(
        list: &[PageOrigin],
        subject: Option<&str>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Self {
        if list.is_empty() {
            return Self::Nobody;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) if list.iter().any(|one| one.as_str() == origin) => {
                if is_preflight(method, headers) {
                    Self::Preflight(origin.clone(), fields(headers, subject))
                } else {
                    Self::Page(origin.clone())
                }
            }
            (_, _) => Self::Other,
        }
    }

    /// The answer to a preflight, which is [finished](Listed::finish) like every other.
    pub(crate) fn answer(&self) -> Option<Response<Body>> {
        matches!(self, Self::Preflight(..)).then(|| {
            let mut response = Response::new(Body::Empty);
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        })
    }

    /// Says in an answer what a page may do with it.
    pub(crate) fn finish(self, response: &mut Response<Body>) {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        let headers = response.headers_mut();
        match self {
            Self::Nobody => {}
            Self::Other => vary(headers, "Origin"),
            Self::Page(origin) => {
                take_away(headers);
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, OURS);
                headers.append(
                    ACCESS_CONTROL_EXPOSE_HEADERS,
                    HeaderValue::from_static("Retry-After"),
                );
                vary(headers, "Origin");
            }
            Self::Preflight(origin, fields) => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                if let Some(fields) = fields {
                    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fields);
                }
                headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
                vary(
                    headers,
                    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
                );
            }
        }
    }
}

/// The fields that a page wants to send: any that have names. A browser has taken out those that no page may set.
fn fields(headers: &HeaderMap, subject: Option<&str>) -> Option<HeaderValue> {
    let values = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let values: Vec<&[u8]> = values.map(HeaderValue::as_bytes).collect();
    let value = HeaderValue::from_bytes(&values.join(&b", "[..])).ok()?;
    let is_name = |name: &str| name.trim().parse::<HeaderName>().is_ok();
    let fits = value.len() <= MAX_KEPT && value.to_str().ok()?.split(',').all(is_name);
    let Some(subject) = subject.filter(|_| fits) else {
        return fits.then_some(value);
    };
    let names = value.to_str().ok()?.split(',').map(str::trim);
    let names: Vec<&str> = names
        .filter(|name| !name.eq_ignore_ascii_case(subject))
        .collect();
    HeaderValue::from_str(&names.join(", ")).ok()
}

/// What the backend says to pages, but for the names that it exposes: two answers to one question would be none.
fn take_away(headers: &mut HeaderMap) {
    let theirs: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("access-control-"))
        .filter(|name| **name != ACCESS_CONTROL_EXPOSE_HEADERS)
        .cloned()
        .collect();
    for name in theirs {
        headers.remove(name);
    }
    // Where it allows an origin itself, ours stand there already.
    let exposed: Vec<HeaderValue> = headers
        .get_all(ACCESS_CONTROL_EXPOSE_HEADERS)
        .iter()
        .filter(|value| **value != OURS)
        .cloned()
        .collect();
    headers.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
    for value in exposed {
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, value);
    }
}

/// A cache must not give the answer of one page to another.
fn vary(headers: &mut HeaderMap, on: &'static str) {
    let says_so = |value: &HeaderValue| {
        value.to_str().is_ok_and(|value| {
            let mut names = value.split(',').map(str::trim);
            names.any(|name| name == "*" || name.eq_ignore_ascii_case(on))
        })
    };
    if !headers.get_all(VARY).iter().any(says_so) {
        headers.append(VARY, HeaderValue::from_static(on));
    }
}

/// Those that a page may use at all.
const METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
/// In seconds: the longest that Chromium keeps to. What is no longer allowed is refused by the answer itself.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
