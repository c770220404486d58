//! Reading Anthropic message events into a transcript.

use serde_json::Value;
use streamweld_sse::Event;

use super::{Part, ToolCall, Transcript, count_of, index_of, keep, text_of};

/// What of a message its rest has to agree with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    /// It was begun, by an event of its own or by a block.
    begun: bool,
    input: Input,
    /// The blocks that were begun, in order.
    blocks: Vec<Block>,
    /// A delta came that is neither text, nor reasoning, nor a call.
    others: bool,
    closed: Option<u32>,
}

/// A block that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) index: u32,
    /// Its type.
    pub(crate) kind: String,
}

/// The tokens of the prompt, as they were counted at the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Input {
    /// Those that were read anew.
    pub(crate) tokens: Option<u64>,
    pub(crate) to_cache: u64,
    pub(crate) from_cache: u64,
}

impl Message {
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    pub(crate) fn input(&self) -> Input {
        self.input
    }

    /// The block in which its reader stands.
    pub(crate) fn open(&self) -> Option<&Block> {
        let last = self.blocks.last();
        last.filter(|last| self.closed != Some(last.index))
    }

    pub(super) fn reasons(&self) -> bool {
        self.blocks.iter().any(|block| is_reasoning(&block.kind))
    }

    pub(super) fn has_other_parts(&self) -> bool {
        let is_other = |block: &Block| {
            !(block.kind == "text" || is_reasoning(&block.kind) || is_call(&block.kind))
        };
        self.others || self.blocks.iter().any(is_other)
    }
}

/// `thinking`, `redacted_thinking`.
fn is_reasoning(kind: &str) -> bool {
    kind.ends_with("thinking")
}

/// `tool_use`, `server_tool_use`, `mcp_tool_use`.
fn is_call(kind: &str) -> bool {
    kind.ends_with("tool_use")
}

pub(super) fn push(transcript: &mut Transcript, event: &Event<'_>) {
    let Ok(frame) = serde_json::from_str::<Value>(&event.data()) else {
        return;
    };
    match text_of(frame.get("type")).or(event.name()) {
        Some("message_start") => message_start(transcript, &frame),
        Some("content_block_start") => block_start(transcript, &frame),
        Some("content_block_delta") => block_delta(transcript, &frame),
        Some("content_block_stop") => {
            if let Some(index) = index_of(frame.get("index")) {
                transcript.parts.insert(index, Part::Closed);
                transcript.message.closed = Some(index);
            }
        }
        Some("message_delta") => message_delta(transcript, &frame),
        Some("message_stop") => transcript.complete = true,
        // Pings, and whatever may be added: they carry no output.
        _ => {}
    }
}

fn message_start(transcript: &mut Transcript, frame: &Value) {
    transcript.began = true;
    let message = frame.get("message");
    let of_message = |name| message.and_then(|message| message.get(name));
    keep(&mut transcript.id, of_message("id"));
    keep(&mut transcript.model, of_message("model"));
    // Its output count is a first figure of a message that has no output yet.
    let usage = of_message("usage");
    transcript
        .tally
        .report(usage.and_then(prompt_tokens), None, None);
    transcript.message.begun = true;
    if let Some(usage) = usage {
        let count = |name| count_of(usage.get(name));
        transcript.message.input = Input {
            tokens: count("input_tokens"),
            to_cache: count("cache_creation_input_tokens").unwrap_or(0),
            from_cache: count("cache_read_input_tokens").unwrap_or(0),
        };
    }
}

fn block_start(transcript: &mut Transcript, frame: &Value) {
    let block = frame.get("content_block");
    let of_block = |name| block.and_then(|block| block.get(name));
    if let Some(index) = index_of(frame.get("index")) {
        transcript.parts.insert(index, Part::Open);
        let kind = text_of(of_block("type")).unwrap_or_default().to_owned();
        transcript.message.blocks.push(Block { index, kind });
        transcript.message.begun = true;
        transcript.message.closed = None;
    }
    if text_of(of_block("type")).is_some_and(is_call) {
        let input = of_block("input").filter(|input| is_filled(input));
        let call = ToolCall {
            id: text_of(of_block("id")).map(str::to_owned),
            name: text_of(of_block("name")).unwrap_or_default().to_owned(),
            arguments: input.map(Value::to_string).unwrap_or_default(),
        };
        let index = index_of(frame.get("index")).unwrap_or(0);
        transcript.tool_calls.insert((index, 0), call);
    }
    if let Some(text) = text_of(of_block("text")) {
        transcript.text.push_str(text);
        transcript.tally.output();
    }
}

fn block_delta(transcript: &mut Transcript, frame: &Value) {
    let delta = frame.get("delta");
    let of_delta = |name| text_of(delta.and_then(|delta| delta.get(name)));
    if let Some(text) = of_delta("text") {
        transcript.text.push_str(text);
        transcript.tally.output();
    } else if let Some(thought) = of_delta("thinking") {
        transcript.reasoning.push_str(thought);
        transcript.reasoning_events += 1;
        transcript.tally.output();
    } else if let Some(json) = of_delta("partial_json") {
        let index = index_of(frame.get("index")).unwrap_or(0);
        if let Some(call) = transcript.tool_calls.get_mut(&(index, 0)) {
            call.arguments.push_str(json);
        }
        transcript.tally.output();
    } else if !matches!(
        of_delta("type"),
        Some("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta")
    ) {
        // Citations, and whatever may be added.
        transcript.message.others = true;
    }
}

/// A block begins with an empty input, whose JSON then comes bit by bit; some copies of the API have all of it here.
fn is_filled(input: &Value) -> bool {
    input.as_object().is_some_and(|input| !input.is_empty())
}

fn message_delta(transcript: &mut Transcript, frame: &Value) {
    let reason = frame
        .get("delta")
        .and_then(|delta| delta.get("stop_reason"));
    if let Some(reason) = text_of(reason) {
        transcript.reasons.insert(0, reason.to_owned());
    }
    if let Some(usage) = frame.get("usage") {
        let completion = count_of(usage.get("output_tokens"));
        transcript
            .tally
            .report(prompt_tokens(usage), completion, None);
    }
}

/// All of the prompt: what was read anew, and what the cache took or gave.
fn prompt_tokens(usage: &Value) -> Option<u64> {
    let read = count_of(usage.get("input_tokens"))?;
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"]
        .into_iter()
        .filter_map(|name| count_of(usage.get(name)))
        .sum::<u64>();
    Some(read + cached)
}
