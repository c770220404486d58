//! From the first event of a stream of which nothing else is known to the dialect that it is written in.
//!
//! Only for what is shown of such a stream: its text and counts, and how an ending of ours looks in it. How it *ends* is
//! judged as of any generic stream, because a guess must neither make a failure of a success nor the other way round. So
//! it may be wrong, and is strict all the same: members that no other API has together.

use serde_json::Value;
use streamweld_sse::Event;

use crate::Dialect;

/// The dialect that this event, the first with data, is unmistakably written in. Never Gemini, whose readers have to be
/// known before an event is there.
pub fn recognise(event: &Event<'_>) -> Option<Dialect> {
    let data = event.data();
    if !data.trim_ascii_start().starts_with('{') {
        return None;
    }
    let data: Value = serde_json::from_str(&data).ok()?;
    let is = |value: &Value, text: &str| value.as_str() == Some(text);
    let kind = &data["type"];
    let named = event.name().is_none_or(|name| is(kind, name));
    if data["choices"].is_array() && is(&data["object"], "chat.completion.chunk") {
        Some(Dialect::OpenAiChat)
    } else if data["choices"].is_array() && is(&data["object"], "text_completion") {
        Some(Dialect::OpenAiCompletions)
    } else if is(kind, "response.created") && named && is(&data["response"]["object"], "response") {
        Some(Dialect::OpenAiResponses)
    } else if is(kind, "message_start") && named && is(&data["message"]["type"], "message") {
        Some(Dialect::AnthropicMessages)
    } else if is(&data["jsonrpc"], "2.0") {
        Some(Dialect::Mcp)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use streamweld_sse::{Decoder, Limits};

    use super::*;

    #[track_caller]
    fn check(block: &str, expected: Option<Dialect>) {
        let block = format!("{block}\n\n");
        let mut decoder = Decoder::new(Limits::default());
        let event = decoder.decode(&mut block.as_bytes()).unwrap().unwrap();
        assert_eq!(recognise(&event), expected, "{block}");
    }

    #[test]
    fn what_is_unmistakable_is_recognised() {
        check(
            r#"data: {"object":"chat.completion.chunk","choices":[]}"#,
            Some(Dialect::OpenAiChat),
        );
        check(
            r#"data: {"object":"text_completion","choices":[{"index":0,"text":"a"}]}"#,
            Some(Dialect::OpenAiCompletions),
        );
        check(
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"object\":\"response\"}}",
            Some(Dialect::OpenAiResponses),
        );
        check(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\"}}",
            Some(Dialect::AnthropicMessages),
        );
        check(
            r#"data: {"jsonrpc":"2.0","id":1,"result":{}}"#,
            Some(Dialect::Mcp),
        );
    }

    #[test]
    fn what_only_looks_alike_is_not() {
        for block in [
            "data: [DONE]",
            "data",
            "data: {\"choices\":[]}",
            "data: {\"object\":\"chat.completion.chunk\"}",
            "data: {\"type\":\"message_start\"}",
            "event: other\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\"}}",
            "data: {\"type\":\"response.created\"}",
            "data: {\"jsonrpc\":\"1.0\"}",
            "data: [{\"jsonrpc\":\"2.0\"}]",
            "data: {\"jsonrpc\":\"2.0\"",
            "data: {\"candidates\":[{\"content\":{}}]}",
        ] {
            check(block, None);
        }
    }
}
