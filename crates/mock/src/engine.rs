//! The mock as an inference engine: vLLM, SGLang, llama.cpp or Anthropic's service, as each is seen from outside.
//!
//! Without an engine the mock plays a score. With one it has a tokeniser, a chat template and a model,
//! so a request that carries the beginning of an answer is continued because the model, given those very
//! tokens, says what comes next. The model knows one text, its script's, and everything it says follows
//! from the ids of its prompt: given the ids that it wrote itself it goes on exactly, on any mock with the
//! same script; given other ids for the same text it goes on differently, as real models were seen to do.
//!
//! Shapes and habits are those that were measured on real engines, faults included. It is no sampler (a
//! temperature changes nothing) and has no cache, no stop strings and no grammars.

mod chat;
mod faults;
mod model;
mod order;
mod pieces;
mod plan;
mod probes;
mod template;
mod tokens;
mod voice;

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Ask, Dialect, Script};

pub use faults::{Faults, Refuse};
pub use order::{Message, Order};
pub(crate) use plan::Plan;
use plan::Refused;
pub(crate) use probes::{Reply, probe};
pub(crate) use voice::{settle, voice, whole};

/// An engine that the mock can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// The server of llama.cpp.
    LlamaCpp,
    /// Anthropic's own service, for messages.
    Anthropic,
}

impl Engine {
    /// Those that serve chat and completions.
    pub const OPENAI: [Self; 3] = [Self::Vllm, Self::Sglang, Self::LlamaCpp];

    /// Its name in scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama_cpp",
            Self::Anthropic => "anthropic",
        }
    }

    /// Whether it goes on with answers of a dialect, as itself.
    fn serves(self, dialect: Dialect) -> bool {
        match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiCompletions => self != Self::Anthropic,
            Dialect::AnthropicMessages => matches!(self, Self::LlamaCpp | Self::Anthropic),
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Generic => false,
        }
    }

    /// What its models are owned by.
    fn owner(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llamacpp",
            Self::Anthropic => "anthropic",
        }
    }

    /// What serves its answers.
    fn server(self) -> &'static str {
        match self {
            Self::Vllm | Self::Sglang => "uvicorn",
            Self::LlamaCpp => "llama.cpp",
            Self::Anthropic => "cloudflare",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The script with the head lines of all its engine's answers, where it is one.
pub(crate) fn dress(script: Arc<Script>) -> Arc<Script> {
    let Some(engine) = script.engine else {
        return script;
    };
    let mut dressed = Script::clone(&script);
    dressed.headers.insert(0, line("server", engine.server()));
    Arc::new(dressed)
}

/// The same, with those of its streams.
pub(crate) fn dress_stream(script: Arc<Script>) -> Arc<Script> {
    let mut script = dress(script);
    if script.engine == Some(Engine::LlamaCpp) {
        let dressed = Arc::make_mut(&mut script);
        dressed.headers.insert(1, line("x-accel-buffering", "no"));
        let content_type = &mut dressed.content_type;
        content_type.get_or_insert_with(|| "text/event-stream".to_owned());
    }
    script
}

fn line(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// After how much silence a comment is written: llama.cpp does so, as often as the request says.
pub(crate) fn ping(script: &Script, ask: &Ask) -> Option<Duration> {
    if script.engine != Some(Engine::LlamaCpp) {
        return None;
    }
    // 30 s is the default of the server.
    let seconds = ask.order.ping_interval.unwrap_or(30);
    let seconds = u64::try_from(seconds).ok().filter(|&seconds| seconds > 0);
    seconds.map(Duration::from_secs)
}
