//! The dialects: how an answer's parts are worded.
//!
//! A [`Voice`] renders events in canonical form (LF, `field: value`, blank line included). Parts
//! that occur once are rendered when asked for; text events come from a [`Template`] that was
//! rendered once, because they are the hot path of a load test.

mod anthropic;
mod chat;
mod completions;
mod gemini;
mod generic;
mod responses;
mod template;

use std::{fmt, str::FromStr};

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Ask, Call, ErrorEvent, Script, UsageChunk,
    ask::Prefix,
    engine::{self, Plan},
    text::Text,
};

/// The dialects that the mock speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// OpenAI Chat Completions.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// OpenAI legacy Completions.
    #[serde(rename = "openai_completions")]
    OpenAiCompletions,
    /// OpenAI Responses.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Anthropic Messages.
    #[serde(rename = "anthropic_messages")]
    AnthropicMessages,
    /// Gemini's `streamGenerateContent`.
    #[serde(rename = "gemini")]
    Gemini,
    /// An event stream without a sentinel, a finish or any other LLM convention.
    #[serde(rename = "generic")]
    Generic,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::Generic,
    ];

    /// Its name in scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiCompletions => "openai_completions",
            Self::OpenAiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
            Self::Gemini => "gemini",
            Self::Generic => "generic",
        }
    }

    /// The dialect that the mock serves on this path, if any.
    pub fn of(method: &Method, path: &str) -> Option<Self> {
        let ends = |end| path.ends_with(end);
        match *method {
            Method::POST if ends("/chat/completions") => Some(Self::OpenAiChat),
            Method::POST if ends("/completions") => Some(Self::OpenAiCompletions),
            Method::POST if ends("/responses") => Some(Self::OpenAiResponses),
            Method::POST if ends("/messages") => Some(Self::AnthropicMessages),
            Method::POST if ends(":streamGenerateContent") || ends(":generateContent") => {
                Some(Self::Gemini)
            }
            Method::POST if path == "/generic" => Some(Self::Generic),
            Method::GET if path == "/feed" => Some(Self::Generic),
            _ => None,
        }
    }

    /// The target on which the mock serves this dialect, for POST.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenAiChat => "/v1/chat/completions",
            Self::OpenAiCompletions => "/v1/completions",
            Self::OpenAiResponses => "/v1/responses",
            Self::AnthropicMessages => "/v1/messages",
            Self::Gemini => "/v1beta/models/mock:streamGenerateContent?alt=sse",
            Self::Generic => "/generic",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no dialect's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect {0:?}")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let known = Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == name);
        known.ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

pub(crate) use anthropic::anthropic_error;
pub(crate) use chat::{call_deltas, openai_error};
pub(crate) use gemini::gemini_error;

/// Words one answer.
pub(crate) trait Voice: Send {
    /// What comes before the text.
    fn opening(&self) -> Vec<Vec<u8>>;
    /// Appends a text event. `token` counts from the start of the whole text, `text` is escaped.
    fn text(&self, choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>);
    /// The calls of tools, behind so many events.
    fn calls(&self, _events: usize) -> Vec<Vec<u8>> {
        Vec::new()
    }
    /// The finish with this reason, behind so many events. `abort` may come before the calls, any other behind them.
    fn finish(&self, reason: &str, events: usize) -> Vec<Vec<u8>>;
    /// The usage report, if it is an event of its own here and wanted.
    fn usage(&self) -> Option<Vec<u8>>;
    /// The success sentinel, if there is one here.
    fn sentinel(&self) -> Option<Vec<u8>>;
    /// An error event.
    fn error(&self, error: &ErrorEvent) -> Vec<u8>;
}

/// What is settled about an answer once script and request have met.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) choices: usize,
    pub(crate) finish: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) role_chunk: bool,
    pub(crate) usage_chunk: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) token_ids: bool,
    pub(crate) prompt_tokens: usize,
    /// Tokens before the first of this answer, when it continues another.
    pub(crate) skipped: usize,
    pub(crate) completion_tokens: usize,
}

/// Lets a script meet a request.
pub(crate) fn settle(script: &Script, ask: &Ask) -> (Facts, Text) {
    let dialect = ask.dialect;
    let mut text = Text::new(script.text.as_deref(), script.tokens);
    if script.continues {
        match &ask.prefix {
            Prefix::None => {}
            Prefix::Text(prefix) => text.skip_text(prefix),
            Prefix::Ids(ids) => text.skip_ids(ids),
        }
    }
    let cut = match ask.max_tokens {
        Some(limit) if script.obey_limits => text.limit(limit),
        _ => false,
    };
    let (kind, whole, short) = match dialect {
        Dialect::OpenAiChat => ("chatcmpl", "stop", "length"),
        Dialect::OpenAiCompletions => ("cmpl", "stop", "length"),
        Dialect::OpenAiResponses => ("resp", "completed", "max_output_tokens"),
        Dialect::AnthropicMessages => ("msg", "end_turn", "max_tokens"),
        Dialect::Gemini => ("gemini", "STOP", "MAX_TOKENS"),
        Dialect::Generic => ("feed", "stop", "length"),
    };
    let calls = if cut {
        Vec::new()
    } else {
        script.calls.clone()
    };
    let natural = match dialect {
        _ if cut => short,
        Dialect::OpenAiChat if !calls.is_empty() => "tool_calls",
        Dialect::AnthropicMessages if !calls.is_empty() => "tool_use",
        _ => whole,
    };
    let openai = matches!(dialect, Dialect::OpenAiChat | Dialect::OpenAiCompletions);
    let facts = Facts {
        id: script
            .id
            .clone()
            .unwrap_or_else(|| format!("{kind}-mock-{:08}", ask.serial)),
        created: script.created,
        model: script.model.clone().unwrap_or_else(|| ask.model.clone()),
        choices: if openai {
            script.choices.unwrap_or(ask.choices).max(1)
        } else {
            1
        },
        finish: script.finish.clone().unwrap_or_else(|| natural.to_owned()),
        calls,
        role_chunk: script.role_chunk,
        usage_chunk: match script.usage {
            UsageChunk::Asked => ask.include_usage,
            UsageChunk::Always => true,
            UsageChunk::Never => false,
        },
        continuous_usage: ask.continuous_usage,
        token_ids: ask.token_ids,
        prompt_tokens: ask.prompt_tokens,
        skipped: text.range().start,
        completion_tokens: text.len(),
    };
    (facts, text)
}

/// One answer, ready to be spoken.
pub(crate) struct Part {
    pub(crate) voice: Box<dyn Voice>,
    pub(crate) text: Text,
    pub(crate) choices: usize,
    pub(crate) finish: String,
}

impl Part {
    /// An engine's answer, or the dialect's.
    pub(crate) fn new(script: &Script, ask: &Ask) -> Self {
        let (facts, text) = settle(script, ask);
        let Some(plan) = Plan::of(script, ask) else {
            return Self {
                choices: facts.choices,
                finish: facts.finish.clone(),
                voice: voice(ask.dialect, facts, &text),
                text,
            };
        };
        let (facts, text) = engine::settle(facts, script, &plan);
        Self {
            choices: facts.choices,
            finish: facts.finish.clone(),
            voice: match script.engine.filter(|_| plan.is_message) {
                Some(engine) => Box::new(anthropic::Anthropic::of(engine, facts)),
                None => engine::voice(facts, plan, script, ask),
            },
            text,
        }
    }
}

/// The voice of a dialect for one answer with this text.
fn voice(dialect: Dialect, facts: Facts, text: &Text) -> Box<dyn Voice> {
    match dialect {
        Dialect::OpenAiChat => Box::new(chat::Chat::new(facts)),
        Dialect::OpenAiCompletions => Box::new(completions::Completions::new(facts)),
        Dialect::OpenAiResponses => Box::new(responses::Responses::new(facts, text.whole())),
        Dialect::AnthropicMessages => Box::new(anthropic::Anthropic::new(facts)),
        Dialect::Gemini => Box::new(gemini::Gemini::new(facts)),
        Dialect::Generic => Box::new(generic::Generic::new(facts)),
    }
}

/// The wire form of one event.
pub(crate) fn event(name: Option<&str>, data: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 32);
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data.as_bytes());
    out.extend_from_slice(b"\n\n");
    out
}

/// Our own shapes hold only strings, numbers and lists of them, which cannot fail to serialise.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data serialises")
}

/// The arguments of a call as JSON, and the pieces in which they are streamed.
fn arguments(call: &Call) -> (String, Vec<String>) {
    let whole = Value::Object(call.arguments.clone()).to_string();
    let pieces = Text::pieces(&whole);
    (whole, pieces)
}

/// The usage report of a whole OpenAI answer.
pub(crate) fn usage(facts: &Facts) -> impl Serialize {
    chat::Usage::whole(facts)
}

/// A whole Anthropic message.
pub(crate) fn anthropic_message(facts: &Facts, text: &str) -> String {
    json(&anthropic::Message::whole(facts, text))
}

/// A whole response.
pub(crate) fn response(facts: &Facts, text: &str) -> String {
    json(&responses::whole(facts, text))
}

/// A whole Gemini answer.
pub(crate) fn gemini_answer(facts: &Facts, text: &str) -> String {
    json(&gemini::Answer::whole(facts, text))
}
