//! What was said: text, counts and open parts of an answer, read from its committed events.
//!
//! The cold counterpart of the judge: it parses every event as JSON, so it is built when a stop, a
//! state call or a gate asks, never per event as it streams by. It judges nothing and takes events
//! that it does not understand as saying nothing.

mod anthropic;
mod gemini;
mod mcp;
mod openai;
mod responses;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use streamweld_sse::Event;

use crate::{Dialect, recognise};

pub(crate) use anthropic::{Block, Input, Message};
pub(crate) use responses::Response;

/// The reading of one answer so far. For a generic stream it stays empty, unless its first event shows that it is written
/// in another dialect (see [`recognise`]).
#[derive(Debug, Clone)]
pub struct Transcript {
    dialect: Dialect,
    /// An event was read.
    read: bool,
    call: Option<String>,
    id: Option<String>,
    model: Option<String>,
    object: Option<String>,
    created: Option<u64>,
    began: bool,
    complete: bool,
    text: String,
    parts: BTreeMap<u32, Part>,
    reasons: BTreeMap<u32, String>,
    tool_calls: BTreeMap<(u32, u32), ToolCall>,
    reasoning: String,
    reasoning_events: u64,
    tally: Tally,
    response: Response,
    message: Message,
}

/// A choice or candidate; a content block of Anthropic; an output item of Responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Begun and not ended.
    Open,
    /// Has its finish reason, or is closed.
    Closed,
}

/// A call of a tool or a function, as far as it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, where it has one.
    pub id: Option<String>,
    /// What is called: the name that the request gave it, or the type of a tool of upstream's own.
    pub name: String,
    /// Its arguments as upstream writes them: JSON in nearly all cases, and a part of it while the call goes on.
    pub arguments: String,
}

/// How many tokens an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, where upstream said so. Anthropic's include those read from or written
    /// to its cache.
    pub prompt_tokens: Option<u64>,
    /// Tokens that were generated.
    pub completion_tokens: Option<u64>,
    /// Both together, where both are known.
    pub total_tokens: Option<u64>,
    /// Whether `completion_tokens` is, from upstream's last count on, a count of events with output.
    /// Events often carry one token, but not always: take it as a lower bound.
    pub estimated: bool,
}

impl Transcript {
    /// An empty transcript.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            read: false,
            call: None,
            id: None,
            model: None,
            object: None,
            created: None,
            began: false,
            complete: false,
            text: String::new(),
            parts: BTreeMap::new(),
            reasons: BTreeMap::new(),
            tool_calls: BTreeMap::new(),
            reasoning: String::new(),
            reasoning_events: 0,
            tally: Tally::default(),
            response: Response::default(),
            message: Message::default(),
        }
    }

    /// Tells the id of the call that is being answered, as JSON (MCP).
    pub fn answers(&mut self, call: Option<String>) {
        self.call = call;
    }

    /// Reads the next committed event.
    pub fn push(&mut self, event: &Event<'_>) {
        let first = !std::mem::replace(&mut self.read, true);
        if first && self.dialect == Dialect::Generic {
            self.dialect = recognise(event).unwrap_or(Dialect::Generic);
        }
        match self.dialect {
            Dialect::OpenAiChat | Dialect::OpenAiCompletions => openai::push(self, event),
            Dialect::OpenAiResponses => responses::push(self, event),
            Dialect::AnthropicMessages => anthropic::push(self, event),
            Dialect::Gemini => gemini::push(self, event),
            Dialect::Mcp => mcp::push(self, event),
            Dialect::Generic => {}
        }
    }

    /// The dialect it is read in: that it was made with, or the one that was recognised.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The generated text: of choice or candidate 0, of all text blocks of a message, of all output of a response.
    /// Reasoning, refusals and tool calls are not in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Token counts, or `None` for MCP and generic streams, of which nothing can be counted.
    pub fn usage(&self) -> Option<Usage> {
        let counts = !matches!(self.dialect, Dialect::Mcp | Dialect::Generic);
        counts.then(|| self.tally.usage())
    }

    /// Upstream's id of the answer.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The model that upstream says is answering.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Upstream's `object` (OpenAI).
    pub fn object(&self) -> Option<&str> {
        self.object.as_deref()
    }

    /// Upstream's time of creation in seconds (OpenAI).
    pub fn created(&self) -> Option<u64> {
        self.created
    }

    /// The choices, candidates, blocks or items that were begun, by index.
    pub fn parts(&self) -> impl Iterator<Item = (u32, Part)> + '_ {
        self.parts.iter().map(|(&index, &part)| (index, part))
    }

    /// The finish reasons seen, of any kind: by choice or candidate, or the one of the answer under index 0.
    pub fn reasons(&self) -> impl Iterator<Item = (u32, &str)> + '_ {
        self.reasons
            .iter()
            .map(|(&index, reason)| (index, reason.as_str()))
    }

    /// Whether a tool or function call was begun.
    pub fn has_tool_calls(&self) -> bool {
        !self.tool_calls.is_empty()
    }

    /// The calls that were begun, with the choice, candidate, block or item that they belong to, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = (u32, &ToolCall)> + '_ {
        self.tool_calls
            .iter()
            .map(|(&(part, _), call)| (part, call))
    }

    /// The reasoning that was shown, or summaries of it: of choice or candidate 0, of all blocks of a message, of all
    /// output of a response.
    pub fn reasoning(&self) -> &str {
        &self.reasoning
    }

    /// Whether reasoning was shown, or a part of the answer begun that is for it.
    pub fn has_reasoning(&self) -> bool {
        self.reasoning_events > 0 || self.message.reasons()
    }

    /// Whether a message has something that is neither text, nor reasoning, nor a call: a block or a delta of another
    /// kind. Of the other dialects that is not told.
    pub fn has_other_parts(&self) -> bool {
        self.message.has_other_parts()
    }

    /// Whether something is behind which nobody knows what would have come: a choice with its finish reason, or the last
    /// block of a message, closed.
    pub fn is_at_an_end(&self) -> bool {
        match self.dialect {
            Dialect::AnthropicMessages => {
                let last = self.parts.values().last();
                !self.reasons.is_empty() || last == Some(&Part::Closed)
            }
            _ => self.parts.values().any(|part| *part == Part::Closed),
        }
    }

    /// How many events carried output of any kind.
    pub fn output_events(&self) -> u64 {
        self.tally.events
    }

    /// Whether the dialect's sentinel was among the events, or there is nothing that could follow.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    pub(crate) fn open_parts(&self) -> impl Iterator<Item = u32> + '_ {
        self.parts()
            .filter(|(_, part)| *part == Part::Open)
            .map(|(index, _)| index)
    }

    /// The parts that a stop has to finish: those that are open, or the first if nothing has begun.
    pub(crate) fn unfinished(&self) -> Vec<u32> {
        if self.has_begun() {
            self.open_parts().collect()
        } else {
            vec![0]
        }
    }

    /// Whether anything of an answer was read (Anthropic: `message_start`).
    pub(crate) fn has_begun(&self) -> bool {
        self.began
    }

    /// What a message of Anthropic looks like so far.
    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    /// What a response of the Responses API looks like so far.
    pub(crate) fn response(&self) -> &Response {
        &self.response
    }
}

/// Upstream's last counts, and what came after them.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    events: u64,
    events_since: u64,
}

impl Tally {
    fn output(&mut self) {
        self.events += 1;
        self.events_since += 1;
    }

    /// Upstream counted. Counts that it leaves out stay as they were.
    fn report(&mut self, prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) {
        self.prompt = prompt.or(self.prompt);
        if completion.is_some() {
            self.completion = completion;
            self.total = total;
            self.events_since = 0;
        }
    }

    fn usage(&self) -> Usage {
        let estimated = self.completion.is_none() || self.events_since > 0;
        let completion = self.completion.unwrap_or(0) + self.events_since;
        let sum = self.prompt.map(|prompt| prompt + completion);
        Usage {
            prompt_tokens: self.prompt,
            completion_tokens: Some(completion),
            total_tokens: if estimated { sum } else { self.total.or(sum) },
            estimated,
        }
    }
}

/// Keeps the first text that is not empty: later chunks of one answer repeat it, or leave it out.
fn keep(slot: &mut Option<String>, value: Option<&Value>) {
    if slot.is_none() {
        *slot = text_of(value).map(str::to_owned);
    }
}

/// A string that is not empty.
fn text_of(value: Option<&Value>) -> Option<&str> {
    value
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

fn count_of(value: Option<&Value>) -> Option<u64> {
    value.and_then(Value::as_u64)
}

fn index_of(value: Option<&Value>) -> Option<u32> {
    count_of(value).and_then(|index| u32::try_from(index).ok())
}
