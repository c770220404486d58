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
    /// Anthropic Messages, and the engines that copy it.
    #[serde(rename = "anthropic_messages")]
    AnthropicMessages,
    /// Any other event stream: nothing is known of its contents.
    #[serde(rename = "generic")]
    Generic,
}

impl Dialect {
    /// Every dialect, for tables and tests.
    pub const ALL: [Self; 4] = [
        Self::OpenAiChat,
        Self::OpenAiCompletions,
        Self::AnthropicMessages,
        Self::Generic,
    ];

    /// The name used in configuration, journals, logs and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiCompletions => "openai_completions",
            Self::AnthropicMessages => "anthropic_messages",
            Self::Generic => "generic",
        }
    }

    /// Whether a block whose data is empty is an event here.
    ///
    /// Not in the LLM dialects: widely used SDKs parse every block as JSON and fail on it.
    pub fn keeps_empty_data(self) -> bool {
        matches!(self, Self::Generic)
    }

    /// Whether upstream's `retry:` is passed on.
    ///
    /// Not in the LLM dialects, whose clients do not reconnect by it.
    pub fn keeps_retry(self) -> bool {
        matches!(self, Self::Generic)
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
#[error("unknown dialect, expected openai_chat, openai_completions, anthropic_messages or generic")]
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
