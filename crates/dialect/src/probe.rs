//! Byte tests on an event's data: above all, those that tell an ordinary event of a dialect from one that
//! must be parsed.
//!
//! Exact in one direction only: what is called ordinary needs no parsing; the reverse merely costs
//! a parse. They work on raw JSON text because a quote inside a string is always escaped, so
//! `"error"` with both its quotes is a whole member name or a whole string, never part of a text.

use std::sync::LazyLock;

use memchr::{memchr, memmem::Finder};

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
static RESULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"result\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\""));
static INDEX: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"index\""));
static RESPONSE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"response."));
static FINISH_REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finishReason\""));
static BLOCK_REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"blockReason\""));

/// How an ordinary event of a dialect is told from one that must be parsed.
pub(crate) struct Probe {
    /// The names and strings that are looked for. The test looks at nothing but these, each within quotes, and at the
    /// few bytes that follow the colon behind them: [`Recurring`](crate::recurring::Recurring) rests on that.
    pub(crate) names: &'static [&'static [u8]],
    /// Whether the data of an event is ordinary.
    pub(crate) is_ordinary: fn(&[u8]) -> bool,
}

/// Of chat and completions: no error, no finish and nothing of a choice other than choice 0.
pub(crate) static OPENAI: Probe = Probe {
    names: &[b"error", b"finish_reason", b"index"],
    is_ordinary: is_ordinary_chunk,
};

/// Of Responses: no error and no terminal.
pub(crate) static RESPONSES: Probe = Probe {
    names: &[
        b"error",
        b"response.completed",
        b"response.incomplete",
        b"response.failed",
        b"response.cancelled",
    ],
    is_ordinary: is_ordinary_response,
};

/// Of Gemini: no error, no finish, no block, and nothing of a candidate other than the first.
pub(crate) static GEMINI: Probe = Probe {
    names: &[b"error", b"finishReason", b"blockReason", b"index"],
    is_ordinary: is_ordinary_content,
};

/// Whether this is the type of an event that ends a response.
pub(crate) fn ends_response(kind: &str) -> bool {
    let end = kind.strip_prefix("response.");
    end.is_some_and(|end| matches!(end, "completed" | "incomplete" | "failed" | "cancelled"))
}

/// Whether there is no data: no field of it, or only empty ones, which are joined by line ends.
pub(crate) fn is_blank(data: &str) -> bool {
    data.bytes().all(|byte| byte == b'\n')
}

fn is_ordinary_chunk(data: &[u8]) -> bool {
    has_no_error(data) && all(&FINISH, data, is_no_reason) && all(&INDEX, data, is_first)
}

fn is_ordinary_response(data: &[u8]) -> bool {
    has_no_error(data) && !mentions_end(data)
}

fn is_ordinary_content(data: &[u8]) -> bool {
    has_no_error(data)
        && all(&FINISH_REASON, data, is_no_reason)
        && all(&BLOCK_REASON, data, is_no_reason)
        && all(&INDEX, data, is_first)
}

/// Whether a string of the data is the type of an event that ends a response.
fn mentions_end(data: &[u8]) -> bool {
    let mut rest = data;
    while let Some(at) = RESPONSE.find(rest) {
        rest = &rest[at + b"\"".len()..];
        let kind = memchr(b'"', rest).and_then(|end| std::str::from_utf8(&rest[..end]).ok());
        if kind.is_some_and(ends_response) {
            return true;
        }
    }
    false
}

/// A string "error" counts too: `"object":"error"` marks an error without an `error` member.
fn has_no_error(data: &[u8]) -> bool {
    all(&ERROR, data, |value| value.is_some_and(is_null))
}

/// Whether some member `error` holds more than null. For text that does not parse.
pub(crate) fn has_error(data: &[u8]) -> bool {
    !all(&ERROR, data, |value| value.is_none_or(is_null))
}

/// Whether the string "error" occurs at all, as a name or as a value.
pub(crate) fn mentions_error(data: &[u8]) -> bool {
    ERROR.find(data).is_some()
}

/// Whether data could be the answer to a call of JSON-RPC.
pub(crate) fn may_answer(data: &[u8]) -> bool {
    mentions_error(data) || RESULT.find(data).is_some()
}

/// Whether `test` holds wherever the quoted name stands. It is given the text from the member's
/// value on, or `None` where the string is no member name.
fn all(name: &Finder<'_>, data: &[u8], test: impl Fn(Option<&[u8]>) -> bool) -> bool {
    let mut rest = data;
    // A plain loop: the finder's own iterator costs a third more on data of this size.
    while let Some(at) = name.find(rest) {
        rest = &rest[at + name.needle().len()..];
        let value = rest.trim_ascii_start().strip_prefix(b":");
        if !test(value.map(<[u8]>::trim_ascii_start)) {
            return false;
        }
    }
    true
}

fn is_no_reason(value: Option<&[u8]>) -> bool {
    value.is_none_or(|value| is_null(value) || value.starts_with(b"\"\""))
}

fn is_first(value: Option<&[u8]>) -> bool {
    value.is_none_or(is_zero)
}

fn is_null(value: &[u8]) -> bool {
    value.starts_with(b"null")
}

fn is_zero(value: &[u8]) -> bool {
    matches!(value, [b'0', b',' | b'}' | b' ' | b'\n', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data: &str, ordinary: bool) {
        check_of(&OPENAI, data, ordinary);
    }

    #[track_caller]
    fn check_of(probe: &Probe, data: &str, ordinary: bool) {
        assert_eq!((probe.is_ordinary)(data.as_bytes()), ordinary, "{data}");
    }

    #[test]
    fn nulls_empty_strings_and_index_zero_are_ordinary() {
        check(r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#, true);
        check(r#"{"choices":[{"finish_reason":null,"index":0}]}"#, true);
        check(
            r#"{"choices": [{"finish_reason": null, "index": 0}]}"#,
            true,
        );
        check(r#"{"choices":[{"finish_reason":"","index":0}]}"#, true);
        check(r#"{"error":null,"choices":[{"index":0}]}"#, true);
    }

    #[test]
    fn what_may_matter_is_not_ordinary() {
        check(r#"{"choices":[{"index":0,"finish_reason":"stop"}]}"#, false);
        check(r#"{"choices":[{"index":0,"finish_reason" : "x"}]}"#, false);
        check(r#"{"choices":[{"index":1}]}"#, false);
        check(r#"{"choices":[{"index":0},{"index":01}]}"#, false);
        check(r#"{"choices":[{"index":0.5}]}"#, false);
        check(r#"{"error":{"message":"m"}}"#, false);
        check(r#"{"error":null,"x":{"error":"m"}}"#, false);
        check(r#"{"object":"error","message":"m"}"#, false);
        check(r#"{"choices":[{"index":0}],"error":"#, false);
    }

    #[test]
    fn text_that_quotes_the_names_is_ordinary() {
        check(
            r#"{"choices":[{"index":0,"delta":{"content":"{\"error\":1,\"finish_reason\":\"stop\",\"index\":3}"}}]}"#,
            true,
        );
    }

    #[test]
    fn of_a_response_all_but_errors_and_ends_is_ordinary() {
        let check = |data, ordinary| check_of(&RESPONSES, data, ordinary);
        check(
            r#"{"type":"response.output_text.delta","delta":"response.completed"}"#,
            false,
        );
        check(
            r#"{"type":"response.output_text.delta","delta":" \"response.failed\""}"#,
            true,
        );
        check(
            r#"{"type":"response.created","response":{"error":null}}"#,
            true,
        );
        check(r#"{"type":"response.mcp_call.failed"}"#, true);
        check(r#"{"type":"keepalive","sequence_number":3}"#, true);
        check(r#"{"type" : "response.incomplete"}"#, false);
        check(r#"{"type":"response.failed"#, true);
        check(r#"{"type":"error","message":"m"}"#, false);
        check(
            r#"{"type":"response.created","response":{"error":{}}}"#,
            false,
        );
    }

    #[test]
    fn of_gemini_what_goes_on_is_ordinary() {
        let check = |data, ordinary| check_of(&GEMINI, data, ordinary);
        check(
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}]}"#,
            true,
        );
        check(r#"{"candidates":[{"finishReason":null}]}"#, true);
        check(r#"{"candidates":[{"finishReason": "STOP"}]}"#, false);
        check(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, false);
        check(r#"{"candidates":[{"index":1}]}"#, false);
        check(r#"{"error":{"code":503}}"#, false);
    }
}
