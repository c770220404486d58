//! Asking how many tokens the prompt of a message has, which costs nothing.
//!
//! A stream of messages counts its tokens once, in its last event. How many a part of an answer has is the difference
//! between two prompts: one with it behind the messages, and one without.

use serde::Deserialize;
use serde_json::Value;

/// Where that is asked, behind the path of the request itself.
pub const COUNT: &str = "/count_tokens";

/// The question about a request, for `POST`. [`read_count`] reads the answer. `None` for what is no request.
#[must_use]
pub fn ask_count(request: &str) -> Option<String> {
    let Ok(Value::Object(mut request)) = serde_json::from_str(request) else {
        return None;
    };
    // What else a request may have is refused there.
    let counts = [
        "anthropic_version",
        "messages",
        "model",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    ];
    request.retain(|name, _| counts.contains(&name.as_str()));
    request
        .contains_key("messages")
        .then(|| Value::Object(request).to_string())
}

/// The count in an answer.
#[must_use]
pub fn read_count(body: &[u8]) -> Option<u64> {
    let told: Count = serde_json::from_slice(body).ok()?;
    Some(told.input_tokens)
}

#[derive(Deserialize)]
struct Count {
    input_tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_prompt_is_not_asked_about() {
        let asked = ask_count(
            r#"{"model":"m","max_tokens":9,"stream":true,"temperature":0,"system":"s","metadata":{},
                "messages":[{"role":"user","content":"q"}]}"#,
        );
        let expected = r#"{"messages":[{"content":"q","role":"user"}],"model":"m","system":"s"}"#;
        assert_eq!(asked.as_deref(), Some(expected));
        assert_eq!(ask_count(r#"{"model":"m"}"#), None);
        assert_eq!(ask_count("[]"), None);
    }

    #[test]
    fn a_count_is_a_number() {
        assert_eq!(read_count(br#"{"input_tokens":14}"#), Some(14));
        assert_eq!(read_count(br#"{"input_tokens":"14"}"#), None);
        assert_eq!(read_count(b"{}"), None);
    }
}
