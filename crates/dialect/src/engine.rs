//! The inference engines that can be told to go on with an answer.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Dialect;

/// An engine that is known by its own words, or by those of its operator, never by where it is: what it does with an answer that it is given differs
/// from one to the next, and some do it silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// The server of llama.cpp.
    LlamaCpp,
    /// Anthropic's own service, or one that is the same. Nothing that it says shows that it is: its operator says so.
    Anthropic,
}

/// How an engine is told to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// It is given every token by its id.
    TokenIds,
    /// It is given the text.
    Prefill,
}

impl Method {
    /// The word in entries, logs and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokenIds => "token_ids",
            Self::Prefill => "prefill",
        }
    }
}

impl Engine {
    /// The name in configuration, logs and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama_cpp",
            Self::Anthropic => "anthropic",
        }
    }

    /// What it can be told, in this dialect, the most exact first. Whether it does so on a given server is for a probe to
    /// find out.
    #[must_use]
    pub fn methods(self, dialect: Dialect) -> &'static [Method] {
        match (self, dialect) {
            (
                Self::Vllm | Self::Sglang | Self::LlamaCpp,
                Dialect::OpenAiChat | Dialect::OpenAiCompletions,
            ) => &[Method::TokenIds, Method::Prefill],
            // vLLM and SGLang take a message of the assistant there for a turn that is over.
            (Self::Anthropic | Self::LlamaCpp, Dialect::AnthropicMessages) => &[Method::Prefill],
            (
                _,
                Dialect::OpenAiChat
                | Dialect::OpenAiCompletions
                | Dialect::OpenAiResponses
                | Dialect::AnthropicMessages
                | Dialect::Gemini
                | Dialect::Mcp
                | Dialect::Generic,
            ) => &[],
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
