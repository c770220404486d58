//! Errors of our own, and the one place that turns them into responses (protocol.md 11).

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::{Response, StatusCode};
use serde::Serialize;
use streamweld_journal::StreamId;

use crate::body::Body;
use crate::gates::GateState;

/// A stable code, and with it its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each code is described in protocol.md 11, which is normative"
)]
pub enum ErrorCode {
    AlreadyTerminal,
    BackendBadResponse,
    BackendNotFound,
    BackendTimeout,
    BackendUnavailable,
    BackendUnreachable,
    CapabilityExpired,
    CapabilityScope,
    CursorAhead,
    CursorExpired,
    CursorMismatch,
    Forbidden,
    IdempotencyConflict,
    IdempotencyKeyReused,
    InternalError,
    InvalidCursor,
    InvalidIdempotencyKey,
    InvalidOrphanPolicy,
    InvalidParameter,
    InvalidStreamId,
    JournalRegressed,
    JournalUnavailable,
    MethodNotAllowed,
    MigrationRefused,
    NotFound,
    NotOwner,
    OwnerLost,
    RequestTimeout,
    RequestTooLarge,
    ShuttingDown,
    StartBeyondEnd,
    StreamExpired,
    StreamNotFound,
    SubjectMissing,
    TlsRequired,
    Unauthorized,
}

impl ErrorCode {
    /// Every code, in the order of the alphabet.
    pub const ALL: [Self; 36] = [
        Self::AlreadyTerminal,
        Self::BackendBadResponse,
        Self::BackendNotFound,
        Self::BackendTimeout,
        Self::BackendUnavailable,
        Self::BackendUnreachable,
        Self::CapabilityExpired,
        Self::CapabilityScope,
        Self::CursorAhead,
        Self::CursorExpired,
        Self::CursorMismatch,
        Self::Forbidden,
        Self::IdempotencyConflict,
        Self::IdempotencyKeyReused,
        Self::InternalError,
        Self::InvalidCursor,
        Self::InvalidIdempotencyKey,
        Self::InvalidOrphanPolicy,
        Self::InvalidParameter,
        Self::InvalidStreamId,
        Self::JournalRegressed,
        Self::JournalUnavailable,
        Self::MethodNotAllowed,
        Self::MigrationRefused,
        Self::NotFound,
        Self::NotOwner,
        Self::OwnerLost,
        Self::RequestTimeout,
        Self::RequestTooLarge,
        Self::ShuttingDown,
        Self::StartBeyondEnd,
        Self::StreamExpired,
        Self::StreamNotFound,
        Self::SubjectMissing,
        Self::TlsRequired,
        Self::Unauthorized,
    ];

    /// The code as clients read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyTerminal => "already_terminal",
            Self::BackendBadResponse => "backend_bad_response",
            Self::BackendNotFound => "backend_not_found",
            Self::BackendTimeout => "backend_timeout",
            Self::BackendUnavailable => "backend_unavailable",
            Self::BackendUnreachable => "backend_unreachable",
            Self::CapabilityExpired => "capability_expired",
            Self::CapabilityScope => "capability_scope",
            Self::CursorAhead => "cursor_ahead",
            Self::CursorExpired => "cursor_expired",
            Self::CursorMismatch => "cursor_mismatch",
            Self::Forbidden => "forbidden",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::InternalError => "internal_error",
            Self::InvalidCursor => "invalid_cursor",
            Self::InvalidIdempotencyKey => "invalid_idempotency_key",
            Self::InvalidOrphanPolicy => "invalid_orphan_policy",
            Self::InvalidParameter => "invalid_parameter",
            Self::InvalidStreamId => "invalid_stream_id",
            Self::JournalRegressed => "journal_regressed",
            Self::JournalUnavailable => "journal_unavailable",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::MigrationRefused => "migration_refused",
            Self::NotFound => "not_found",
            Self::NotOwner => "not_owner",
            Self::OwnerLost => "owner_lost",
            Self::RequestTimeout => "request_timeout",
            Self::RequestTooLarge => "request_too_large",
            Self::ShuttingDown => "shutting_down",
            Self::StartBeyondEnd => "start_beyond_end",
            Self::StreamExpired => "stream_expired",
            Self::StreamNotFound => "stream_not_found",
            Self::SubjectMissing => "subject_missing",
            Self::TlsRequired => "tls_required",
            Self::Unauthorized => "unauthorized",
        }
    }

    /// Its status.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::CursorMismatch
            | Self::IdempotencyConflict
            | Self::InvalidCursor
            | Self::InvalidIdempotencyKey
            | Self::InvalidOrphanPolicy
            | Self::InvalidParameter
            | Self::InvalidStreamId
            | Self::SubjectMissing
            | Self::TlsRequired => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::CapabilityExpired | Self::CapabilityScope | Self::Forbidden => {
                StatusCode::FORBIDDEN
            }
            Self::BackendNotFound | Self::NotFound | Self::StreamNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::AlreadyTerminal
            | Self::CursorAhead
            | Self::JournalRegressed
            | Self::MigrationRefused
            | Self::NotOwner => StatusCode::CONFLICT,
            Self::CursorExpired | Self::StreamExpired => StatusCode::GONE,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::StartBeyondEnd => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::BackendBadResponse | Self::BackendUnreachable => StatusCode::BAD_GATEWAY,
            Self::BackendUnavailable
            | Self::JournalUnavailable
            | Self::OwnerLost
            | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::BackendTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// An error of ours, on its way to a client. Its message is written for that client: it names what was wrong and
/// what to do, and never an address, a key, a prompt or an output.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    pub(crate) code: ErrorCode,
    message: String,
    stream: Option<StreamId>,
    allow: Option<&'static str>,
    /// Boxed, for few errors have any.
    fields: Option<Box<HeaderMap>>,
    /// Those that refused, where gates did.
    gates: Vec<GateState>,
}

impl Error {
    /// The generation that it is about.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            stream: None,
            allow: None,
            fields: None,
            gates: Vec::new(),
        }
    }

    /// Names the generation that it is about.
    pub(crate) fn about(mut self, stream: StreamId) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Its response has these fields too.
    pub(crate) fn with_fields(mut self, fields: HeaderMap) -> Self {
        match &mut self.fields {
            Some(ours) => ours.extend(fields),
            None => self.fields = Some(Box::new(fields)),
        }
        self
    }

    /// Its response has this field too.
    pub(crate) fn with_field(mut self, name: HeaderName, value: HeaderValue) -> Self {
        let fields = self.fields.get_or_insert_default();
        fields.insert(name, value);
        self
    }

    /// Tells which gates refused.
    pub(crate) fn with_gates(mut self, gates: Vec<GateState>) -> Self {
        self.gates = gates;
        self
    }

    /// Refuses because of a shutdown; `what` says what became of the request.
    pub(crate) fn shutting_down(what: &str) -> Self {
        let message = format!(
            "this server is shutting down; {what}; send it again on a new connection: at once if another replica \
             answers this address, else when the server is back"
        );
        Self::new(ErrorCode::ShuttingDown, message)
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this path answers {allow} only");
        Self {
            allow: Some(allow),
            ..Self::new(ErrorCode::MethodNotAllowed, message)
        }
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response<Body> {
        #[derive(Serialize)]
        struct Envelope<'a> {
            error: Shown<'a>,
        }
        #[derive(Serialize)]
        struct Shown<'a> {
            r#type: &'a str,
            code: &'a str,
            message: &'a str,
            stream_id: Option<String>,
            request_id: &'a str,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            gates: &'a [GateState],
        }
        let shown = Shown {
            r#type: "streamweld_error",
            code: self.code.as_str(),
            message: &self.message,
            stream_id: self.stream.map(|id| id.to_string()),
            request_id,
            gates: &self.gates,
        };
        let json = serde_json::to_vec(&Envelope { error: shown }).expect("plain strings serialise");
        let mut response = Response::new(Body::full(Bytes::from(json)));
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(fields) = self.fields {
            headers.extend(*fields);
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if matches!(
            self.code,
            ErrorCode::BackendUnavailable
                | ErrorCode::JournalUnavailable
                | ErrorCode::OwnerLost
                | ErrorCode::ShuttingDown
        ) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if [ErrorCode::RequestTimeout, ErrorCode::ShuttingDown].contains(&self.code) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_alphabetical_and_distinct() {
        let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }

    #[test]
    fn every_code_and_status_stands_in_the_protocol() {
        let protocol = include_str!("../../../protocol.md");
        for code in ErrorCode::ALL {
            let row = format!("| `{}` | {} |", code.as_str(), code.status().as_u16());
            assert!(protocol.contains(&row), "protocol.md lacks the row {row}");
        }
    }
}
