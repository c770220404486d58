//! Endings of ours, written in the client's dialect: an error that every SDK raises, and a stop
//! that looks like a finished answer.
//!
//! Rendered once per terminal or per reader, never journaled as events. An error is never followed
//! by a success sentinel; a stop adds only what the answer still lacks.

mod anthropic;
mod gemini;
mod mcp;
mod openai;
mod responses;

use serde::Serialize;
use streamweld_sse::{Event, OneLine, write_data_lines, write_event_line};

use crate::{Dialect, Transcript};

/// Wire blocks that end a stream, complete with their blank lines, without ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// The blocks. Empty for a dialect that has no such form.
    pub bytes: Vec<u8>,
    /// Where in the last block an id line goes: after its fields, before its blank line.
    pub id_at: Option<usize>,
}

/// What an ending of ours has to go on from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behind<'a> {
    /// The event it comes behind: where events are numbered, it has the next number.
    pub last: Option<&'a Event<'a>>,
    /// The id of the call that it answers, as JSON (MCP).
    pub call: Option<&'a str>,
}

/// The form in which every client of the dialect raises an error, with the message.
///
/// Generic streams have no form, and MCP none without the id of a call: there the bare abort is the error.
pub fn error_ending(dialect: Dialect, code: &str, message: &str, behind: Behind<'_>) -> Ending {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => openai::error(code, message),
        Dialect::OpenAiResponses => {
            let number = behind
                .last
                .and_then(responses::number)
                .map_or(0, |last| last + 1);
            responses::error(code, message, number)
        }
        Dialect::AnthropicMessages => anthropic::error(code, message),
        Dialect::Gemini => gemini::error(code, message),
        Dialect::Mcp => mcp::error(code, message, behind.call),
        Dialect::Generic => Ending::default(),
    }
}

/// How an error ending looks to a reader that is shown no ids, where its dialect's clients do not read them.
///
/// Gemini's take an error for one only if it is no event but JSON that stands in the stream by itself.
pub fn as_shown(dialect: Dialect, error_ending: &[u8]) -> &[u8] {
    if dialect.reads_ids() {
        return error_ending;
    }
    error_ending.strip_prefix(b"data: ").unwrap_or(error_ending)
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
        Dialect::OpenAiResponses => responses::stopped(transcript),
        Dialect::AnthropicMessages => anthropic::stopped(transcript),
        Dialect::Gemini => gemini::stopped(transcript),
        Dialect::Mcp => mcp::stopped(transcript),
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

    /// Adds a block whose name is also the `type` in its data.
    fn typed(&mut self, name: OneLine<'static>, body: &impl Serialize) {
        #[derive(Serialize)]
        struct Typed<'a, T> {
            #[serde(rename = "type")]
            kind: &'a str,
            #[serde(flatten)]
            body: &'a T,
        }

        let kind = name.as_str();
        self.json(Some(name), &Typed { kind, body });
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

const fn name(text: &'static str) -> OneLine<'static> {
    OneLine::new(text).expect("event types have no line ends")
}
