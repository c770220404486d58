//! What is said of spans, by the names of the GenAI semantic conventions (`open-telemetry/semantic-conventions-genai`, v0.1.0,
//! all of them still in development) and of the HTTP ones (1.42); under `streamweld.` what no convention has.

use streamweld_dialect::Dialect;

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const STATUS_CODE: &str = "http.response.status_code";
pub(super) const SERVER_ADDRESS: &str = "server.address";
pub(super) const SERVER_PORT: &str = "server.port";

pub(super) const STREAM_ID: &str = "streamweld.stream_id";
pub(super) const REQUEST_ID: &str = "streamweld.request_id";
pub(super) const DIALECT: &str = "streamweld.dialect";
pub(super) const DURABILITY: &str = "streamweld.durability";
pub(super) const EPOCH: &str = "streamweld.epoch";
pub(super) const INHERITED: &str = "streamweld.taken_over";
pub(super) const OUTCOME: &str = "streamweld.outcome";
pub(super) const ATTEMPTS: &str = "streamweld.attempts";
pub(super) const MIGRATIONS: &str = "streamweld.migrations";
pub(super) const ENTRIES: &str = "streamweld.entries";
pub(super) const BACKEND: &str = "streamweld.backend";
pub(super) const ATTEMPT: &str = "streamweld.attempt";
pub(super) const CURSOR: &str = "streamweld.cursor";

pub(super) const FIRST_EVENT: &str = "streamweld.first_event";
pub(super) const MIGRATED: &str = "streamweld.migrated";
pub(super) const GATE: &str = "streamweld.gate_refused";
pub(super) const DEGRADED: &str = "streamweld.degraded";
pub(super) const HEALED: &str = "streamweld.healed";

/// What is done, as the conventions have it. `None`: it need not be a model that answers.
pub(super) fn operation(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::AnthropicMessages => Some("chat"),
        Dialect::OpenAiCompletions => Some("text_completion"),
        Dialect::Gemini => Some("generate_content"),
        Dialect::Mcp | Dialect::Generic => None,
    }
}

/// Whose API it is, as the conventions have it.
pub(super) fn provider(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::OpenAiCompletions => {
            Some("openai")
        }
        Dialect::AnthropicMessages => Some("anthropic"),
        Dialect::Gemini => Some("gcp.gemini"),
        Dialect::Mcp | Dialect::Generic => None,
    }
}

/// What a generation's span is called.
pub(super) fn span(dialect: Dialect, model: Option<&str>) -> String {
    match (operation(dialect), model) {
        (Some(operation), Some(model)) => format!("{operation} {model}"),
        (Some(operation), None) => operation.to_owned(),
        (None, _) => format!("stream {dialect}"),
    }
}
