//! The members of requests for Anthropic's messages.
//!
//! The API has few and refuses all others, so this is a table of its own. Members that came with a beta are here too,
//! where they steer what an answer is: a service takes them with the header that names the beta.

use serde_json::Value;

use super::Member::{MaxTokens, Plain, Unless};
use super::members::{is_empty, is_text_only, never};
use super::{Hazard, Table};

pub(super) const MESSAGES: Table = &[
    ("anthropic_version", Plain),
    ("betas", Unless(Hazard::EngineState, is_empty)),
    ("cache_control", Plain),
    // The server runs code in it.
    ("container", Unless(Hazard::ServerTools, never)),
    ("context_management", Unless(Hazard::Truncation, is_empty)),
    ("inference_geo", Plain),
    ("max_tokens", MaxTokens),
    ("mcp_servers", Unless(Hazard::ServerTools, is_empty)),
    ("messages", Unless(Hazard::Media, is_text_only)),
    ("metadata", Plain),
    ("model", Plain),
    (
        "output_config",
        Unless(Hazard::StructuredOutput, is_effort_alone),
    ),
    ("output_format", Unless(Hazard::StructuredOutput, never)),
    ("service_tier", Plain),
    ("stop_sequences", Unless(Hazard::StopSequence, is_empty)),
    ("stream", Plain),
    ("system", Unless(Hazard::Media, is_text_or_parts)),
    ("temperature", Plain),
    ("thinking", Unless(Hazard::Reasoning, is_disabled)),
    // With `none` the model is told of no tool that it may call.
    ("tool_choice", Plain),
    ("tools", Unless(Hazard::Tools, is_empty)),
    ("top_k", Plain),
    ("top_p", Plain),
    ("user_profile_id", Plain),
];

fn is_disabled(thinking: &Value) -> bool {
    thinking.get("type").is_some_and(|kind| kind == "disabled")
}

/// How much is said holds for the rest as it does for the beginning; a format, or a budget that the model is told of,
/// begins anew.
fn is_effort_alone(config: &Value) -> bool {
    let is_harmless = |(name, value): (&String, &Value)| name == "effort" || value.is_null();
    config
        .as_object()
        .is_some_and(|members| members.iter().all(is_harmless))
}

/// A text, or parts that are.
fn is_text_or_parts(system: &Value) -> bool {
    let is_text = |part: &Value| part.get("type").is_some_and(|kind| kind == "text");
    match system {
        Value::String(_) => true,
        Value::Array(parts) => parts.iter().all(is_text),
        _ => false,
    }
}
