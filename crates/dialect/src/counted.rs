//! Asking for ids and counts that an app did not ask for, and taking them out again before it sees them.
//!
//! A continuation is exact only with the ids of all tokens, and limits are kept only with exact counts; both have to be
//! asked for in the first request. The app must see the stream that it asked for: to the byte, but for these members.

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{
    Dialect, Engine,
    edit::{Edits, is_filled, wire_lines},
    members::Members,
};

/// What was added to a request, and so has to be taken out of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Ids of tokens, and how their places look when nobody asks for them.
    ids: Option<Unasked>,
    /// Counts on every chunk, and how their places look when nobody asks for them.
    running: Option<Unasked>,
    /// The last chunk, which has counts alone.
    last: bool,
    /// What llama.cpp tells of its work, on every chunk.
    timings: Option<Timings>,
    /// Probabilities, which have ids beside them, and how their places look when nobody asks for them.
    logprobs: Option<Unasked>,
}

/// What an engine writes where something would stand when nobody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unasked {
    Null,
    Nothing,
}

/// Which chunk has what llama.cpp tells of its work when it is not asked to tell it on every one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timings {
    /// The one with the finish reason.
    WithFinish,
    /// The one with the counts, which the app asked for.
    WithCounts,
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
    /// Asks for what `engine` can tell. `greedy`: every token is the most probable one, so that it would come again.
    ///
    ///  `None` where it can tell nothing more, or the request cannot be relied on; then it
    /// is sent as it came.
    #[must_use]
    pub fn to(
        engine: Engine,
        dialect: Dialect,
        request: &str,
        greedy: bool,
    ) -> Option<(String, Self)> {
        if !matches!(dialect, Dialect::OpenAiChat | Dialect::OpenAiCompletions) {
            return None;
        }
        let members = Members::read(request)?;
        let mut edits = Edits::new(request);
        let mut more = String::new();
        let mut added = Self::default();
        // SGLang's chat refuses to tell ids while it streams.
        let unasked = match engine {
            Engine::Vllm => Some(Unasked::Null),
            Engine::Sglang => (dialect == Dialect::OpenAiCompletions).then_some(Unasked::Nothing),
            Engine::Anthropic => return None,
            Engine::LlamaCpp => {
                return Some(Self::to_llama_cpp(&members, edits, dialect, greedy));
            }
        };
        if unasked.is_some() && !members.is_true("return_token_ids") {
            members.set(&mut edits, &mut more, "return_token_ids", "true");
            added.ids = unasked;
        }
        let options = members.get("stream_options");
        let asked = options.and_then(|options| serde_json::from_str(options.get()).ok());
        let asked: Options = asked.unwrap_or_default();
        added.last = !asked.include_usage;
        let unasked = match engine {
            Engine::Vllm | Engine::LlamaCpp | Engine::Anthropic => Unasked::Nothing,
            Engine::Sglang => Unasked::Null,
        };
        // One that is asked for no counts at all has none on the way either.
        let runs = asked.continuous_usage_stats && (asked.include_usage || engine != Engine::Vllm);
        added.running = (!runs).then_some(unasked);
        if added.last || added.running.is_some() {
            let both = r#"{"include_usage":true,"continuous_usage_stats":true}"#;
            members.set(&mut edits, &mut more, "stream_options", both);
        }
        edits.append_member(&more);
        Some((edits.apply(), added))
    }

    /// Its chunks have ids only beside probabilities, which cost it a little: they are asked for where what was drawn at
    /// random cannot be asked for again. It counts its tokens on the way only where it is asked what its work takes. Its comments show that it is there: a
    /// server that was told to end says nothing for up to the time between two of them.
    fn to_llama_cpp<'t>(
        members: &Members<'t>,
        mut edits: Edits<'t>,
        dialect: Dialect,
        greedy: bool,
    ) -> (String, Self) {
        let mut more = String::new();
        let mut added = Self::default();
        if !members.is_true("timings_per_token") {
            members.set(&mut edits, &mut more, "timings_per_token", "true");
            let options = members.get("stream_options");
            let asked = options.and_then(|options| serde_json::from_str(options.get()).ok());
            let Options { include_usage, .. } = asked.unwrap_or_default();
            let apart = include_usage && dialect == Dialect::OpenAiChat;
            added.timings = Some(if apart {
                Timings::WithCounts
            } else {
                Timings::WithFinish
            });
        }
        if !greedy && members.get("logprobs").is_none() {
            added.logprobs = Some(if dialect == Dialect::OpenAiChat {
                members.set(&mut edits, &mut more, "logprobs", "true");
                members.set(&mut edits, &mut more, "top_logprobs", "1");
                Unasked::Nothing
            } else {
                members.set(&mut edits, &mut more, "logprobs", "1");
                Unasked::Null
            });
        }
        if members.get("sse_ping_interval").is_none() {
            members.set(&mut edits, &mut more, "sse_ping_interval", "1");
        }
        edits.append_member(&more);
        (edits.apply(), added)
    }

    /// Whether ids were added, so that the app sees none.
    #[must_use]
    pub fn hides_ids(self) -> bool {
        self.ids.is_some()
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
        let mut null: Vec<&RawValue> = Vec::new();
        if let Some(unasked) = self.ids {
            let of_choices = chunk.choices.iter();
            let of_choices =
                of_choices.flat_map(|choice| [choice.token_ids, choice.prompt_token_ids]);
            let ids = of_choices.chain([chunk.prompt_token_ids]).flatten();
            match unasked {
                Unasked::Null => null.extend(ids),
                Unasked::Nothing => out.extend(ids),
            }
        }
        let logprobs = chunk.choices.iter().filter_map(|choice| choice.logprobs);
        match self.logprobs {
            Some(Unasked::Null) => null.extend(logprobs),
            Some(Unasked::Nothing) => out.extend(logprobs),
            None => {}
        }
        match self.running.filter(|_| !chunk.choices.is_empty()) {
            Some(Unasked::Null) => null.extend(chunk.usage),
            Some(Unasked::Nothing) => out.extend(chunk.usage),
            None => {}
        }
        let finishes = |choice: &Choice<'_>| choice.finish_reason.is_some_and(is_filled);
        let keeps_timings = match self.timings {
            None => true,
            Some(Timings::WithFinish) => chunk.choices.iter().any(finishes),
            Some(Timings::WithCounts) => chunk.choices.is_empty(),
        };
        if !keeps_timings {
            out.extend(chunk.timings);
        }
        if out.is_empty() && null.is_empty() {
            return Shown::Same;
        }
        let mut edits = Edits::new(&data);
        for ids in null {
            edits.nullify(ids);
        }
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
    timings: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
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
        Added::to(engine, dialect, request, true).expect("it can be asked")
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
        assert!(added.hides_ids() && added.running.is_some() && added.last);
    }

    #[test]
    fn what_the_app_asked_for_stays_its_own() {
        let request = r#"{"stream_options":{"include_usage":true},"return_token_ids":true}"#;
        let (request, added) = added(Engine::Vllm, Dialect::OpenAiCompletions, request);
        assert_eq!(request, format!(r#"{{{ASK},"return_token_ids":true}}"#));
        assert!(!added.hides_ids() && added.running.is_some() && !added.last);
        let last = r#"{"choices":[],"usage":{"completion_tokens":1}}"#;
        check(added, last, Some(last));
        let ids = r#"{"choices":[{"text":"a","token_ids":[1]}]}"#;
        check(added, ids, Some(ids));
    }

    #[test]
    fn counts_on_the_way_alone_are_no_wish_of_an_app() {
        // vLLM counts nothing then.
        let request = r#"{"stream_options":{"continuous_usage_stats":true}}"#;
        let (_, of_vllm) = added(Engine::Vllm, Dialect::OpenAiChat, request);
        let counted = r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}"#;
        let plain = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
        check(of_vllm, counted, Some(plain));
    }

    #[test]
    fn who_tells_no_ids_is_not_asked_for_them() {
        let (request, added) = added(Engine::Sglang, Dialect::OpenAiChat, "{\"n\":1}");
        assert_eq!(request, format!("{{\"n\":1,{ASK}}}"));
        assert!(!added.hides_ids());
        assert_eq!(Added::to(Engine::Vllm, Dialect::Gemini, "{}", true), None);
        assert_eq!(
            Added::to(Engine::Vllm, Dialect::OpenAiChat, "[]", true),
            None
        );
    }

    #[test]
    fn who_writes_nothing_where_nobody_asks_is_shown_so() {
        let (_, added) = added(Engine::Sglang, Dialect::OpenAiCompletions, "{\"n\":1}");
        check(
            added,
            r#"{"choices":[{"text":"a","token_ids":[3],"prompt_token_ids":[1]}],"usage":{"completion_tokens":1}}"#,
            Some(r#"{"choices":[{"text":"a"}],"usage":null}"#),
        );
    }

    #[test]
    fn llama_cpp_counts_its_work_on_every_chunk_and_the_app_sees_it_on_the_last() {
        let (request, plain) = added(Engine::LlamaCpp, Dialect::OpenAiChat, r#"{"n":1}"#);
        assert_eq!(
            request,
            r#"{"n":1,"timings_per_token":true,"sse_ping_interval":1}"#
        );
        let text = r#"{"choices":[{"finish_reason":null,"delta":{"content":"a"}}],"timings":{"predicted_n":1}}"#;
        let without = r#"{"choices":[{"finish_reason":null,"delta":{"content":"a"}}]}"#;
        let finish =
            r#"{"choices":[{"finish_reason":"stop","delta":{}}],"timings":{"predicted_n":1}}"#;
        check(plain, text, Some(without));
        check(plain, finish, Some(finish));

        let request = r#"{"stream_options":{"include_usage":true},"sse_ping_interval":5}"#;
        let (request, counts) = added(Engine::LlamaCpp, Dialect::OpenAiChat, request);
        assert!(request.ends_with(r#""sse_ping_interval":5,"timings_per_token":true}"#));
        check(counts, text, Some(without));
        check(
            counts,
            finish,
            Some(r#"{"choices":[{"finish_reason":"stop","delta":{}}]}"#),
        );
        let last = r#"{"choices":[],"usage":{"completion_tokens":1},"timings":{"predicted_n":1}}"#;
        check(counts, last, Some(last));
        // An app that asked for them itself sees all of them.
        let request = r#"{"timings_per_token":true}"#;
        let (_, own) = added(Engine::LlamaCpp, Dialect::OpenAiChat, request);
        check(own, text, Some(text));
    }

    #[test]
    fn ids_of_what_is_drawn_come_beside_probabilities_that_nobody_sees() {
        let to = |dialect| Added::to(Engine::LlamaCpp, dialect, r#"{"n":1}"#, false).unwrap();
        let (request, chat) = to(Dialect::OpenAiChat);
        assert!(
            request.contains(r#""logprobs":true,"top_logprobs":1,"#),
            "{request}"
        );
        let (request, completions) = to(Dialect::OpenAiCompletions);
        assert!(request.contains(r#""logprobs":1,"#), "{request}");
        check(
            chat,
            r#"{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"id":1}]}}]}"#,
            Some(r#"{"choices":[{"delta":{"content":"a"}}]}"#),
        );
        let text = r#"{"choices":[{"text":"a","logprobs":{"content":[{"id":1}]}}]}"#;
        check(
            completions,
            text,
            Some(r#"{"choices":[{"text":"a","logprobs":null}]}"#),
        );
    }

    #[test]
    fn the_app_sees_what_it_asked_for() {
        let (_, added) = added(Engine::Vllm, Dialect::OpenAiChat, "{\"n\":1}");
        check(
            added,
            r#"{"id":"x","prompt_token_ids":[1,2],"choices":[{"index":0, "delta":{"content":"a"},"token_ids":[3]}],"usage":{"completion_tokens":1}}"#,
            Some(
                r#"{"id":"x","prompt_token_ids":null,"choices":[{"index":0, "delta":{"content":"a"},"token_ids":null}]}"#,
            ),
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
