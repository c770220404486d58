//! The members of requests for chat and completions: OpenAI's own, and what engines add to them.
//!
//! An empty schema or grammar is one: engines take `{}` for any JSON at all.

use serde_json::Value;

use super::Member::{MaxTokens, MinTokens, Plain, Unless};
use super::{Hazard, Table};

/// What both have.
pub(super) const COMMON: Table = &[
    ("allowed_token_ids", Plain),
    ("bad_words", Unless(Hazard::StopSequence, is_empty)),
    ("cache_prompt", Plain),
    ("cache_salt", Plain),
    ("dry_multiplier", Unless(Hazard::Penalties, is_zero)),
    ("ebnf", Unless(Hazard::StructuredOutput, never)),
    ("echo", Unless(Hazard::Echo, is_false)),
    ("frequency_penalty", Unless(Hazard::Penalties, is_zero)),
    ("grammar", Unless(Hazard::StructuredOutput, never)),
    ("guided_choice", Unless(Hazard::StructuredOutput, never)),
    ("guided_grammar", Unless(Hazard::StructuredOutput, never)),
    ("guided_json", Unless(Hazard::StructuredOutput, never)),
    ("guided_regex", Unless(Hazard::StructuredOutput, never)),
    ("ignore_eos", Plain),
    ("include_stop_str_in_output", Plain),
    ("json_schema", Unless(Hazard::StructuredOutput, never)),
    ("kv_transfer_params", Unless(Hazard::EngineState, is_empty)),
    ("length_penalty", Unless(Hazard::Choices, is_one)),
    ("logit_bias", Plain),
    ("lora_path", Unless(Hazard::EngineState, is_empty)),
    ("max_tokens", MaxTokens),
    ("metadata", Plain),
    ("min_keep", Plain),
    ("min_p", Plain),
    ("min_tokens", MinTokens),
    ("model", Plain),
    ("n", Unless(Hazard::Choices, is_one)),
    ("no_repeat_ngram_size", Unless(Hazard::Penalties, is_zero)),
    ("presence_penalty", Unless(Hazard::Penalties, is_zero)),
    ("priority", Plain),
    ("prompt_logprobs", Unless(Hazard::Logprobs, is_false)),
    ("regex", Unless(Hazard::StructuredOutput, never)),
    ("repeat_last_n", Plain),
    ("repeat_penalty", Unless(Hazard::Penalties, is_one)),
    ("repetition_penalty", Unless(Hazard::Penalties, is_one)),
    (
        "response_format",
        Unless(Hazard::StructuredOutput, is_text_format),
    ),
    ("return_progress", Plain),
    ("return_token_ids", Plain),
    ("safety_identifier", Plain),
    ("samplers", Plain),
    ("seed", Unless(Hazard::Seed, never)),
    ("service_tier", Plain),
    ("skip_special_tokens", Plain),
    ("spaces_between_special_tokens", Plain),
    ("sse_ping_interval", Plain),
    ("stop", Unless(Hazard::StopSequence, is_empty)),
    ("stop_token_ids", Plain),
    ("stream", Plain),
    ("stream_options", Plain),
    (
        "structured_outputs",
        Unless(Hazard::StructuredOutput, never),
    ),
    ("temperature", Plain),
    ("timings_per_token", Plain),
    ("top_k", Plain),
    ("top_n_sigma", Plain),
    ("top_p", Plain),
    ("truncate_prompt_tokens", Unless(Hazard::Truncation, never)),
    ("typical_p", Plain),
    ("use_beam_search", Unless(Hazard::Choices, is_false)),
    ("user", Plain),
    ("xtc_probability", Plain),
    ("xtc_threshold", Plain),
];

pub(super) const CHAT: Table = &[
    (
        "add_generation_prompt",
        Unless(Hazard::EngineState, is_true),
    ),
    ("audio", Unless(Hazard::Media, never)),
    // The one that was examined is another.
    ("chat_template", Unless(Hazard::EngineState, never)),
    ("chat_template_kwargs", Unless(Hazard::Reasoning, is_empty)),
    (
        "continue_final_message",
        Unless(Hazard::EngineState, is_false),
    ),
    ("documents", Unless(Hazard::EngineState, is_empty)),
    ("function_call", Unless(Hazard::Tools, is_none)),
    ("functions", Unless(Hazard::Tools, is_empty)),
    ("include_reasoning", Unless(Hazard::Reasoning, is_true)),
    ("logprobs", Unless(Hazard::Logprobs, is_false)),
    ("max_completion_tokens", MaxTokens),
    ("messages", Unless(Hazard::Media, is_text_only)),
    ("modalities", Unless(Hazard::Media, is_text_alone)),
    ("parallel_tool_calls", Plain),
    ("prediction", Unless(Hazard::EngineState, never)),
    ("prompt_cache_key", Plain),
    ("reasoning_effort", Unless(Hazard::Reasoning, is_none)),
    ("store", Unless(Hazard::EngineState, is_false)),
    ("thinking_token_budget", Unless(Hazard::Reasoning, never)),
    // With `none` the model is told of no tool that it may call.
    ("tool_choice", Plain),
    ("tools", Unless(Hazard::Tools, is_empty)),
    ("top_logprobs", Unless(Hazard::Logprobs, is_zero)),
    ("verbosity", Plain),
    ("web_search_options", Unless(Hazard::ServerTools, never)),
];

pub(super) const COMPLETIONS: Table = &[
    ("add_special_tokens", Plain),
    ("best_of", Unless(Hazard::Choices, is_one)),
    ("logprobs", Unless(Hazard::Logprobs, never)),
    ("prompt", Unless(Hazard::Choices, is_one_prompt)),
    ("prompt_embeds", Unless(Hazard::EngineState, never)),
    ("suffix", Unless(Hazard::EngineState, is_empty)),
];

pub(super) fn never(_: &Value) -> bool {
    false
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

pub(super) fn is_false(value: &Value) -> bool {
    value == &Value::Bool(false)
}

fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

fn is_none(value: &Value) -> bool {
    value == "none"
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn is_text_format(value: &Value) -> bool {
    value.get("type").is_some_and(|kind| kind == "text")
}

fn is_text_alone(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|all| all.iter().all(|one| one == "text"))
}

/// Every message is text, or parts that are.
pub(super) fn is_text_only(messages: &Value) -> bool {
    let is_text = |part: &Value| part.get("type").is_some_and(|kind| kind == "text");
    let is_plain = |message: &Value| match message.get("content") {
        None | Some(Value::Null | Value::String(_)) => true,
        Some(Value::Array(parts)) => parts.iter().all(is_text),
        Some(_) => false,
    };
    messages
        .as_array()
        .is_some_and(|all| all.iter().all(is_plain))
}

/// One text, or the tokens of one.
fn is_one_prompt(prompt: &Value) -> bool {
    match prompt {
        Value::String(_) => true,
        Value::Array(items) => match items.as_slice() {
            [Value::String(_)] => true,
            [Value::Array(tokens)] => tokens.iter().all(Value::is_number),
            items => !items.is_empty() && items.iter().all(Value::is_number),
        },
        _ => false,
    }
}
