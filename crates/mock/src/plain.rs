//! Plain answers: the dialects' JSON, errors, models, health, echo.

use serde_json::{Value, json};

use crate::{
    Ask, Dialect, ErrorEvent, Request, Script,
    dialects::{self, anthropic_error, gemini_error, openai_error, settle},
    engine::{self, Plan},
};

/// The body of a whole, unstreamed answer.
pub(crate) fn whole(script: &Script, ask: &Ask) -> Vec<u8> {
    let (facts, text) = settle(script, ask);
    if let Some(plan) = Plan::of(script, ask) {
        let (facts, text) = engine::settle(facts, script, &plan);
        if plan.is_message {
            return dialects::anthropic_message(&facts, &text.whole()).into_bytes();
        }
        return engine::whole(&facts, &plan, &text.whole());
    }
    let text = text.whole();
    let choices = 0..facts.choices;
    let openai = |object: &str, choices: Vec<Value>| {
        json!({
            "id": facts.id, "object": object, "created": facts.created, "model": facts.model,
            "choices": choices, "usage": dialects::usage(&facts),
        })
    };
    let body = match ask.dialect {
        Dialect::OpenAiChat => openai(
            "chat.completion",
            choices
                .map(|index| {
                    json!({
                        "index": index, "message": { "role": "assistant", "content": text },
                        "logprobs": null, "finish_reason": facts.finish,
                    })
                })
                .collect(),
        ),
        Dialect::OpenAiCompletions => openai(
            "text_completion",
            choices
                .map(|index| {
                    json!({
                        "index": index, "text": text, "logprobs": null, "finish_reason": facts.finish,
                    })
                })
                .collect(),
        ),
        Dialect::OpenAiResponses => return dialects::response(&facts, &text).into_bytes(),
        Dialect::AnthropicMessages => return dialects::anthropic_message(&facts, &text).into_bytes(),
        Dialect::Gemini => return dialects::gemini_answer(&facts, &text).into_bytes(),
        Dialect::Generic => json!({ "text": text }),
    };
    body.to_string().into_bytes()
}

/// The body of an error answer.
pub(crate) fn error(dialect: Option<Dialect>, status: u16) -> Vec<u8> {
    let (kind, message) = match status {
        401 | 403 => ("authentication_error", "the mock does not know this key"),
        404 => ("not_found_error", "the mock does not serve this"),
        429 => ("rate_limit_error", "the mock is asked too often"),
        400..500 => ("invalid_request_error", "the mock refuses this request"),
        503 | 529 => ("overloaded_error", "the mock is overloaded"),
        _ => ("api_error", "the mock engine failed"),
    };
    with_message(dialect, status, kind, message)
}

/// The body of an error answer in other words.
pub(crate) fn with_message(
    dialect: Option<Dialect>,
    status: u16,
    kind: &str,
    message: &str,
) -> Vec<u8> {
    let error = ErrorEvent {
        message: message.to_owned(),
        // Gemini has names of its own, by the code.
        kind: (dialect != Some(Dialect::Gemini)).then(|| kind.to_owned()),
        code: status,
        ..ErrorEvent::default()
    };
    let body = match dialect {
        Some(Dialect::AnthropicMessages) => anthropic_error(&error),
        Some(Dialect::Gemini) => gemini_error(&error),
        _ => openai_error(&error),
    };
    body.into_bytes()
}

/// `GET /v1/models`.
pub(crate) fn models(script: &Script) -> Vec<u8> {
    let model = script.model.as_deref().unwrap_or("mock");
    let model = json!({
        "id": model, "object": "model", "created": script.created, "owned_by": "mock",
        "max_model_len": script.max_model_len,
    });
    json!({ "object": "list", "data": [model] })
        .to_string()
        .into_bytes()
}

/// What arrived, for transparency tests.
pub(crate) fn echo(request: &Request) -> Vec<u8> {
    json!({
        "method": request.method.as_str(),
        "target": request.target,
        "version": request.version,
        "headers": request.headers,
        "body_len": request.body_len,
        "body_sha256": request.body_sha256,
        "connection": request.connection,
    })
    .to_string()
    .into_bytes()
}
