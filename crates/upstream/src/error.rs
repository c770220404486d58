//! Why no response came.
//!
//! An error is made knowing what matters later: how far the request got, whether the backend may
//! have seen any of it, and whether sending it again can do harm. Its text is fit for a client: it
//! names the backend by its name. Addresses and causes are in the `source()` chain, for the log.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::cut::find;
use crate::{Backend, BoxError};

/// A request that got no usable response.
pub struct UpstreamError {
    // One pointer, so that results stay small.
    inner: Box<Inner>,
}

struct Inner {
    backend: Arc<str>,
    kind: ErrorKind,
    sent: Sent,
    source: BoxError,
}

/// How much of the request the backend may have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Not one byte.
    Nothing,
    /// Some of it, but the backend said that it did nothing with it.
    Refused,
    /// Perhaps all of it.
    Maybe,
}

impl UpstreamError {
    pub(crate) fn new(
        backend: &Backend,
        kind: ErrorKind,
        sent: Sent,
        source: impl Into<BoxError>,
    ) -> Self {
        Self {
            inner: Box::new(Inner {
                backend: backend.shared_name(),
                kind,
                sent,
                source: source.into(),
            }),
        }
    }

    /// A backend that gave no response head for as long as its caller waits.
    pub fn no_head(backend: &Backend) -> Self {
        let why = "no response head for as long as is allowed";
        Self::new(backend, ErrorKind::FirstByteTimeout, Sent::Maybe, why)
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// How far the request had got.
    pub fn phase(&self) -> Phase {
        self.inner.kind.phase()
    }

    /// The name of the backend.
    pub fn backend(&self) -> &str {
        &self.inner.backend
    }

    /// Whether any byte of the request may have left.
    pub fn request_sent(&self) -> bool {
        self.inner.sent != Sent::Nothing
    }

    /// Whether the backend certainly did nothing with the request, so that sending it again (there
    /// or elsewhere) cannot do a thing twice. True also for a sent request that an HTTP/2 backend
    /// refused unprocessed.
    pub fn is_retry_safe(&self) -> bool {
        self.inner.sent != Sent::Maybe
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.inner.kind {
            ErrorKind::ConnectRefused => "refused the connection",
            ErrorKind::ConnectTimeout => "could not be reached in time",
            ErrorKind::ConnectFailed => "could not be reached",
            ErrorKind::Dns => "could not be found by name",
            ErrorKind::Tls => "could not be reached over TLS",
            ErrorKind::Send => "could not be sent the request",
            ErrorKind::RequestBody => "could not be sent the request body, which broke off",
            ErrorKind::Closed => "closed the connection before it answered",
            ErrorKind::FirstByteTimeout => "did not answer in time",
            ErrorKind::BadResponse => "sent an invalid response",
        };
        write!(f, "backend {} {text}", self.inner.backend)
    }
}

impl fmt::Debug for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamError")
            .field("backend", &self.inner.backend)
            .field("kind", &self.inner.kind)
            .field("sent", &self.inner.sent)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl Error for UpstreamError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.inner.source)
    }
}

/// What went wrong, in words that stay the same (metrics labels, logs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The backend's host refused the connection.
    ConnectRefused,
    /// No connection within the connect timeout, name lookup and TLS included.
    ConnectTimeout,
    /// The connection could not be made for another reason: no route, reset, no descriptors left.
    ConnectFailed,
    /// The name has no address, or the lookup failed.
    Dns,
    /// The TLS handshake failed: an untrusted or wrong certificate, no common version.
    Tls,
    /// The request could not be put on a connection.
    Send,
    /// The *request body* failed, so it is the client's side that broke, not the backend.
    RequestBody,
    /// The connection ended, or the stream was reset, before the response head was complete.
    Closed,
    /// No complete response head within the first byte timeout.
    FirstByteTimeout,
    /// The response head is malformed, too large, or its body's end could not be trusted.
    BadResponse,
}

impl ErrorKind {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectFailed => "connect_failed",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Send => "send",
            Self::RequestBody => "request_body",
            Self::Closed => "closed",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::BadResponse => "bad_response",
        }
    }

    /// How far a request had got that failed so.
    pub fn phase(self) -> Phase {
        match self {
            Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::ConnectFailed
            | Self::Dns
            | Self::Tls => Phase::Connect,
            Self::Send | Self::RequestBody => Phase::Send,
            Self::Closed | Self::FirstByteTimeout => Phase::Head,
            Self::BadResponse => Phase::BadResponse,
        }
    }
}

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// There was no connection yet.
    Connect,
    /// The request was being sent.
    Send,
    /// The response head was awaited.
    Head,
    /// A response came and was refused.
    BadResponse,
}

/// What an error of an HTTP/2 connection before the response head means.
pub(crate) fn classify(error: &hyper::Error) -> (ErrorKind, Sent) {
    if error.is_parse() {
        return (ErrorKind::BadResponse, Sent::Maybe);
    }
    if let Some(error) = find::<h2::Error>(error) {
        let refused = error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        return match error {
            _ if refused => (ErrorKind::Closed, Sent::Refused),
            // Found here: the peer broke the protocol.
            _ if error.is_library() => (ErrorKind::BadResponse, Sent::Maybe),
            _ => (ErrorKind::Closed, Sent::Maybe),
        };
    }
    if error.is_user() {
        return (ErrorKind::Send, Sent::Maybe);
    }
    (ErrorKind::Closed, Sent::Maybe)
}
