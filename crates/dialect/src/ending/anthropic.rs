//! The endings of Anthropic messages.

use serde::Serialize;
use streamweld_sse::OneLine;

use super::{Blocks, Ending, name};
use crate::Transcript;

/// The event must be *named* `error`: clients raise by the name. The code is a member of its own
/// beside the two that the API documents.
pub(super) fn error(code: &str, message: &str) -> Ending {
    let mut blocks = Blocks::default();
    blocks.typed(
        ERROR,
        &Error {
            error: ErrorBody {
                kind: "api_error",
                message,
                code,
            },
        },
    );
    blocks.ending
}

/// Closes what is open, gives the stop reason if there is none yet, and stops the message. An
/// answer that had not begun gets a beginning: a message without one breaks clients.
pub(super) fn stopped(transcript: &Transcript) -> Ending {
    let mut blocks = Blocks::default();
    if !transcript.has_begun() {
        blocks.typed(MESSAGE_START, &message_start());
    }
    for index in transcript.open_parts() {
        blocks.typed(CONTENT_BLOCK_STOP, &Index { index });
    }
    if transcript.reasons().next().is_none() {
        let usage = transcript.usage();
        blocks.typed(
            MESSAGE_DELTA,
            &MessageDelta {
                delta: Delta {
                    stop_reason: "end_turn",
                    stop_sequence: None,
                },
                usage: OutputUsage {
                    output_tokens: usage.and_then(|usage| usage.completion_tokens).unwrap_or(0),
                },
            },
        );
    }
    blocks.typed(MESSAGE_STOP, &Empty {});
    blocks.ending
}

const ERROR: OneLine<'static> = name("error");
const MESSAGE_START: OneLine<'static> = name("message_start");
const CONTENT_BLOCK_STOP: OneLine<'static> = name("content_block_stop");
const MESSAGE_DELTA: OneLine<'static> = name("message_delta");
const MESSAGE_STOP: OneLine<'static> = name("message_stop");

fn message_start() -> MessageStart {
    MessageStart {
        message: Message {
            id: "",
            kind: "message",
            role: "assistant",
            model: "",
            content: [],
            stop_reason: None,
            stop_sequence: None,
            usage: FullUsage {
                input_tokens: 0,
                output_tokens: 0,
            },
        },
    }
}

#[derive(Serialize)]
struct Error<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a str,
    code: &'a str,
}

#[derive(Serialize)]
struct MessageStart {
    message: Message,
}

#[derive(Serialize)]
struct Message {
    id: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'static str,
    content: [(); 0],
    stop_reason: Option<()>,
    stop_sequence: Option<()>,
    usage: FullUsage,
}

#[derive(Serialize)]
struct FullUsage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
struct Index {
    index: u32,
}

#[derive(Serialize)]
struct MessageDelta {
    delta: Delta,
    usage: OutputUsage,
}

#[derive(Serialize)]
struct Delta {
    stop_reason: &'static str,
    stop_sequence: Option<()>,
}

#[derive(Serialize)]
struct OutputUsage {
    output_tokens: u64,
}

#[derive(Serialize)]
struct Empty {}
