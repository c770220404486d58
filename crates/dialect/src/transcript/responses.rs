//! Reading OpenAI Responses events into a transcript.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use streamweld_sse::Event;

use super::{Part, Transcript, count_of, index_of, keep, text_of};
use crate::probe::ends_response;

/// A response so far: what an ending of ours needs to show it again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    created: Option<Value>,
    items: BTreeMap<u32, Item>,
    /// The number of the event behind the last one.
    next: u64,
}

/// An item of the output.
#[derive(Debug, Clone)]
struct Item {
    /// As it was added, or as it was when it was done.
    value: Value,
    done: bool,
    /// The text of each of its parts, until it is done.
    texts: BTreeMap<u32, String>,
}

impl Response {
    /// The response as `response.created` showed it.
    pub(crate) fn created(&self) -> Option<&Value> {
        self.created.as_ref()
    }

    /// The number that the next event has: one more than the last event's, or 0 where that has none.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Its items so far, those that are not done with the text that they have.
    pub(crate) fn output(&self) -> Vec<Value> {
        self.items.values().map(Item::so_far).collect()
    }
}

impl Item {
    fn so_far(&self) -> Value {
        let mut value = self.value.clone();
        let Some(item) = value.as_object_mut().filter(|_| !self.done) else {
            return value;
        };
        item.insert("status".to_owned(), "incomplete".into());
        if !self.texts.is_empty() {
            let parts = self.texts.values();
            let parts =
                parts.map(|text| json!({ "type": "output_text", "text": text, "annotations": [] }));
            item.insert("content".to_owned(), parts.collect());
        }
        value
    }
}

pub(super) fn push(transcript: &mut Transcript, event: &Event<'_>) {
    let Ok(frame) = serde_json::from_str::<Value>(&event.data()) else {
        return;
    };
    let number = count_of(frame.get("sequence_number"));
    transcript.response.next = number.map_or(0, |number| number + 1);
    let Some(kind) = text_of(frame.get("type")).or(event.name()) else {
        return;
    };
    transcript.began |= kind.starts_with("response.");
    match kind {
        "response.created" => created(transcript, &frame),
        "response.output_item.added" => item(transcript, &frame, Part::Open),
        "response.output_item.done" => item(transcript, &frame, Part::Closed),
        "response.output_text.delta" => text(transcript, &frame),
        kind if ends_response(kind) => end(transcript, &frame, kind),
        // Refusals, arguments of calls, reasoning and its summaries, audio, code.
        kind if kind.ends_with(".delta") => {
            delta(transcript, &frame, kind);
            transcript.tally.output();
        }
        // What repeats that when it is done, progress of tools, and whatever may be added.
        _ => {}
    }
}

fn created(transcript: &mut Transcript, frame: &Value) {
    let response = frame.get("response");
    let of_response = |name| response.and_then(|response| response.get(name));
    keep(&mut transcript.id, of_response("id"));
    keep(&mut transcript.model, of_response("model"));
    keep(&mut transcript.object, of_response("object"));
    // The SDK's type is a float, and some servers write one.
    let created = of_response("created_at").and_then(Value::as_f64);
    transcript.created = transcript.created.or(created.map(|seconds| seconds as u64));
    let created = response.filter(|response| response.is_object());
    transcript.response.created = created.cloned();
}

fn item(transcript: &mut Transcript, frame: &Value, part: Part) {
    let (Some(index), Some(value)) = (index_of(frame.get("output_index")), frame.get("item"))
    else {
        return;
    };
    transcript.parts.insert(index, part);
    // function_call, custom_tool_call, web_search_call, mcp_call, …
    if let Some(kind) = text_of(value.get("type")).filter(|kind| kind.ends_with("_call")) {
        let call = transcript.tool_calls.entry((index, 0)).or_default();
        let id = text_of(value.get("call_id")).or_else(|| text_of(value.get("id")));
        call.id = id.map(str::to_owned);
        call.name = text_of(value.get("name")).unwrap_or(kind).to_owned();
        // When it is done, whole.
        let arguments = text_of(value.get("arguments")).or_else(|| text_of(value.get("input")));
        if let Some(arguments) = arguments {
            call.arguments = arguments.to_owned();
        }
    }
    let texts = transcript.response.items.remove(&index);
    let item = Item {
        value: value.clone(),
        done: part == Part::Closed,
        texts: texts.map(|item| item.texts).unwrap_or_default(),
    };
    transcript.response.items.insert(index, item);
}

fn delta(transcript: &mut Transcript, frame: &Value, kind: &str) {
    let is_reasoning = kind.contains(".reasoning");
    transcript.reasoning_events += u64::from(is_reasoning);
    let Some(text) = text_of(frame.get("delta")) else {
        return;
    };
    if is_reasoning {
        transcript.reasoning.push_str(text);
    } else if kind.contains("_call_") {
        let output = index_of(frame.get("output_index")).unwrap_or(0);
        if let Some(call) = transcript.tool_calls.get_mut(&(output, 0)) {
            call.arguments.push_str(text);
        }
    }
}

fn text(transcript: &mut Transcript, frame: &Value) {
    let Some(text) = text_of(frame.get("delta")) else {
        return;
    };
    transcript.text.push_str(text);
    transcript.tally.output();
    let output = index_of(frame.get("output_index")).unwrap_or(0);
    let content = index_of(frame.get("content_index")).unwrap_or(0);
    if let Some(item) = transcript.response.items.get_mut(&output) {
        item.texts.entry(content).or_default().push_str(text);
    }
}

fn end(transcript: &mut Transcript, frame: &Value, kind: &str) {
    transcript.complete = true;
    let response = frame.get("response");
    let of_response = |name| response.and_then(|response| response.get(name));
    let reason = of_response("incomplete_details").and_then(|details| details.get("reason"));
    let reason = text_of(reason)
        .or(text_of(of_response("status")))
        .or(kind.strip_prefix("response."));
    if let Some(reason) = reason {
        transcript.reasons.insert(0, reason.to_owned());
    }
    if let Some(usage) = of_response("usage") {
        let count = |name| count_of(usage.get(name));
        transcript.tally.report(
            count("input_tokens"),
            count("output_tokens"),
            count("total_tokens"),
        );
    }
}
