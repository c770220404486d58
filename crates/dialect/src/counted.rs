//! Asking for ids and counts that an app did not ask for, and taking them out again before it sees them.
//!
//! A continuation is exact only with the ids of all tokens, and limits are kept only with exact counts; both have to be
//! asked for in the first request. The app must see the stream that it asked for: to the byte, but for these members.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{
    Dialect, Engine,
    edit::{Edits, wire_lines},
    members::Members,
};

/// What was added to a request, and so has to be taken out of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Ids of tokens.
    ids: bool,
    /// Counts on every chunk.
    running: bool,
    /// The last chunk, which has counts alone.
    last: bool,
}

/// What an app sees of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    Same,
    /// These wire lines, without an id line and without the blank line.
    Lines(Vec<u8>),
    /// Nothing.
    Nothing,
}

impl Added {
    /// Asks for what `engine` can tell. `None` where it can tell nothing more, or the request cannot be relied on; then it
    /// is sent as it came.
    #[must_use]
    pub fn to(engine: Engine, dialect: Dialect, request: &str) -> Option<(String, Self)> {
        if !matches!(dialect, Dialect::OpenAiChat | Dialect::OpenAiCompletions) {
            return None;
        }
        let members = Members::read(request)?;
        let mut edits = Edits::new(request);
        let mut more = String::new();
        let mut added = Self::default();
        // SGLang's chat refuses to tell ids while it streams.
        let tells_ids = match engine {
            Engine::Vllm => true,
            Engine::Sglang => dialect == Dialect::OpenAiCompletions,
            Engine::LlamaCpp => return None,
        };
        if tells_ids && !members.is_true("return_token_ids") {
            members.set(&mut edits, &mut more, "return_token_ids", "true");
            added.ids = true;
        }
        let options = members.get("stream_options");
        let asked = options.and_then(|options| serde_json::from_str(options.get()).ok());
        let asked: Options = asked.unwrap_or_default();
        added.last = !asked.include_usage;
        added.running = !asked.continuous_usage_stats;
        if added.last || added.running {
            let both = r#"{"include_usage":true,"continuous_usage_stats":true}"#;
            members.set(&mut edits, &mut more, "stream_options", both);
        }
        edits.append_member(&more);
        Some((edits.apply(), added))
    }

    /// What the app sees of a chunk of the answer.
    #[must_use]
    pub fn shown(self, event: &Event<'_>) -> Shown {
        let data = event.data();
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(&data) else {
            return Shown::Same;
        };
        if self.last && chunk.choices.is_empty() && chunk.usage.is_some() {
            return Shown::Nothing;
        }
        let mut out: Vec<&RawValue> = Vec::new();
        if self.ids {
            let of_choices = chunk.choices.iter();
            let of_choices =
                of_choices.flat_map(|choice| [choice.token_ids, choice.prompt_token_ids]);
            out.extend(of_choices.chain([chunk.prompt_token_ids]).flatten());
        }
        if self.running && !chunk.choices.is_empty() {
            out.extend(chunk.usage);
        }
        if out.is_empty() {
            return Shown::Same;
        }
        let mut edits = Edits::new(&data);
        for member in out {
            edits.remove_member(member);
        }
        Shown::Lines(wire_lines(event, &edits.apply()))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    include_usage: bool,
    continuous_usage_stats: bool,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    prompt_token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_token_ids: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use streamweld_sse::{Decoder, Limits};

    use super::*;

    const ASK: &str = r#""stream_options":{"include_usage":true,"continuous_usage_stats":true}"#;

    fn added(engine: Engine, dialect: Dialect, request: &str) -> (String, Added) {
        Added::to(engine, dialect, request).expect("it can be asked")
    }

    #[track_caller]
    fn check(added: Added, data: &str, expected: Option<&str>) {
        let block = format!("data: {data}\n\n");
        let mut input = block.as_bytes();
        let mut decoder = Decoder::new(Limits::default());
        let event = decoder.decode(&mut input).unwrap().unwrap();
        let shown = match added.shown(&event) {
            Shown::Same => Some(data.to_owned()),
            Shown::Lines(lines) => {
                let lines = String::from_utf8(lines).unwrap();
                Some(lines.strip_prefix("data: ").unwrap().trim_end().to_owned())
            }
            Shown::Nothing => None,
        };
        assert_eq!(shown.as_deref(), expected);
    }

    #[test]
    fn a_request_is_added_to() {
        let (request, added) = added(Engine::Vllm, Dialect::OpenAiChat, r#"{"messages":[]}"#);
        assert_eq!(
            request,
            format!(r#"{{"messages":[],"return_token_ids":true,{ASK}}}"#)
        );
        assert!(added.ids && added.running && added.last);
    }

    #[test]
    fn what_the_app_asked_for_stays_its_own() {
        let request = r#"{"stream_options":{"include_usage":true},"return_token_ids":true}"#;
        let (request, added) = added(Engine::Vllm, Dialect::OpenAiCompletions, request);
        assert_eq!(request, format!(r#"{{{ASK},"return_token_ids":true}}"#));
        assert!(!added.ids && added.running && !added.last);
        let last = r#"{"choices":[],"usage":{"completion_tokens":1}}"#;
        check(added, last, Some(last));
        let ids = r#"{"choices":[{"text":"a","token_ids":[1]}]}"#;
        check(added, ids, Some(ids));
    }

    #[test]
    fn who_tells_no_ids_is_not_asked_for_them() {
        let (request, added) = added(Engine::Sglang, Dialect::OpenAiChat, "{\"n\":1}");
        assert_eq!(request, format!("{{\"n\":1,{ASK}}}"));
        assert!(!added.ids);
        assert_eq!(Added::to(Engine::LlamaCpp, Dialect::OpenAiChat, "{}"), None);
        assert_eq!(Added::to(Engine::Vllm, Dialect::Gemini, "{}"), None);
        assert_eq!(Added::to(Engine::Vllm, Dialect::OpenAiChat, "[]"), None);
    }

    #[test]
    fn the_app_sees_what_it_asked_for() {
        let (_, added) = added(Engine::Vllm, Dialect::OpenAiChat, "{\"n\":1}");
        check(
            added,
            r#"{"id":"x","prompt_token_ids":[1,2],"choices":[{"index":0, "delta":{"content":"a"},"token_ids":[3]}],"usage":{"completion_tokens":1}}"#,
            Some(r#"{"id":"x","choices":[{"index":0, "delta":{"content":"a"}}]}"#),
        );
        let plain = r#"{"choices":[{"index":0,"delta":{"content":"\"token_ids\":[1]"}}]}"#;
        check(added, plain, Some(plain));
        check(added, "[DONE]", Some("[DONE]"));
        check(
            added,
            r#"{"choices":[],"usage":{"completion_tokens":1}}"#,
            None,
        );
        // No counts, and nothing of ours.
        let empty = r#"{"choices":[]}"#;
        check(added, empty, Some(empty));
    }
}
