//! What a request says to an inference engine, beyond what every server of its dialect reads.

use serde_json::{Value, json};

/// The members of a request that only an engine reads. What is missing, or is no such thing, has its
/// default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Order {
    /// `messages`, with the text of each.
    pub messages: Vec<Message>,
    /// `prompt`, where it is one text.
    pub prompt: Option<String>,
    /// `prompt`, where it is a list of token ids.
    pub prompt_ids: Option<Vec<u32>>,
    /// `kv_transfer_params.prompt_token_ids`: what the chat of vLLM takes in place of its messages.
    pub transferred_ids: Option<Vec<u32>>,
    /// `input_ids`: what the chat of SGLang takes in place of its messages.
    pub input_ids: Option<Vec<u32>>,
    /// `continue_final_message`.
    pub continue_final_message: bool,
    /// `add_generation_prompt`.
    pub add_generation_prompt: Option<bool>,
    /// `min_tokens`.
    pub min_tokens: usize,
    /// `echo`.
    pub echo: bool,
    /// `logprobs`, as a truth or as a number above 0.
    pub logprobs: bool,
    /// `timings_per_token`.
    pub timings_per_token: bool,
    /// `sse_ping_interval`, in seconds.
    pub ping_interval: Option<i64>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: String,
    /// The text of it; of several parts, those that are text.
    pub content: String,
}

impl Message {
    /// A message with this text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }

    fn read(message: &Value) -> Self {
        let content = match &message["content"] {
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect(),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        Self::new(message["role"].as_str().unwrap_or("user"), content)
    }
}

impl Order {
    /// Reads a body.
    pub(crate) fn read(body: &Value) -> Self {
        let truth = |name: &str| body[name].as_bool() == Some(true);
        let messages = body["messages"].as_array().map(Vec::as_slice);
        let min_tokens = body["min_tokens"].as_u64().unwrap_or_default();
        // Anthropic has it beside the messages.
        let system = (!body["system"].is_null())
            .then(|| Message::read(&json!({"role": "system", "content": body["system"]})));
        let messages = messages.unwrap_or_default().iter().map(Message::read);
        Self {
            messages: system.into_iter().chain(messages).collect(),
            prompt: body["prompt"].as_str().map(str::to_owned),
            prompt_ids: ids(&body["prompt"]),
            transferred_ids: ids(&body["kv_transfer_params"]["prompt_token_ids"]),
            input_ids: ids(&body["input_ids"]),
            continue_final_message: truth("continue_final_message"),
            add_generation_prompt: body["add_generation_prompt"].as_bool(),
            // A number that no machine has room for is as good as none.
            min_tokens: usize::try_from(min_tokens).unwrap_or_default(),
            echo: truth("echo"),
            logprobs: truth("logprobs") || body["logprobs"].as_u64() > Some(0),
            timings_per_token: truth("timings_per_token"),
            ping_interval: body["sse_ping_interval"].as_i64(),
        }
    }

    /// The last message, if it is the assistant's.
    pub(super) fn last_said(&self) -> Option<&Message> {
        self.messages.last().filter(|last| last.role == "assistant")
    }
}

/// A list of ids.
pub(super) fn ids(value: &Value) -> Option<Vec<u32>> {
    let ids = value.as_array().filter(|ids| !ids.is_empty())?;
    ids.iter()
        .map(|id| u32::try_from(id.as_u64()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read() {
        let order = Order::read(&json!({
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
                {"role": "assistant", "content": "b"},
            ],
            "kv_transfer_params": {"prompt_token_ids": [1, 2]},
            "continue_final_message": true, "add_generation_prompt": false,
            "min_tokens": 3, "sse_ping_interval": 1, "logprobs": 1,
        }));
        let expected = Order {
            messages: vec![Message::new("user", "a"), Message::new("assistant", "b")],
            transferred_ids: Some(vec![1, 2]),
            continue_final_message: true,
            add_generation_prompt: Some(false),
            min_tokens: 3,
            logprobs: true,
            ping_interval: Some(1),
            ..Order::default()
        };
        assert_eq!(order, expected);
        assert_eq!(order.last_said(), Some(&Message::new("assistant", "b")));
        assert_eq!(Order::read(&Value::Null), Order::default());
    }
}
