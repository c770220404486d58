//! What counts against a backend.
//!
//! A caller must not be able to take a backend out with requests of its own making. So what only
//! says that a request was bad (a `4xx`, a body that broke off, a request that could not be put on
//! a connection) is evidence of nothing. What a request may have brought about (a `5xx`, a closed
//! connection) leads to quarantine at most, in which a backend still serves when there is no other.

use http::StatusCode;

use crate::{ErrorKind, UpstreamError};

/// Why a probe or an attempt counted as failed, in words that stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// There was no response head.
    Request(ErrorKind),
    /// An attempt was answered with a `5xx`.
    ServerError,
    /// A probe was not answered in time.
    ProbeTimeout,
    /// A probe was answered with another status than `2xx`.
    ProbeStatus,
}

impl FailureClass {
    /// The stable word. Says nothing about where the backend is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request(kind) => kind.as_str(),
            Self::ServerError => "server_error",
            Self::ProbeTimeout => "probe_timeout",
            Self::ProbeStatus => "probe_status",
        }
    }

    /// Whether one is enough: nothing listens there, which no request can cause, and fails so fast
    /// that the backend would look the least loaded of all.
    pub(super) fn is_conclusive(self) -> bool {
        self == Self::Request(ErrorKind::ConnectRefused)
    }
}

/// What an attempt shows of its backend; none where it shows nothing.
pub(super) type Evidence = Option<Result<(), FailureClass>>;

/// What the status of a response head shows.
pub(super) fn of_status(status: StatusCode) -> Evidence {
    if status.is_server_error() {
        Some(Err(FailureClass::ServerError))
    } else if status.is_client_error() {
        None
    } else {
        Some(Ok(()))
    }
}

/// What an attempt with this status is counted as.
pub(super) fn outcome(status: StatusCode) -> &'static str {
    if status.is_server_error() {
        FailureClass::ServerError.as_str()
    } else if status.is_client_error() {
        "client_error"
    } else {
        "answered"
    }
}

/// What the lack of a response head shows.
pub(super) fn of_error(error: &UpstreamError) -> Evidence {
    match error.kind() {
        ErrorKind::RequestBody | ErrorKind::Send => None,
        kind @ (ErrorKind::ConnectRefused
        | ErrorKind::ConnectTimeout
        | ErrorKind::ConnectFailed
        | ErrorKind::Dns
        | ErrorKind::Tls
        | ErrorKind::Closed
        | ErrorKind::FirstByteTimeout
        | ErrorKind::BadResponse) => Some(Err(FailureClass::Request(kind))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backend;
    use crate::error::Sent;

    #[test]
    fn a_status_tells_the_backends_fault_from_the_callers() {
        let failed = Some(Err(FailureClass::ServerError));
        for (status, expected) in [
            (101, Some(Ok(()))),
            (200, Some(Ok(()))),
            (302, Some(Ok(()))),
            (400, None),
            (401, None),
            (429, None),
            (500, failed),
            (503, failed),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of_status(status), expected, "{status}");
        }
    }

    #[test]
    fn a_request_that_broke_off_is_not_held_against_the_backend() {
        let backend = Backend::named("a", "http://engine".parse().unwrap());
        let of = |kind| of_error(&UpstreamError::new(&backend, kind, Sent::Maybe, "x"));
        assert_eq!(of(ErrorKind::RequestBody), None);
        assert_eq!(of(ErrorKind::Send), None);
        for kind in [
            ErrorKind::ConnectRefused,
            ErrorKind::Closed,
            ErrorKind::BadResponse,
        ] {
            assert_eq!(of(kind), Some(Err(FailureClass::Request(kind))));
        }
    }
}
