//! The endings of OpenAI chat and legacy completions.

use serde::Serialize;

use super::{Blocks, Ending};
use crate::{Dialect, Transcript};

pub(super) fn error(code: &str, message: &str) -> Ending {
    #[derive(Serialize)]
    struct Data<'a> {
        error: Error<'a>,
    }

    #[derive(Serialize)]
    struct Error<'a> {
        message: &'a str,
        #[serde(rename = "type")]
        kind: &'static str,
        param: Option<&'a str>,
        code: &'a str,
    }

    let mut blocks = Blocks::default();
    blocks.json(
        None,
        &Data {
            error: Error {
                message,
                kind: "streamweld_error",
                param: None,
                code,
            },
        },
    );
    blocks.ending
}

/// A finish for each open choice, in chunks that look like the stream's own, then the sentinel. If
/// nothing was seen at all, choice 0 is taken for begun: clients expect a finish.
pub(super) fn stopped(transcript: &Transcript) -> Ending {
    let chat = transcript.dialect() == Dialect::OpenAiChat;
    let mut blocks = Blocks::default();
    for index in transcript.unfinished() {
        blocks.json(
            None,
            &Chunk {
                id: transcript.id().unwrap_or_default(),
                object: transcript.object().unwrap_or(if chat {
                    "chat.completion.chunk"
                } else {
                    "text_completion"
                }),
                created: transcript.created().unwrap_or_default(),
                model: transcript.model().unwrap_or_default(),
                choices: [Choice {
                    index,
                    delta: chat.then_some(Delta {}),
                    text: (!chat).then_some(""),
                    logprobs: None,
                    finish_reason: "stop",
                }],
            },
        );
    }
    blocks.block(None, "[DONE]");
    blocks.ending
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'a str,
    created: u64,
    model: &'a str,
    choices: [Choice; 1],
}

#[derive(Serialize)]
struct Choice {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Delta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Delta {}
