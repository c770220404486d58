//! The endings of MCP: the call that is open gets an error for its answer. Without its id there is none: nobody would
//! know which call it is about.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Blocks, Ending};
use crate::Transcript;

/// An internal error, as JSON-RPC has it.
const INTERNAL: i32 = -32603;
/// The first of the codes that are left to servers.
const STOPPED: i32 = -32000;

/// An error as the answer to `call`.
pub(super) fn error(code: &str, message: &str, call: Option<&str>) -> Ending {
    answer(call, INTERNAL, code, message)
}

/// A stop answers too: its client waits, and would come back for what never comes.
pub(super) fn stopped(transcript: &Transcript) -> Ending {
    answer(
        transcript.call(),
        STOPPED,
        "stopped",
        "the call was stopped",
    )
}

fn answer(call: Option<&str>, number: i32, code: &str, message: &str) -> Ending {
    let mut blocks = Blocks::default();
    let id: Option<&RawValue> = call.and_then(|call| serde_json::from_str(call).ok());
    if let Some(id) = id {
        blocks.json(
            None,
            &Answer {
                jsonrpc: "2.0",
                id,
                error: Error {
                    code: number,
                    message,
                    data: Data {
                        kind: "streamweld_error",
                        code,
                    },
                },
            },
        );
    }
    blocks.ending
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: i32,
    message: &'a str,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: &'a str,
}
