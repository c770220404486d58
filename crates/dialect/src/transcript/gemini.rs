//! Reading Gemini events into a transcript.

use serde_json::Value;
use streamweld_sse::Event;

use super::{Part, ToolCall, Transcript, count_of, index_of, keep, text_of};

pub(super) fn push(transcript: &mut Transcript, event: &Event<'_>) {
    let Ok(Value::Object(chunk)) = serde_json::from_str(&event.data()) else {
        return;
    };
    keep(&mut transcript.id, chunk.get("responseId"));
    keep(&mut transcript.model, chunk.get("modelVersion"));
    let feedback = chunk.get("promptFeedback");
    if let Some(reason) = text_of(feedback.and_then(|feedback| feedback.get("blockReason"))) {
        // There is nothing else to come.
        transcript.reasons.insert(0, reason.to_owned());
        transcript.complete = true;
    }
    let candidates = chunk.get("candidates").and_then(Value::as_array);
    let mut wrote = Wrote::default();
    for candidate in candidates.into_iter().flatten() {
        read_candidate(transcript, candidate, &mut wrote);
    }
    transcript.reasoning_events += u64::from(wrote.thoughts);
    if wrote.any {
        transcript.tally.output();
    }
    if let Some(usage) = chunk.get("usageMetadata") {
        read_usage(transcript, usage);
    }
}

/// What one event carried, over all its candidates.
#[derive(Default)]
struct Wrote {
    any: bool,
    thoughts: bool,
}

fn read_candidate(transcript: &mut Transcript, candidate: &Value, wrote: &mut Wrote) {
    transcript.began = true;
    transcript.complete = false;
    let index = index_of(candidate.get("index")).unwrap_or(0);
    // A reason counts until more of the candidate is shown.
    let part = match text_of(candidate.get("finishReason")) {
        Some(reason) => {
            transcript.reasons.insert(index, reason.to_owned());
            Part::Closed
        }
        None => {
            transcript.reasons.remove(&index);
            Part::Open
        }
    };
    transcript.parts.insert(index, part);
    let content = candidate.get("content");
    let parts = content.and_then(|content| content.get("parts")?.as_array());
    for part in parts.into_iter().flatten() {
        let text = text_of(part.get("text"));
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        match (index, is_thought, text) {
            (0, false, Some(text)) => transcript.text.push_str(text),
            (0, true, Some(thought)) => transcript.reasoning.push_str(thought),
            _ => {}
        }
        let call = part.get("functionCall");
        let is_call = call.is_some();
        if let Some(call) = call {
            read_call(transcript, index, call);
        }
        wrote.thoughts |= is_thought && text.is_some();
        // Code, its results and pictures are output as well; a signature alone is not.
        let others = ["executableCode", "codeExecutionResult", "inlineData"];
        wrote.any |=
            text.is_some() || is_call || others.iter().any(|name| part.get(*name).is_some());
    }
}

/// A call comes whole.
fn read_call(transcript: &mut Transcript, index: u32, call: &Value) {
    let before = transcript.tool_calls.range((index, 0)..=(index, u32::MAX));
    let place = u32::try_from(before.count()).unwrap_or(u32::MAX);
    let call = ToolCall {
        id: text_of(call.get("id")).map(str::to_owned),
        name: text_of(call.get("name")).unwrap_or_default().to_owned(),
        arguments: call.get("args").map(Value::to_string).unwrap_or_default(),
    };
    transcript.tool_calls.insert((index, place), call);
}

/// Thoughts are generated too, and what a tool put into the prompt was read.
fn read_usage(transcript: &mut Transcript, usage: &Value) {
    let sum = |names: [&str; 2]| {
        let counts = names.iter().filter_map(|name| count_of(usage.get(*name)));
        counts.reduce(|one, other| one.saturating_add(other))
    };
    transcript.tally.report(
        sum(["promptTokenCount", "toolUsePromptTokenCount"]),
        sum(["candidatesTokenCount", "thoughtsTokenCount"]),
        count_of(usage.get("totalTokenCount")),
    );
}
