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
    let reasoning = text_of(of_delta("reasoning_content"))
        .or(text_of(of_delta("reasoning")))
        .is_some();
    let call = of_delta("tool_calls")
        .and_then(Value::as_array)
        .is_some_and(|calls| !calls.is_empty())
        || of_delta("function_call").is_some_and(Value::is_object);
    transcript.tool_calls |= call;
    wrote.reasoning |= reasoning;
    wrote.any |= text.is_some() || reasoning || call || text_of(of_delta("refusal")).is_some();
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
