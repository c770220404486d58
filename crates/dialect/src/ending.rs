//! Endings of ours, written in the client's dialect: an error that every SDK raises, and a stop
//! that looks like a finished answer.
//!
//! Rendered once per terminal or per reader, never journaled as events. An error is never followed
//! by a success sentinel; a stop adds only what the answer still lacks.

mod anthropic;
mod openai;

use serde::Serialize;
use streamweld_sse::{OneLine, write_data_lines, write_event_line};

use crate::{Dialect, Transcript};

/// Wire blocks that end a stream, complete with their blank lines, without ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// The blocks. Empty for a dialect that has no such form.
    pub bytes: Vec<u8>,
    /// Where in the last block an id line goes: after its fields, before its blank line.
    pub id_at: Option<usize>,
}

/// The form in which every client of the dialect raises an error, with the message.
///
/// Generic streams have none: there the bare abort is the error.
pub fn error_ending(dialect: Dialect, code: &str, message: &str) -> Ending {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => openai::error(code, message),
        Dialect::AnthropicMessages => anthropic::error(code, message),
        Dialect::Generic => Ending::default(),
    }
}

/// What turns the events of `transcript` into a finished answer, after a stop.
///
/// Empty when nothing is missing, and for generic streams, whose clean end says it.
pub fn stopped_ending(transcript: &Transcript) -> Ending {
    if transcript.is_complete() {
        return Ending::default();
    }
    match transcript.dialect() {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => openai::stopped(transcript),
        Dialect::AnthropicMessages => anthropic::stopped(transcript),
        Dialect::Generic => Ending::default(),
    }
}

/// Blocks written one after the other, remembering where the last one's blank line begins.
#[derive(Default)]
struct Blocks {
    ending: Ending,
}

impl Blocks {
    /// Adds a block with `data` as JSON, which is one line whatever its strings hold.
    fn json(&mut self, name: Option<OneLine<'_>>, data: &impl Serialize) {
        let data =
            serde_json::to_string(data).expect("plain structs of text and numbers serialise");
        self.block(name, &data);
    }

    fn block(&mut self, name: Option<OneLine<'_>>, data: &str) {
        let bytes = &mut self.ending.bytes;
        if let Some(name) = name {
            write_event_line(name, bytes);
        }
        write_data_lines(data, bytes);
        self.ending.id_at = Some(bytes.len());
        bytes.push(b'\n');
    }
}
