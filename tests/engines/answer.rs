//! An answer as an app reads it, and whether it is another one than it had to be.

use std::collections::BTreeSet;

use serde_json::Value;
use streamweld_tests::events;

/// All that an app can tell two answers apart by, but for their id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Each finish reason that was told.
    pub(crate) finish: Vec<String>,
    /// Tokens of prompt, answer and both, each time they were told.
    pub(crate) usage: Vec<[u64; 3]>,
    /// How often it was said who speaks.
    pub(crate) roles: usize,
    /// How often it was said that all is over.
    pub(crate) ends: usize,
    /// What stood behind that.
    pub(crate) behind: usize,
    /// The names of the members that chunks have.
    pub(crate) shapes: BTreeSet<String>,
}

/// What two answers do not share, or must not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// Each id and model of a chunk. Not its time: this engine tells that of the chunk.
    pub(crate) identities: BTreeSet<String>,
    /// Chunks that are not the last.
    pub(crate) open: usize,
    /// Errors in the stream.
    pub(crate) errors: Vec<Value>,
}

/// Reads a body.
pub(crate) fn read(body: &[u8]) -> (Answer, Own) {
    let (mut answer, mut own) = (Answer::default(), Own::default());
    for data in events(body) {
        if answer.ends > 0 {
            answer.behind += 1;
        }
        if data == "[DONE]" {
            answer.ends += 1;
            continue;
        }
        let chunk: Value = serde_json::from_str(&data).expect("a chunk is JSON");
        if !chunk["error"].is_null() {
            own.errors.push(chunk);
            continue;
        }
        if chunk["type"].is_string() {
            message(&chunk, &mut answer, &mut own);
            continue;
        }
        own.identities
            .insert(format!("{} {}", chunk["id"], chunk["model"]));
        answer.shapes.insert(shape(&chunk));
        let figure = |name: &str| chunk["usage"][name].as_u64().unwrap_or_default();
        if !chunk["usage"].is_null() {
            let names = ["prompt_tokens", "completion_tokens", "total_tokens"];
            answer.usage.push(names.map(figure));
        }
        let choice = &chunk["choices"][0];
        let text = choice["text"]
            .as_str()
            .or(choice["delta"]["content"].as_str());
        answer.text.push_str(text.unwrap_or_default());
        own.open += usize::from(answer.finish.is_empty() && choice["finish_reason"].is_null());
        answer
            .finish
            .extend(choice["finish_reason"].as_str().map(str::to_owned));
        answer.roles += usize::from(!choice["delta"]["role"].is_null());
    }
    (answer, own)
}

/// An event of a message.
fn message(event: &Value, answer: &mut Answer, own: &mut Own) {
    answer.shapes.insert(event["type"].to_string());
    let figures = |usage: &Value, names: &[&str]| -> u64 {
        names.iter().filter_map(|name| usage[*name].as_u64()).sum()
    };
    match event["type"].as_str() {
        Some("message_start") => {
            let message = &event["message"];
            answer.roles += 1;
            own.identities
                .insert(format!("{} {}", message["id"], message["model"]));
            // How much of the prompt it still knew is of the moment.
            let prompt = ["input_tokens", "cache_read_input_tokens"];
            answer
                .usage
                .push([figures(&message["usage"], &prompt), 0, 0]);
        }
        Some("message_delta") => {
            answer
                .finish
                .extend(event["delta"]["stop_reason"].as_str().map(str::to_owned));
            answer
                .usage
                .push([0, figures(&event["usage"], &["output_tokens"]), 0]);
        }
        Some("message_stop") => answer.ends += 1,
        _ => answer
            .text
            .push_str(event["delta"]["text"].as_str().unwrap_or_default()),
    }
    own.open += usize::from(answer.finish.is_empty());
}

/// How many events have come, whole.
pub(crate) fn seen(body: &[u8]) -> usize {
    body.windows(2).filter(|pair| pair == b"\n\n").count()
}

/// The names of the members of a chunk, of its choice and of its delta.
fn shape(chunk: &Value) -> String {
    let names = |value: &Value| {
        let members = value.as_object().into_iter().flatten();
        let names: Vec<&str> = members.map(|(name, _)| name.as_str()).collect();
        names.join(",")
    };
    let choice = &chunk["choices"][0];
    format!(
        "{}|{}|{}",
        names(chunk),
        names(choice),
        names(&choice["delta"])
    )
}
