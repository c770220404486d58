//! What an engine says of itself, and what it does besides generating: the paths that probes ask.

use http::Method;
use serde_json::{Value, json};

use super::{
    Engine, Order, Refused,
    chat::Chat,
    order::ids,
    plan::tokens,
    template::{Tail, render},
    tokens::Special,
};
use crate::{Request, Script};

/// A status and a body, empty or JSON.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    fn json(value: &Value) -> Self {
        Self {
            status: 200,
            body: value.to_string().into_bytes(),
        }
    }

    /// An error in the words of the engine.
    pub(crate) fn refused(refused: &Refused) -> Self {
        let Refused {
            engine,
            status,
            message,
        } = refused;
        let body = match engine {
            Engine::Vllm => json!({ "error": {
                "message": message, "type": kind(*status), "param": null, "code": status,
            }}),
            Engine::Sglang => json!({
                "object": "error", "message": message, "type": kind(*status), "param": null,
                "code": status,
            }),
            Engine::LlamaCpp => json!({ "error": {
                "code": status, "message": message, "type": match status {
                    400 => "invalid_request_error",
                    404 => "not_found_error",
                    503 => "unavailable_error",
                    _ => "server_error",
                },
            }}),
            Engine::Anthropic => json!({
                "type": "error", "request_id": "req_mock",
                "error": { "message": message, "type": match status {
                    400 => "invalid_request_error",
                    404 => "not_found_error",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                } },
            }),
        };
        Self {
            status: *status,
            ..Self::json(&body)
        }
    }
}

fn kind(status: u16) -> &'static str {
    match status {
        400 => "BadRequestError",
        404 => "NotFoundError",
        503 => "ServiceUnavailableError",
        _ => "InternalServerError",
    }
}

/// The answer to a request on a path of the engine's own; `None` where it has none there.
pub(crate) fn probe(script: &Script, health: u16, request: &Request) -> Option<Reply> {
    let engine = script.engine?;
    let probed = Probed { engine, script };
    let path = request.path();
    if request.method == Method::POST {
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let done = probed.post(path, &body)?;
        return Some(match done {
            Ok(value) => Reply::json(&value),
            Err(refused) => Reply::refused(&refused),
        });
    }
    if request.method != Method::GET && request.method != Method::HEAD {
        return None;
    }
    let is_health = match engine {
        Engine::Vllm => matches!(path, "/health" | "/ping"),
        Engine::Sglang => matches!(path, "/health" | "/health_generate" | "/ready"),
        Engine::LlamaCpp => matches!(path, "/health" | "/v1/health"),
        Engine::Anthropic => false,
    };
    if is_health {
        return Some(probed.health(health));
    }
    Some(Reply::json(&probed.get(path)?))
}

/// An engine that is asked.
struct Probed<'a> {
    engine: Engine,
    script: &'a Script,
}

type Done = Result<Value, Refused>;

impl Probed<'_> {
    fn health(&self, status: u16) -> Reply {
        match self.engine {
            Engine::LlamaCpp if status == 200 => Reply::json(&json!({ "status": "ok" })),
            Engine::LlamaCpp => Reply::refused(&Refused {
                engine: self.engine,
                status,
                message: "Loading model".to_owned(),
            }),
            Engine::Vllm | Engine::Sglang | Engine::Anthropic => Reply {
                status,
                body: Vec::new(),
            },
        }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let script = self.script;
        let value = match (self.engine, path) {
            (Engine::Anthropic, "/v1/models") => json!({
                "data": [{
                    "type": "model", "id": self.model(), "display_name": self.model(),
                    "created_at": "2025-10-01T00:00:00Z",
                }],
                "has_more": false, "first_id": self.model(), "last_id": self.model(),
            }),
            (_, "/v1/models") => self.models(),
            (Engine::Vllm, "/version") => json!({ "version": "0.32.0" }),
            (Engine::Sglang, "/get_model_info" | "/model_info") => json!({
                "model_path": self.root(), "tokenizer_path": self.root(), "is_generation": true,
                "preferred_sampling_params": null, "weight_version": "default",
            }),
            (Engine::Sglang, "/get_server_info" | "/server_info") => json!({
                "model_path": self.root(), "served_model_name": self.model(),
                "context_length": script.max_model_len, "version": "0.5.23",
            }),
            (Engine::LlamaCpp, "/props") => json!({
                "default_generation_settings": { "n_ctx": script.max_model_len },
                "total_slots": 1,
                "model_path": self.root(),
                "chat_template": self.template(),
                "eos_token": "<|im_end|>", "bos_token": "<|im_start|>",
                "build_info": "b0-mock",
            }),
            _ => return None,
        };
        Some(value)
    }

    fn post(&self, path: &str, body: &Value) -> Option<Done> {
        let done = match (self.engine, path) {
            (Engine::LlamaCpp | Engine::Anthropic, path)
                if path.ends_with("/messages/count_tokens") =>
            {
                self.count(body)
            }
            (Engine::Anthropic, _) => return None,
            (Engine::Vllm | Engine::Sglang, "/tokenize") => self.tokenize(body),
            (Engine::LlamaCpp, "/tokenize") => Ok(self.pieces(body)),
            (_, "/detokenize") => self.detokenize(body),
            (Engine::LlamaCpp, "/apply-template") => self.apply_template(body),
            _ => return None,
        };
        Some(done)
    }

    fn models(&self) -> Value {
        let model = self.model();
        let mut about = json!({
            "id": model, "object": "model", "created": self.script.created,
            "owned_by": self.engine.owner(),
        });
        match self.engine {
            Engine::Vllm | Engine::Sglang => {
                about["root"] = json!(self.root());
                about["parent"] = Value::Null;
                about["max_model_len"] = json!(self.script.max_model_len);
            }
            Engine::LlamaCpp | Engine::Anthropic => {
                about["meta"] = json!({ "n_ctx_train": self.script.max_model_len });
            }
        }
        json!({ "object": "list", "data": [about] })
    }

    fn model(&self) -> &str {
        self.script.model.as_deref().unwrap_or("mock")
    }

    fn root(&self) -> String {
        let root = self.script.root.clone();
        root.unwrap_or_else(|| format!("/models/{}", self.model()))
    }

    /// No real template, but another one for each template.
    fn template(&self) -> String {
        let message = super::Message::new("role", "content");
        render(&[message], Tail::NewTurn, &self.script.faults)
    }

    fn tokenize(&self, body: &Value) -> Done {
        let (script, order) = (self.script, Order::read(body));
        let ids = match &order.prompt {
            Some(prompt) => tokens(script).ids(prompt),
            None if self.engine == Engine::Vllm && body["messages"].is_array() => {
                let chat = Chat::read(self.engine, &order, &script.faults)?;
                chat.ids(tokens(script), &script.faults)
            }
            None => return Err(self.missing("prompt")),
        };
        Ok(json!({
            "count": ids.len(), "max_model_len": script.max_model_len, "tokens": ids, "token_strs": null,
        }))
    }

    fn apply_template(&self, body: &Value) -> Done {
        let (order, faults) = (Order::read(body), &self.script.faults);
        let chat = Chat::read(self.engine, &order, faults)?;
        Ok(json!({ "prompt": chat.text(faults) }))
    }

    /// How many tokens the prompt of a message has.
    fn count(&self, body: &Value) -> Done {
        let (order, faults) = (Order::read(body), &self.script.faults);
        let chat = Chat::read(self.engine, &order, faults)?;
        let ids = chat.ids(tokens(self.script), faults);
        Ok(json!({ "input_tokens": ids.len() }))
    }

    /// As llama.cpp does it.
    fn pieces(&self, body: &Value) -> Value {
        let tokens = tokens(self.script);
        let ids = tokens.ids(body["content"].as_str().unwrap_or_default());
        if body["with_pieces"].as_bool() != Some(true) {
            return json!({ "tokens": ids });
        }
        let pieces = ids.iter().map(|&id| {
            let bytes = tokens.bytes(&[id], Special::Keep);
            // A piece that is no text is told as its bytes.
            let piece = match String::from_utf8(bytes) {
                Ok(text) => json!(text),
                Err(error) => json!(error.into_bytes()),
            };
            json!({ "id": id, "piece": piece })
        });
        json!({ "tokens": pieces.collect::<Vec<_>>() })
    }

    fn detokenize(&self, body: &Value) -> Done {
        let empty = body["tokens"].as_array().is_some_and(Vec::is_empty);
        let ids = match ids(&body["tokens"]) {
            Some(ids) => ids,
            None if empty => Vec::new(),
            None => return Err(self.missing("tokens")),
        };
        let skips = body["skip_special_tokens"].as_bool();
        // Of the three it is SGLang that leaves them out unless told otherwise.
        let special = match skips.unwrap_or(self.engine == Engine::Sglang) {
            true => Special::Skip,
            false => Special::Keep,
        };
        let name = match self.engine {
            Engine::Vllm => "prompt",
            Engine::Sglang => "text",
            Engine::LlamaCpp | Engine::Anthropic => "content",
        };
        Ok(json!({ name: tokens(self.script).text(&ids, special) }))
    }

    fn missing(&self, name: &str) -> Refused {
        Refused::new(self.engine, format!("`{name}` is missing."))
    }
}
