//! The closed set of dialects and the few facts about each that others need as plain answers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What one upstream API means by its event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// OpenAI Chat Completions, and the engines that copy it.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// OpenAI legacy Completions, and the engines that copy it.
    #[serde(rename = "openai_completions")]
    OpenAiCompletions,
    /// OpenAI Responses, and the engines that copy it.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Anthropic Messages, and the engines that copy it.
    #[serde(rename = "anthropic_messages")]
    AnthropicMessages,
    /// Google Gemini's `streamGenerateContent` as an event stream.
    #[serde(rename = "gemini")]
    Gemini,
    /// The Model Context Protocol over HTTP, up to its version of 2025-11-25.
    #[serde(rename = "mcp")]
    Mcp,
    /// Any other event stream: nothing is known of its contents.
    #[serde(rename = "generic")]
    Generic,
}

impl Dialect {
    /// Every dialect, for tables and tests.
    pub const ALL: [Self; 7] = [
        Self::OpenAiChat,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::Mcp,
        Self::Generic,
    ];

    /// The name used in configuration, journals, logs and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiCompletions => "openai_completions",
            Self::OpenAiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
            Self::Generic => "generic",
        }
    }

    /// Whether a block whose data is empty is an event here.
    ///
    /// Not in the LLM dialects: widely used SDKs parse every block as JSON and fail on it. In MCP it gives the client an
    /// id to come back with.
    pub fn keeps_empty_data(self) -> bool {
        matches!(self, Self::Mcp | Self::Generic)
    }

    /// Whether its clients understand id lines and comments. Gemini's do not: an id makes them raise, or drop every
    /// event and report an empty success, and a comment swallows the event behind it.
    pub fn reads_ids(self) -> bool {
        !matches!(self, Self::Gemini)
    }

    /// Whether each event has a number in its data, so that an ending of ours has to go on from the last one.
    pub fn numbers_events(self) -> bool {
        matches!(self, Self::OpenAiResponses)
    }

    /// Whether upstream's `retry:` is passed on.
    ///
    /// Not in the LLM dialects, whose clients do not reconnect by it.
    pub fn keeps_retry(self) -> bool {
        matches!(self, Self::Mcp | Self::Generic)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == name)
            .ok_or(UnknownDialect)
    }
}

/// A name that is none of the dialects'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dialect, expected openai_chat, openai_completions, openai_responses, anthropic_messages, gemini, mcp or \
     generic"
)]
pub struct UnknownDialect;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
            let json = serde_json::to_string(&dialect).unwrap();
            assert_eq!(json, format!("\"{dialect}\""));
            assert_eq!(serde_json::from_str::<Dialect>(&json).unwrap(), dialect);
        }
        assert_eq!("openai".parse::<Dialect>(), Err(UnknownDialect));
    }
}
