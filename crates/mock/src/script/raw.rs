//! Exact bytes on the connection, head included, for what no well-formed script can say.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::span;

/// The steps of a raw answer. When they are used up without a [`RawStep::Rst`] or [`RawStep::Fin`]
/// the connection waits for the next request.
///
/// ```
/// use streamweld_mock::{Raw, Script};
/// let two_lengths = Script::raw(
///     Raw::new().write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok").fin(),
/// );
/// # let _ = two_lengths;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw {
    /// What happens, in order.
    pub steps: Vec<RawStep>,
}

/// One step of a raw answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawStep {
    /// Writes a text, in a write of its own.
    Write(String),
    /// Writes bytes, in a write of their own.
    Bytes(Vec<u8>),
    /// Writes a text as one HTTP chunk (size line, text, line end).
    Chunk(String),
    /// Writes the last chunk.
    LastChunk,
    /// Writes `text` `times` times, without pause.
    Repeat {
        /// What is written.
        text: String,
        /// How often.
        times: usize,
    },
    /// Waits.
    Pause(#[serde(with = "span")] Duration),
    /// Waits until the gate of this name is released.
    Gate(String),
    /// Is silent until the client leaves.
    Stall,
    /// Resets the connection.
    Rst,
    /// Closes the connection.
    Fin,
}

impl Raw {
    /// No steps yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds any step.
    pub fn step(mut self, step: RawStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Writes a text, in a write of its own.
    pub fn write(self, text: impl Into<String>) -> Self {
        self.step(RawStep::Write(text.into()))
    }

    /// Writes bytes, in a write of their own.
    pub fn bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(RawStep::Bytes(bytes.into()))
    }

    /// The head of a chunked event stream.
    pub fn stream_head(self) -> Self {
        self.write(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
    }

    /// Writes a text as one HTTP chunk.
    pub fn chunk(self, text: impl Into<String>) -> Self {
        self.step(RawStep::Chunk(text.into()))
    }

    /// Writes the last chunk.
    pub fn last_chunk(self) -> Self {
        self.step(RawStep::LastChunk)
    }

    /// Writes a text many times.
    pub fn repeat(self, text: impl Into<String>, times: usize) -> Self {
        self.step(RawStep::Repeat {
            text: text.into(),
            times,
        })
    }

    /// Waits for a time.
    pub fn pause(self, span: Duration) -> Self {
        self.step(RawStep::Pause(span))
    }

    /// Waits for a gate.
    pub fn gate(self, name: impl Into<String>) -> Self {
        self.step(RawStep::Gate(name.into()))
    }

    /// Is silent until the client leaves.
    pub fn stall(self) -> Self {
        self.step(RawStep::Stall)
    }

    /// Resets the connection.
    pub fn rst(self) -> Self {
        self.step(RawStep::Rst)
    }

    /// Closes the connection.
    pub fn fin(self) -> Self {
        self.step(RawStep::Fin)
    }
}
