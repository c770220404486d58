//! Which software answers at a backend, as its operator declares it.
//!
//! It is declared, not guessed from a URL. What is told here is only what choosing and watching a
//! backend needs; what an engine's stream means is not this crate's business.

use std::fmt;
use std::str::FromStr;

/// The software behind a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// Text Generation Inference.
    Tgi,
    /// The server of llama.cpp.
    LlamaCpp,
    /// TensorRT-LLM.
    Trtllm,
    /// Ollama.
    Ollama,
    /// OpenAI's own service, or a gateway that shows no health of its engines.
    Openai,
    /// Anthropic's own service.
    Anthropic,
    /// Google's own service.
    Gemini,
    /// Anything else.
    #[default]
    Unknown,
}

impl Engine {
    /// Every engine, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::Vllm,
        Self::Sglang,
        Self::Tgi,
        Self::LlamaCpp,
        Self::Trtllm,
        Self::Ollama,
        Self::Openai,
        Self::Anthropic,
        Self::Gemini,
        Self::Unknown,
    ];

    /// The stable word: in configuration, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Tgi => "tgi",
            Self::LlamaCpp => "llama_cpp",
            Self::Trtllm => "trtllm",
            Self::Ollama => "ollama",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Unknown => "unknown",
        }
    }

    /// The dialects it is mainly asked in.
    pub fn family(self) -> Family {
        match self {
            Self::Vllm
            | Self::Sglang
            | Self::Tgi
            | Self::LlamaCpp
            | Self::Trtllm
            | Self::Ollama
            | Self::Openai => Family::Openai,
            Self::Anthropic => Family::Anthropic,
            Self::Gemini => Family::Gemini,
            Self::Unknown => Family::Unknown,
        }
    }

    /// Where it says, for free, whether it can take a request. None for a service that has no such
    /// place, or where none is known: a guess that is answered with `404` would take a good backend
    /// out.
    pub fn health_path(self) -> Option<&'static str> {
        match self {
            Self::Vllm | Self::Tgi | Self::LlamaCpp | Self::Trtllm => Some("/health"),
            // Its `/health` generates a token, which waits behind every request of a full queue.
            Self::Sglang => Some("/ready"),
            Self::Ollama => Some("/"),
            Self::Openai | Self::Anthropic | Self::Gemini | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(text: &str) -> Result<Self, UnknownEngine> {
        let named = |engine: &Self| engine.as_str() == text;
        Self::ALL.into_iter().find(named).ok_or(UnknownEngine)
    }
}

/// A word that names no engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an engine; one of vllm, sglang, tgi, llama_cpp, trtllm, ollama, openai, anthropic, gemini, unknown"
)]
pub struct UnknownEngine;

/// The vendor whose API a backend speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Chat completions, completions, responses.
    Openai,
    /// Messages.
    Anthropic,
    /// `generateContent`.
    Gemini,
    /// Not known, or several.
    Unknown,
}

impl Family {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_read_by_its_word_and_named_to_whoever_mistypes() {
        let help = UnknownEngine.to_string();
        for engine in Engine::ALL {
            assert_eq!(engine.as_str().parse(), Ok(engine));
            assert!(help.contains(engine.as_str()), "{engine}");
        }
        for text in ["", "vLLM", "llama.cpp", "vllm "] {
            assert_eq!(text.parse::<Engine>(), Err(UnknownEngine), "{text:?}");
        }
    }
}
