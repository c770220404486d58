//! Reading OpenAI chat and completions chunks into a transcript.

use serde_json::Value;
use streamweld_sse::Event;

use super::{Part, Transcript, count_of, index_of, keep, text_of};

pub(super) fn push(transcript: &mut Transcript, event: &Event<'_>) {
    let data = event.data();
    if data.trim_ascii() == "[DONE]" {
        transcript.complete = true;
        return;
    }
    let Ok(Value::Object(chunk)) = serde_json::from_str(&data) else {
        return;
    };
    keep(&mut transcript.id, chunk.get("id"));
    keep(&mut transcript.model, chunk.get("model"));
    keep(&mut transcript.object, chunk.get("object"));
    transcript.created = transcript.created.or(count_of(chunk.get("created")));

    let choices = chunk.get("choices").and_then(Value::as_array);
    let mut wrote = Wrote::default();
    for choice in choices.into_iter().flatten() {
        read_choice(transcript, choice, &mut wrote);
    }
    if wrote.reasoning {
        transcript.reasoning_events += 1;
    }
    if wrote.any {
        transcript.tally.output();
    }
    if let Some(usage) = chunk.get("usage") {
        read_usage(transcript, usage);
    }
}

/// What one event carried, over all its choices.
#[derive(Default)]
struct Wrote {
    any: bool,
    reasoning: bool,
}

fn read_choice(transcript: &mut Transcript, choice: &Value, wrote: &mut Wrote) {
    transcript.began = true;
    let index = index_of(choice.get("index")).unwrap_or(0);
    let part = transcript.parts.entry(index).or_insert(Part::Open);
    if let Some(reason) = text_of(choice.get("finish_reason")) {
        *part = Part::Closed;
        transcript.reasons.insert(index, reason.to_owned());
    }

    let delta = choice.get("delta");
    let of_delta = |name| delta.and_then(|delta| delta.get(name));
    let text = text_of(of_delta("content")).or(text_of(choice.get("text")));
    if let (0, Some(text)) = (index, text) {
        transcript.text.push_str(text);
    }
    let reasoning =
        text_of(of_delta("reasoning_content")).or_else(|| text_of(of_delta("reasoning")));
    if let (0, Some(reasoning)) = (index, reasoning) {
        transcript.reasoning.push_str(reasoning);
    }
    let calls = of_delta("tool_calls").and_then(Value::as_array);
    for (place, call) in (0..).zip(calls.into_iter().flatten()) {
        let place = index_of(call.get("index")).unwrap_or(place);
        read_call(
            transcript,
            (index, place),
            call.get("id"),
            call.get("function"),
        );
    }
    let only = of_delta("function_call").filter(|call| call.is_object());
    if only.is_some() {
        read_call(transcript, (index, 0), None, only);
    }
    let call = only.is_some() || calls.is_some_and(|calls| !calls.is_empty());
    wrote.reasoning |= reasoning.is_some();
    wrote.any |=
        text.is_some() || reasoning.is_some() || call || text_of(of_delta("refusal")).is_some();
}

/// The next piece of a call: its id and name come once, its arguments bit by bit.
fn read_call(
    transcript: &mut Transcript,
    place: (u32, u32),
    id: Option<&Value>,
    function: Option<&Value>,
) {
    let call = transcript.tool_calls.entry(place).or_default();
    keep(&mut call.id, id);
    let of_function = |name| text_of(function.and_then(|function| function.get(name)));
    if let Some(name) = of_function("name").filter(|_| call.name.is_empty()) {
        call.name = name.to_owned();
    }
    call.arguments
        .push_str(of_function("arguments").unwrap_or_default());
}

fn read_usage(transcript: &mut Transcript, usage: &Value) {
    let prompt = count_of(usage.get("prompt_tokens"));
    let completion = count_of(usage.get("completion_tokens"));
    // One engine puts a usage of zeros on every chunk; it has not counted.
    if prompt.unwrap_or(0) + completion.unwrap_or(0) == 0 {
        return;
    }
    let total = count_of(usage.get("total_tokens"));
    transcript.tally.report(prompt, completion, total);
}
