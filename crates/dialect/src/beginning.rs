//! Events that begin an answer and say nothing yet.
//!
//! Some engines send one as soon as they have the request, long before the first token. Until more has come an answer can
//! be asked for anew, and has not shown how long its prompt takes.

use serde_json::Value;
use streamweld_sse::Event;

use crate::{Dialect, rejoin};

/// Whether an event names an answer, its speaker or its parts, and says nothing.
#[must_use]
pub fn is_beginning(dialect: Dialect, event: &Event<'_>) -> bool {
    let data = event.data();
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => rejoin::says_nothing(&data),
        Dialect::AnthropicMessages => {
            let Ok(frame) = serde_json::from_str::<Value>(&data) else {
                return false;
            };
            match frame["type"].as_str() {
                Some("message_start" | "ping") => true,
                // A call says which tool, and reasoning that is not shown comes as a whole.
                Some("content_block_start") => {
                    let block = &frame["content_block"];
                    let is_empty = |name: &str| block[name].as_str().is_none_or(str::is_empty);
                    matches!(block["type"].as_str(), Some("text" | "thinking"))
                        && is_empty("text")
                        && is_empty("thinking")
                }
                _ => false,
            }
        }
        Dialect::OpenAiResponses => {
            let kind = kind(&data);
            let begins = [
                "response.created",
                "response.queued",
                "response.in_progress",
                "response.output_item.added",
                "response.content_part.added",
                "keepalive",
            ];
            kind.is_some_and(|kind| begins.contains(&kind.as_str()))
        }
        Dialect::Gemini | Dialect::Mcp | Dialect::Generic => false,
    }
}

fn kind(data: &str) -> Option<String> {
    let value: Value = serde_json::from_str(data).ok()?;
    Some(value.get("type")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use streamweld_sse::{Decoder, Limits};

    use super::*;

    #[track_caller]
    fn check(dialect: Dialect, data: &str, expected: bool) {
        let block = format!("data: {data}\n\n");
        let mut decoder = Decoder::new(Limits::default());
        let event = decoder.decode(&mut block.as_bytes()).unwrap().unwrap();
        assert_eq!(is_beginning(dialect, &event), expected, "{data}");
    }

    #[test]
    fn a_chunk_of_chat_that_only_names_the_speaker_says_nothing() {
        for data in [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#,
        ] {
            check(Dialect::OpenAiChat, data, true);
        }
        for data in [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"completion_tokens":1}}"#,
            r#"{"choices":[]}"#,
            "[DONE]",
            "{}",
        ] {
            check(Dialect::OpenAiChat, data, false);
        }
    }

    #[test]
    fn the_other_dialects_name_their_beginnings() {
        let data = r#"{"type":"message_start","message":{}}"#;
        check(Dialect::AnthropicMessages, data, true);
        let begin =
            |block: &str| format!(r#"{{"type":"content_block_start","content_block":{block}}}"#);
        for block in [
            r#"{"type":"text","text":""}"#,
            r#"{"type":"thinking","thinking":"","signature":""}"#,
        ] {
            check(Dialect::AnthropicMessages, &begin(block), true);
        }
        for block in [
            r#"{"type":"text","text":"a"}"#,
            r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#,
            r#"{"type":"redacted_thinking","data":"x"}"#,
        ] {
            check(Dialect::AnthropicMessages, &begin(block), false);
        }
        let data = r#"{"type":"content_block_delta"}"#;
        check(Dialect::AnthropicMessages, data, false);
        check(
            Dialect::OpenAiResponses,
            r#"{"type":"response.created"}"#,
            true,
        );
        let data = r#"{"type":"response.output_text.delta"}"#;
        check(Dialect::OpenAiResponses, data, false);
        check(Dialect::Gemini, r#"{"candidates":[]}"#, false);
        check(
            Dialect::OpenAiCompletions,
            r#"{"choices":[{"text":"a"}]}"#,
            false,
        );
        check(
            Dialect::OpenAiCompletions,
            r#"{"choices":[{"text":""}]}"#,
            true,
        );
    }
}
