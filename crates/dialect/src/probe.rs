//! Byte tests on an event's data: above all, those that tell an ordinary OpenAI chunk from one that
//! must be parsed.
//!
//! Exact in one direction only: what is called ordinary needs no parsing; the reverse merely costs
//! a parse. They work on raw JSON text because a quote inside a string is always escaped, so
//! `"error"` with both its quotes is a whole member name or a whole string, never part of a text.

use std::sync::LazyLock;

use memchr::memmem::Finder;

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\""));
static INDEX: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"index\""));

/// Whether there is no data: no field of it, or only empty ones, which are joined by line ends.
pub(crate) fn is_blank(data: &str) -> bool {
    data.bytes().all(|byte| byte == b'\n')
}

/// The member names that [`is_ordinary`] looks for. It looks at nothing but these, each within quotes, and at the few
/// bytes that follow the colon behind them: [`Recurring`](crate::recurring::Recurring) rests on that.
pub(crate) const NAMES: [&[u8]; 3] = [b"error", b"finish_reason", b"index"];

/// Whether a chunk tells no error, no finish and nothing of a choice other than choice 0.
pub(crate) fn is_ordinary(data: &[u8]) -> bool {
    // A string "error" counts too: `"object":"error"` marks an error without an `error` member.
    all(&ERROR, data, |value| value.is_some_and(is_null))
        && all(&FINISH, data, |value| {
            value.is_none_or(|value| is_null(value) || value.starts_with(b"\"\""))
        })
        && all(&INDEX, data, |value| value.is_none_or(is_zero))
}

/// Whether some member `error` holds more than null. For text that does not parse.
pub(crate) fn has_error(data: &[u8]) -> bool {
    !all(&ERROR, data, |value| value.is_none_or(is_null))
}

/// Whether the string "error" occurs at all, as a name or as a value.
pub(crate) fn mentions_error(data: &[u8]) -> bool {
    ERROR.find(data).is_some()
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
        assert_eq!(is_ordinary(data.as_bytes()), ordinary, "{data}");
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
}
