//! Asking an engine how it cuts text into tokens and writes a chat as a prompt, which costs it nothing.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Engine, fault};

/// Something to ask by `POST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The path.
    pub path: &'static str,
    /// The body, JSON.
    pub body: String,
}

/// Whether the tokens that a prompt of this model begins with are wanted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    With,
    Without,
}

impl Engine {
    /// Which tokens a text is, without those that a prompt begins with. [`read_tokens`] reads the answer. `None` where the
    /// engine does not tell.
    #[must_use]
    pub fn ask_tokens(self, model: &str, text: &str) -> Option<Question> {
        self.tokens(model, text, Begin::Without)
    }

    /// Which tokens a prompt of this text is, as the engine itself would have it. [`read_tokens`] reads the answer. `None`
    /// where the engine does not tell.
    #[must_use]
    pub fn ask_prompt_tokens(self, model: &str, text: &str) -> Option<Question> {
        self.tokens(model, text, Begin::With)
    }

    fn tokens(self, model: &str, text: &str, begin: Begin) -> Option<Question> {
        let begin = begin == Begin::With;
        let body = match self {
            Self::Vllm | Self::Sglang => {
                json!({"model": model, "prompt": text, "add_special_tokens": begin})
            }
            Self::LlamaCpp => json!({"content": text, "add_special": begin}),
            Self::Anthropic => return None,
        };
        Some(question("/tokenize", &body))
    }

    /// Which text these tokens are, control tokens included. [`read_text`] reads the answer. `None` where the engine does
    /// not tell.
    #[must_use]
    pub fn ask_text(self, model: &str, ids: &[u32]) -> Option<Question> {
        let body = match self {
            Self::Vllm => json!({"model": model, "tokens": ids}),
            Self::Sglang => json!({"model": model, "tokens": ids, "skip_special_tokens": false}),
            Self::LlamaCpp => json!({"tokens": ids}),
            Self::Anthropic => return None,
        };
        Some(question("/detokenize", &body))
    }

    /// Which prompt the chat of a request is, as text. [`read_text`] reads the answer. `None` where the engine does not
    /// tell, or the request is none.
    #[must_use]
    pub fn ask_rendered_text(self, request: &str) -> Option<Question> {
        match self {
            Self::LlamaCpp => Some(question("/apply-template", &rendered(request)?)),
            Self::Vllm | Self::Sglang | Self::Anthropic => None,
        }
    }

    /// The same, as tokens. [`read_tokens`] reads the answer.
    #[must_use]
    pub fn ask_rendered_tokens(self, request: &str) -> Option<Question> {
        match self {
            Self::Vllm => Some(question("/tokenize", &rendered(request)?)),
            Self::Sglang | Self::LlamaCpp | Self::Anthropic => None,
        }
    }
}

/// The model that a request names; empty where it names none.
#[must_use]
pub fn model_of(request: &str) -> String {
    text_member(request, "model").unwrap_or_default()
}

/// The prompt of a request for completions, where it is one text.
#[must_use]
pub fn prompt_of(request: &str) -> Option<String> {
    text_member(request, "prompt")
}

fn text_member(request: &str, name: &str) -> Option<String> {
    let Ok(Value::Object(mut request)) = serde_json::from_str(request) else {
        return None;
    };
    match request.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// The ids in an answer.
#[must_use]
pub fn read_tokens(body: &[u8]) -> Option<Vec<u32>> {
    let told: Tokens = serde_json::from_slice(body).ok()?;
    Some(told.tokens)
}

/// The text in an answer.
#[must_use]
pub fn read_text(body: &[u8]) -> Option<String> {
    let told: Text = serde_json::from_slice(body).ok()?;
    Some(told.prompt)
}

/// What a refusal says, in whichever shape.
#[must_use]
pub fn read_refusal(body: &[u8]) -> Option<String> {
    fault::told(std::str::from_utf8(body).ok()?).message
}

/// The members of a request that decide what its prompt is.
fn rendered(request: &str) -> Option<Value> {
    let Ok(Value::Object(mut request)) = serde_json::from_str(request) else {
        return None;
    };
    let decide = [
        "model",
        "messages",
        "add_generation_prompt",
        "continue_final_message",
    ];
    request.retain(|name, _| decide.contains(&name.as_str()));
    request
        .contains_key("messages")
        .then_some(Value::Object(request))
}

fn question(path: &'static str, body: &Value) -> Question {
    Question {
        path,
        body: body.to_string(),
    }
}

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<u32>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(alias = "content", alias = "text")]
    prompt: String,
}
