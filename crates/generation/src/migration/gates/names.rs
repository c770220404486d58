//! What the gates are called, and in which order they are told.

/// A reason to refuse. The names are part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The operator allows it.
    Policy,
    /// What happened can be mended elsewhere.
    FailureClass,
    /// It has not moved too often.
    Attempts,
    /// There is room for more tokens, and they can be counted.
    Tokens,
    /// There is time left.
    Duration,
    /// Somebody is there to go on.
    BackendAvailable,
    /// It is known to be the same model.
    Compatibility,
    /// Its template leaves the text alone.
    Template,
    /// Answers of this kind can be continued.
    Dialect,
    /// Nothing in the request steers the answer in a way that would be lost.
    RequestShape,
    /// No tools are in play.
    ToolCall,
    /// No grammar is.
    StructuredOutput,
    /// No reasoning is.
    Reasoning,
    /// No text ends the answer.
    StopSequence,
    /// There is a place at which both halves can be joined and the joint be checked.
    Seam,
    /// The journal has all that was shown.
    JournalComplete,
    /// The request was kept.
    RequestTooLarge,
    /// There is a credential for whoever goes on.
    Credential,
    /// Nobody has called stop.
    StopRequested,
}

impl Gate {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 19] = [
        Self::StopRequested,
        Self::Policy,
        Self::FailureClass,
        Self::Attempts,
        Self::Duration,
        Self::JournalComplete,
        Self::RequestTooLarge,
        Self::Dialect,
        Self::RequestShape,
        Self::ToolCall,
        Self::StructuredOutput,
        Self::Reasoning,
        Self::StopSequence,
        Self::Tokens,
        Self::BackendAvailable,
        Self::Compatibility,
        Self::Credential,
        Self::Template,
        Self::Seam,
    ];

    /// The name in warnings, errors, logs and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::FailureClass => "failure_class",
            Self::Attempts => "attempts",
            Self::Tokens => "tokens",
            Self::Duration => "duration",
            Self::BackendAvailable => "backend_available",
            Self::Compatibility => "compatibility",
            Self::Template => "template",
            Self::Dialect => "dialect",
            Self::RequestShape => "request_shape",
            Self::ToolCall => "tool_call",
            Self::StructuredOutput => "structured_output",
            Self::Reasoning => "reasoning",
            Self::StopSequence => "stop_sequence",
            Self::Seam => "seam",
            Self::JournalComplete => "journal_complete",
            Self::RequestTooLarge => "request_too_large",
            Self::Credential => "credential",
            Self::StopRequested => "stop_requested",
        }
    }
}
