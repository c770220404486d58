//! The endings of Gemini.

use serde::Serialize;

use super::{Blocks, Ending};
use crate::Transcript;

/// One client raises only on a code from 400 to 599, so ours stands where the API's errors have their reasons.
pub(super) fn error(code: &str, message: &str) -> Ending {
    #[derive(Serialize)]
    struct Data<'a> {
        error: Error<'a>,
    }

    #[derive(Serialize)]
    struct Error<'a> {
        code: u16,
        message: &'a str,
        status: &'static str,
        details: [Info<'a>; 1],
    }

    #[derive(Serialize)]
    struct Info<'a> {
        #[serde(rename = "@type")]
        kind: &'static str,
        reason: &'a str,
        domain: &'static str,
    }

    let mut blocks = Blocks::default();
    blocks.json(
        None,
        &Data {
            error: Error {
                code: 500,
                message,
                status: "INTERNAL",
                details: [Info {
                    kind: "type.googleapis.com/google.rpc.ErrorInfo",
                    reason: code,
                    domain: "streamweld",
                }],
            },
        },
    );
    blocks.ending
}

/// A finish for each open candidate, in events that look like the last one of a stream. If nothing was seen at all,
/// candidate 0 is taken for begun: clients expect a finish.
pub(super) fn stopped(transcript: &Transcript) -> Ending {
    let mut blocks = Blocks::default();
    for index in transcript.unfinished() {
        blocks.json(
            None,
            &Chunk {
                candidates: [Candidate {
                    content: Content {
                        parts: [Part { text: "" }],
                        role: "model",
                    },
                    finish_reason: "STOP",
                    index,
                }],
                usage_metadata: usage(transcript),
                model_version: transcript.model(),
                response_id: transcript.id(),
            },
        );
    }
    blocks.ending
}

/// Clients take the counts of the last event for those of the answer.
fn usage(transcript: &Transcript) -> Option<Usage> {
    let usage = transcript.usage()?;
    Some(Usage {
        prompt_token_count: usage.prompt_tokens?,
        candidates_token_count: usage.completion_tokens?,
        total_token_count: usage.total_tokens?,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    candidates: [Candidate; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Content,
    finish_reason: &'static str,
    index: u32,
}

#[derive(Serialize)]
struct Content {
    parts: [Part; 1],
    role: &'static str,
}

#[derive(Serialize)]
struct Part {
    text: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: u64,
    candidates_token_count: u64,
    total_token_count: u64,
}
