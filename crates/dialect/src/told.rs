//! What an engine tells of itself when it is asked: which one it is, what it serves, how it writes a prompt.
//!
//! An engine is known by two words of its own that agree: who it says owns a model, and the page on which it describes
//! itself. One of them alone may be a gateway's, which shows the models of others and behaves as none of them.

mod count;
mod question;
mod reply;
mod request;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub use count::{COUNT, ask_count, read_count};
pub use question::{Question, model_of, prompt_of, read_refusal, read_text, read_tokens};
pub use reply::{BadReply, Reply};
pub use request::{ask_chat, ask_completion, ask_message};

use crate::Engine;

/// A model that a backend lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// What requests call it.
    pub name: String,
    /// Who says to own it: engines write their own name.
    pub owner: Option<String>,
    /// Where it was loaded from: the path or the public name of its weights.
    pub root: Option<String>,
    /// The most tokens of a prompt with its answer.
    pub context: Option<u64>,
    /// What is told of its weights, by name. Two that are the same model agree in each that both tell.
    pub weights: BTreeMap<&'static str, String>,
}

/// What an engine says of itself on a page of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Its version, as it writes it.
    pub version: Option<String>,
    /// As [`Served::context`].
    pub context: Option<u64>,
    /// As [`Served::weights`].
    pub weights: BTreeMap<&'static str, String>,
    /// What else decides how it writes and reads prompts.
    pub settings: BTreeMap<&'static str, String>,
}

/// Where the models of a backend are listed.
pub const MODELS: &str = "/v1/models";

impl Served {
    /// The models in the answer to [`MODELS`]. `None` for what is no such list.
    #[must_use]
    pub fn list(body: &[u8]) -> Option<Vec<Self>> {
        let list: List = serde_json::from_slice(body).ok()?;
        Some(list.data.into_iter().map(Card::into_served).collect())
    }
}

impl Engine {
    /// The engine that a model is said to be owned by.
    #[must_use]
    pub fn by_owner(owner: &str) -> Option<Self> {
        match owner {
            "vllm" => Some(Self::Vllm),
            "sglang" => Some(Self::Sglang),
            "llamacpp" => Some(Self::LlamaCpp),
            _ => None,
        }
    }

    /// Where it describes itself, its present path first.
    #[must_use]
    pub fn description_paths(self) -> &'static [&'static str] {
        match self {
            Self::Vllm => &["/version"],
            Self::Sglang => &["/server_info", "/get_server_info"],
            Self::LlamaCpp => &["/props"],
            Self::Anthropic => &[],
        }
    }

    /// What is on that page. `None` if it is no page of this engine's. Only what is named here is taken: some of them also
    /// show keys.
    #[must_use]
    pub fn describe(self, body: &[u8]) -> Option<Description> {
        let Ok(Value::Object(page)) = serde_json::from_slice(body) else {
            return None;
        };
        let text = |name: &str| page.get(name).and_then(as_text);
        let take = |names: &[&'static str]| -> BTreeMap<_, _> {
            let told = names.iter();
            told.filter_map(|&name| Some((name, text(name)?))).collect()
        };
        let description = match self {
            Self::Vllm => Description {
                version: text("version"),
                ..Description::default()
            },
            Self::Sglang => Description {
                version: text("version"),
                context: page.get("context_length").and_then(Value::as_u64),
                weights: take(&["revision", "quantization", "weight_version"]),
                settings: take(&["model_path", "tokenizer_path", "dtype", "chat_template"]),
            },
            Self::LlamaCpp => Description {
                version: text("build_info"),
                context: page
                    .get("default_generation_settings")
                    .and_then(|settings| settings.get("n_ctx"))
                    .and_then(Value::as_u64),
                weights: BTreeMap::new(),
                settings: take(&["model_path", "chat_template", "bos_token", "eos_token"]),
            },
            Self::Anthropic => return None,
        };
        // A page without this is somebody else's.
        description.version.is_some().then_some(description)
    }
}

#[derive(Deserialize)]
struct List {
    data: Vec<Card>,
}

#[derive(Deserialize)]
struct Card {
    id: String,
    owned_by: Option<String>,
    root: Option<String>,
    parent: Option<String>,
    max_model_len: Option<u64>,
    #[serde(default)]
    meta: Option<Value>,
}

impl Card {
    fn into_served(self) -> Served {
        let meta = |name: &str| self.meta.as_ref().and_then(|meta| meta.get(name));
        // Of a file of llama.cpp; an adapter of the others names what it sits on.
        let of_file = [
            "vocab_type",
            "n_vocab",
            "n_ctx_train",
            "n_embd",
            "n_params",
            "size",
            "ftype",
        ];
        let mut weights: BTreeMap<_, _> = of_file
            .into_iter()
            .filter_map(|name| Some((name, meta(name).and_then(as_text)?)))
            .collect();
        let context = self
            .max_model_len
            .or_else(|| meta("n_ctx").and_then(Value::as_u64));
        if let Some(parent) = self.parent {
            weights.insert("parent", parent);
        }
        Served {
            name: self.id,
            owner: self.owned_by,
            root: self.root,
            context,
            weights,
        }
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;
