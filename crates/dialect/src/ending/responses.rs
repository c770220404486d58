//! The endings of OpenAI Responses.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use streamweld_sse::{Event, OneLine};

use super::{Blocks, Ending, name};
use crate::Transcript;

/// The number that an event has in its stream.
pub(super) fn number(event: &Event<'_>) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        sequence_number: Option<u64>,
    }

    let numbered: Numbered = serde_json::from_str(&event.data()).ok()?;
    numbered.sequence_number
}

/// Flat, as the API documents it, and nested, because several clients raise by that alone.
pub(super) fn error(code: &str, message: &str, number: u64) -> Ending {
    #[derive(Serialize)]
    struct Flat<'a> {
        code: &'a str,
        message: &'a str,
        param: Option<&'a str>,
        sequence_number: u64,
        error: Nested<'a>,
    }

    #[derive(Serialize)]
    struct Nested<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        code: &'a str,
        message: &'a str,
        param: Option<&'a str>,
    }

    let mut blocks = Blocks::default();
    blocks.typed(
        ERROR,
        &Flat {
            code,
            message,
            param: None,
            sequence_number: number,
            error: Nested {
                kind: "streamweld_error",
                code,
                message,
                param: None,
            },
        },
    );
    blocks.ending
}

/// The response as it is so far, incomplete without one of the API's reasons. One that had not begun gets a beginning:
/// a stream without one breaks clients.
pub(super) fn stopped(transcript: &Transcript) -> Ending {
    let so_far = transcript.response();
    let mut response = so_far.created().cloned().unwrap_or_else(nothing);
    let mut blocks = Blocks::default();
    let mut number = so_far.next_number();
    if !transcript.has_begun() {
        blocks.typed(CREATED, &Snapshot::new(number, &response));
        number += 1;
    }
    response["status"] = "incomplete".into();
    response["incomplete_details"] = Value::Null;
    response["output"] = so_far.output().into();
    blocks.typed(INCOMPLETE, &Snapshot::new(number, &response));
    blocks.ending
}

const ERROR: OneLine<'static> = name("error");
const CREATED: OneLine<'static> = name("response.created");
const INCOMPLETE: OneLine<'static> = name("response.incomplete");

#[derive(Serialize)]
struct Snapshot<'a> {
    sequence_number: u64,
    response: &'a Value,
}

impl<'a> Snapshot<'a> {
    fn new(sequence_number: u64, response: &'a Value) -> Self {
        Self {
            sequence_number,
            response,
        }
    }
}

/// A response of which nothing is known, with every member that the API requires.
fn nothing() -> Value {
    json!({
        "id": "", "object": "response", "created_at": 0, "status": "in_progress", "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "model": "", "output": [],
        "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null, "usage": null,
    })
}
