//! How an attempt ended, as data: what is recorded in a terminal and counted in a label.

use serde::{Deserialize, Serialize};

/// The judgement over one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The answer is whole.
    Done(Done),
    /// The answer is short, or upstream said that it failed.
    Failed(Failure),
}

/// A whole answer: by what its end was recognised, and the reasons it gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// What ended the stream.
    pub end: End,
    /// The finish reason of each choice or candidate by index; the one of a message or response; why a prompt was
    /// refused; empty for generic.
    pub reasons: Vec<String>,
}

/// What ended a stream that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The dialect's own sentinel.
    Sentinel,
    /// The body ended properly, after the reasons and without a sentinel.
    Eof,
    /// The body was cut after the reasons.
    Cut,
    /// Nothing more came after the reasons.
    Silence,
    /// The body is over and the answer is not, but upstream has given an id with which its client comes back for the
    /// rest (MCP).
    Resumable,
    /// A generic stream ended cleanly; whether it was whole cannot be known.
    Unknown,
}

impl End {
    /// The name used in journals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::Eof => "eof",
            Self::Cut => "cut",
            Self::Silence => "silence",
            Self::Resumable => "resumable",
            Self::Unknown => "unknown",
        }
    }
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub class: FailureClass,
    /// The data that told it (or the value of a field line `error:`), as upstream wrote it: at most
    /// [`Failure::FRAME_LIMIT`] bytes, cut on a character border. It may hold generated text.
    pub frame: Option<String>,
    /// Upstream's own words, or what was found; bounded like `frame`.
    pub message: Option<String>,
    /// The code (else the type) of upstream's error object, or the finish reason of an aborted
    /// answer; bounded like `frame`.
    pub code: Option<String>,
}

impl Failure {
    /// The most bytes of upstream's that a failure keeps of any one kind.
    pub const FRAME_LIMIT: usize = 8 * 1024;

    pub(crate) fn new(class: FailureClass) -> Self {
        Self {
            class,
            frame: None,
            message: None,
            code: None,
        }
    }

    pub(crate) fn frame(mut self, frame: &str) -> Self {
        self.frame = (!frame.is_empty()).then(|| bounded(frame));
        self
    }

    pub(crate) fn message(mut self, message: &str) -> Self {
        self.message = Some(bounded(message));
        self
    }

    pub(crate) fn code(mut self, code: &str) -> Self {
        self.code = Some(bounded(code));
        self
    }
}

/// The kinds of failure of an attempt whose head was a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// A finish reason that is not a success: the server gave the answer up.
    Aborted,
    /// An error told in the stream.
    UpstreamError,
    /// The stream ended without what makes an answer whole.
    Truncated,
    /// Nothing came for longer than allowed.
    Stalled,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// One event above the bound.
    EventTooLarge,
    /// A content coding that does not decode, or that expands beyond its bound.
    EncodingError,
}

impl FailureClass {
    /// The name used in journals, errors, logs and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aborted => "aborted",
            Self::UpstreamError => "upstream_error",
            Self::Truncated => "truncated",
            Self::Stalled => "stalled",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::EventTooLarge => "event_too_large",
            Self::EncodingError => "encoding_error",
        }
    }
}

impl std::fmt::Display for FailureClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

pub(crate) fn bounded(text: &str) -> String {
    let mut end = text.len().min(Failure::FRAME_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_on_a_character_border() {
        let long = format!("a{}", "日".repeat(Failure::FRAME_LIMIT));
        let failure = Failure::new(FailureClass::Truncated).frame(&long);
        let kept = failure.frame.unwrap();
        assert!(long.starts_with(&kept));
        assert_eq!(kept.len(), Failure::FRAME_LIMIT - 1);
    }

    #[test]
    fn class_names_are_those_of_serde() {
        for class in [
            FailureClass::Aborted,
            FailureClass::UpstreamError,
            FailureClass::Truncated,
            FailureClass::Stalled,
            FailureClass::InvalidUtf8,
            FailureClass::EventTooLarge,
            FailureClass::EncodingError,
        ] {
            assert_eq!(
                serde_json::to_string(&class).unwrap(),
                format!("\"{class}\"")
            );
        }
    }
}
