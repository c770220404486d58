//! How upstreams tell an error inside a stream, read into a [`Failure`].
//!
//! The shapes seen: an `error` object or text at the top of the data, a flat object that calls
//! itself an error, an event named `error`, a stray field line `error: {…}` without any data,
//! which clients ignore and so take a broken answer for a whole one, and JSON that stands in the
//! stream without being an event.

use serde_json::Value;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{Failure, FailureClass, probe};

/// The failure that a block tells by its fields, whatever its data is.
pub(crate) fn announced(event: &Event<'_>, data: &str) -> Option<Failure> {
    // Nearly every block is one line of data, and it takes no reading of lines to see that there
    // is no room in it for more.
    if !data.is_empty() && event.raw().len() - data.len() < SHORTEST_OTHERS {
        return None;
    }
    if let Some(error) = event.field("error").filter(|error| is_truthy(error)) {
        return Some(told(error));
    }
    (event.name() == Some("error")).then(|| told(data))
}

/// What a block that has data and tells a failure by another field holds besides the data, at least.
const SHORTEST_OTHERS: usize = "data:".len() + "\n".len() + "error:1".len();

/// The failure told by data that is known to be an error, in whichever shape.
pub(crate) fn told(data: &str) -> Failure {
    let failure = Failure::new(FailureClass::UpstreamError).frame(data);
    let Ok(value) = serde_json::from_str::<Value>(data) else {
        return if data.is_empty() {
            failure
        } else {
            failure.message(data)
        };
    };
    let error = match value.get("error") {
        Some(Value::Null) | None => &value,
        Some(error) => error,
    };
    described(failure, error)
}

/// The failure of a frame whose error object stands elsewhere in it.
pub(crate) fn told_by(data: &str, error: Option<&RawValue>) -> Failure {
    let failure = Failure::new(FailureClass::UpstreamError).frame(data);
    match error.and_then(|error| serde_json::from_str(error.get()).ok()) {
        Some(error) => described(failure, &error),
        None => failure,
    }
}

/// The failure that a block without data tells by being JSON itself: an error object, also in a list, as Gemini writes
/// it between the events or behind them, torn perhaps.
pub(crate) fn bare(block: &str) -> Option<Failure> {
    let text = block.trim_ascii();
    let text = text.strip_prefix('[').map_or(text, |list| {
        list.strip_suffix(']').unwrap_or(list).trim_ascii()
    });
    (text.starts_with('{') && probe::has_error(text.as_bytes())).then(|| told(text))
}

fn described(failure: Failure, error: &Value) -> Failure {
    let message = match error {
        Value::String(text) => Some(text.as_str()),
        _ => error.get("message").and_then(Value::as_str),
    };
    let code = match error.get("code") {
        Some(Value::String(code)) => Some(code.clone()),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => error.get("type").and_then(Value::as_str).map(str::to_owned),
    };
    let failure = match message.filter(|message| !message.is_empty()) {
        Some(message) => failure.message(message),
        None => failure,
    };
    match code {
        Some(code) => failure.code(&code),
        None => failure,
    }
}

/// Whether a member `error` with this JSON value tells an error: not if it is null, false, zero or
/// an empty string. An empty object does: that something failed is all it says.
pub(crate) fn is_truthy(value: &str) -> bool {
    !matches!(value.trim_ascii(), "" | "null" | "false" | "0" | "\"\"")
}

#[cfg(test)]
mod tests {
    use streamweld_sse::{Decoder, Limits};

    use super::*;

    #[test]
    fn the_shortest_block_that_announces_a_failure_is_seen() {
        for block in [
            "error:1\n\n",
            "error:1\ndata:x\n\n",
            "data:x\nerror:1\n\n",
            "data\nerror:1\n\n",
            "data:x\nevent:error\n\n",
            "data:{\ndata:}\nerror:1\n\n",
        ] {
            // Also as a tail, which lacks its last line end.
            for bytes in [block.as_bytes(), block.trim_end().as_bytes()] {
                let mut input = bytes;
                let mut decoder = Decoder::new(Limits::default());
                let failure = match decoder.decode(&mut input).unwrap() {
                    Some(event) => announced(&event, &event.data()),
                    None => None,
                };
                let failure = failure.or_else(|| {
                    let tail = decoder.tail_event()?;
                    announced(&tail, &tail.data())
                });
                assert!(failure.is_some(), "{block:?}");
            }
        }
    }

    #[track_caller]
    fn check(data: &str, message: Option<&str>, code: Option<&str>) {
        let failure = told(data);
        assert_eq!(failure.class, FailureClass::UpstreamError);
        assert_eq!(failure.message.as_deref(), message, "{data}");
        assert_eq!(failure.code.as_deref(), code, "{data}");
    }

    #[test]
    fn every_seen_shape_gives_up_its_message_and_code() {
        check(
            r#"{"error":{"message":"m","type":"T","param":null,"code":500}}"#,
            Some("m"),
            Some("500"),
        );
        check(
            r#"{"error":{"message":"m","type":"T","code":null}}"#,
            Some("m"),
            Some("T"),
        );
        check(
            r#"{"error":"text","error_type":"generation"}"#,
            Some("text"),
            None,
        );
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Some("Overloaded"),
            Some("overloaded_error"),
        );
        check(
            r#"{"object":"error","message":"m","code":400}"#,
            Some("m"),
            Some("400"),
        );
        check("it broke", Some("it broke"), None);
        check("", None, None);
        check("[]", None, None);
    }
}
