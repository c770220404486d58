//! What a request asks for: the few facts of its body that shape the answer.

use serde_json::Value;

use crate::{Dialect, Order};

/// The facts of one request. A test makes one with [`Ask::stream`], or takes the one that the
/// recorder kept, to ask a script what it says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The dialect of the answer.
    pub dialect: Dialect,
    /// Whether a stream is wanted. The generic dialect always streams, and Gemini by its path.
    pub stream: bool,
    /// The model named in the request.
    pub model: String,
    /// How many choices (`n`).
    pub choices: usize,
    /// `stream_options.include_usage`.
    pub include_usage: bool,
    /// `stream_options.continuous_usage_stats`.
    pub continuous_usage: bool,
    /// `return_token_ids`.
    pub token_ids: bool,
    /// `max_completion_tokens`, `max_tokens`, `max_output_tokens` or `generationConfig.maxOutputTokens`.
    pub max_tokens: Option<usize>,
    /// How long the prompt is, in white-space separated words or in token ids.
    pub prompt_tokens: usize,
    /// The beginning of the answer that the request already carries.
    pub prefix: Prefix,
    /// What only an engine reads.
    pub order: Order,
    /// The number of the request at its mock, from 1; the answer's id is made from it.
    pub serial: u64,
}

/// The beginning of an answer inside a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Prefix {
    /// None: a new answer.
    #[default]
    None,
    /// An assistant message to be continued, or the end of a completion prompt.
    Text(String),
    /// The token ids of the whole prompt.
    Ids(Vec<u32>),
}

impl Ask {
    /// The first streaming request of a mock, with model `mock` and nothing else.
    pub fn stream(dialect: Dialect) -> Self {
        Self {
            dialect,
            stream: true,
            model: "mock".to_owned(),
            choices: 1,
            include_usage: false,
            continuous_usage: false,
            token_ids: false,
            max_tokens: None,
            prompt_tokens: 0,
            prefix: Prefix::None,
            order: Order::default(),
            serial: 1,
        }
    }

    /// Reads the facts from a request body. What is missing or is no JSON has its default.
    pub fn read(dialect: Dialect, body: &[u8], serial: u64) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let options = &body["stream_options"];
        let ids = [
            "/prompt",
            "/prompt_token_ids",
            "/input_ids",
            "/kv_transfer_params/prompt_token_ids",
        ]
        .iter()
        .find_map(|place| token_ids(body.pointer(place)?));
        let prefix = match &ids {
            Some(ids) => Prefix::Ids(ids.clone()),
            None => text_prefix(dialect, &body),
        };
        let limit = [
            "/max_completion_tokens",
            "/max_tokens",
            "/max_output_tokens",
            "/generationConfig/maxOutputTokens",
        ]
        .iter()
        .find_map(|place| body.pointer(place)?.as_u64());
        let prompts = [
            "messages",
            "prompt",
            "system",
            "input",
            "instructions",
            "contents",
            "systemInstruction",
        ];
        Self {
            dialect,
            stream: match dialect {
                Dialect::Generic | Dialect::Gemini => true,
                _ => is_true(&body["stream"]),
            },
            model: body["model"].as_str().unwrap_or("mock").to_owned(),
            choices: body["n"].as_u64().map_or(1, |n| n.clamp(1, 128) as usize),
            include_usage: is_true(&options["include_usage"]),
            continuous_usage: is_true(&options["continuous_usage_stats"]),
            token_ids: is_true(&body["return_token_ids"]),
            max_tokens: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            prompt_tokens: ids.map_or_else(
                || prompts.iter().map(|name| words(&body[*name])).sum(),
                |ids| ids.len(),
            ),
            prefix,
            order: Order::read(&body),
            serial,
        }
    }
}

fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}

fn token_ids(value: &Value) -> Option<Vec<u32>> {
    let ids = value.as_array()?;
    if ids.is_empty() {
        return None;
    }
    ids.iter()
        .map(|id| u32::try_from(id.as_u64()?).ok())
        .collect()
}

/// Only what asks to be continued is a prefix: engines start a new turn otherwise, except for
/// Anthropic, where a trailing assistant message is always one, and completions, which have only
/// the prompt. There the answer is taken to begin after the prompt's last blank line.
fn text_prefix(dialect: Dialect, body: &Value) -> Prefix {
    let last = &body["messages"]
        .as_array()
        .and_then(|all| all.last())
        .unwrap_or(&Value::Null);
    let asked = dialect == Dialect::AnthropicMessages || is_true(&body["continue_final_message"]);
    let text = match dialect {
        Dialect::OpenAiCompletions => body["prompt"]
            .as_str()
            .and_then(|prompt| prompt.rsplit_once("\n\n"))
            .map(|(_, rest)| rest),
        _ if asked && last["role"] == "assistant" => {
            let parts = &last["content"];
            parts.as_str().or_else(|| parts[0]["text"].as_str())
        }
        _ => None,
    };
    text.map_or(Prefix::None, |text| Prefix::Text(text.to_owned()))
}

/// Counts the words of all strings below `content`, `parts` and `text` members, roles left out.
fn words(value: &Value) -> usize {
    match value {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(all) => all.iter().map(words).sum(),
        Value::Object(members) => ["content", "parts", "text"]
            .iter()
            .filter_map(|name| members.get(*name))
            .map(words)
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, body: &str) -> Ask {
        Ask::read(dialect, body.as_bytes(), 1)
    }

    #[test]
    fn facts_are_read_and_nonsense_is_a_default() {
        let ask = read(
            Dialect::OpenAiChat,
            r#"{"model":"m","stream":true,"n":2,"max_tokens":7,"stream_options":{"include_usage":true},
               "messages":[{"role":"user","content":"one two"}]}"#,
        );
        assert!(ask.stream && ask.include_usage && !ask.token_ids);
        assert_eq!(
            (
                ask.model.as_str(),
                ask.choices,
                ask.max_tokens,
                ask.prompt_tokens
            ),
            ("m", 2, Some(7), 2)
        );
        assert!(!read(Dialect::OpenAiChat, "not json").stream);
    }

    #[test]
    fn a_prefix_has_to_be_asked_for() {
        let messages = r#""messages":[{"role":"assistant","content":"t1 t2"}]"#;
        let plain = format!("{{{messages}}}");
        let asked = format!(r#"{{{messages},"continue_final_message":true}}"#);
        let text = Prefix::Text("t1 t2".to_owned());
        assert_eq!(read(Dialect::OpenAiChat, &plain).prefix, Prefix::None);
        assert_eq!(read(Dialect::OpenAiChat, &asked).prefix, text);
        assert_eq!(read(Dialect::AnthropicMessages, &plain).prefix, text);
        let ids = read(Dialect::OpenAiCompletions, r#"{"prompt":[1,2,1000]}"#);
        assert_eq!(
            (ids.prefix, ids.prompt_tokens),
            (Prefix::Ids(vec![1, 2, 1000]), 3)
        );
    }
}
