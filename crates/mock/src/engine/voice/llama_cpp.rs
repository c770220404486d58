//! As the server of llama.cpp was seen to write.

use serde_json::json;

use super::{Form, Piece, Speech, TEXT, quote, reason};
use crate::ErrorEvent;

pub(super) struct LlamaCpp;

impl LlamaCpp {
    fn chunk(speech: &Speech, choices: &str, usage: &str, timings: Option<usize>) -> String {
        let (id, object, created) = (&speech.id, speech.object(), speech.facts.created);
        let model = &speech.model;
        let timings = timings.map_or_else(String::new, |count| Self::timings(speech, count));
        let fingerprint = r#""system_fingerprint":"b0-mock""#;
        if speech.plan.is_chat {
            format!(
                r#"{{"choices":[{choices}],"created":{created},"id":{id},"model":{model},{fingerprint},"object":"{object}"{usage}{timings}}}"#
            )
        } else {
            format!(
                r#"{{"choices":[{choices}],"created":{created},"model":{model},{fingerprint},"object":"{object}"{usage},"id":{id}{timings}}}"#
            )
        }
    }

    /// A model of a clock: a millisecond for a token that is read, ten for one that is written.
    fn timings(speech: &Speech, count: usize) -> String {
        let prompt = speech.facts.prompt_tokens;
        format!(
            r#","timings":{{"cache_n":0,"prompt_n":{prompt},"prompt_ms":{prompt}.0,"prompt_per_token_ms":1.0,"prompt_per_second":1000.0,"predicted_n":{count},"predicted_ms":{}.0,"predicted_per_token_ms":10.0,"predicted_per_second":100.0}}"#,
            count * 10
        )
    }

    fn counts(speech: &Speech, completion: usize) -> String {
        let prompt = speech.facts.prompt_tokens;
        let total = prompt + completion;
        format!(
            r#","usage":{{"completion_tokens":{completion},"prompt_tokens":{prompt},"total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":0}}}}"#
        )
    }

    fn said(choice: usize, delta: &str, finish: Option<&str>, logprobs: &str) -> String {
        let finish = reason(finish);
        format!(r#"{{"finish_reason":{finish},"index":{choice},"delta":{delta}{logprobs}}}"#)
    }

    fn with_text(choice: usize, text: &str, finish: Option<&str>, logprobs: &str) -> String {
        let finish = reason(finish);
        let logprobs = logprobs.strip_prefix(',').unwrap_or(r#""logprobs":null"#);
        format!(r#"{{"text":"{text}","index":{choice},{logprobs},"finish_reason":{finish}}}"#)
    }

    /// Where they are asked for: the only place that tells ids, and of a character that takes several
    /// only the last.
    fn logprobs(speech: &Speech, piece: &Piece) -> String {
        let Some(id) = piece.ids.last().filter(|_| speech.logprobs) else {
            return String::new();
        };
        let token = quote(&piece.text);
        let bytes = format!("{:?}", piece.text.as_bytes()).replace(' ', "");
        let one = format!(r#""id":{id},"token":{token},"bytes":{bytes},"logprob":0.0"#);
        format!(r#","logprobs":{{"content":[{{{one},"top_logprobs":[{{{one}}}]}}]}}"#)
    }
}

impl Form for LlamaCpp {
    fn role(&self, speech: &Speech, choice: usize) -> String {
        let delta = r#"{"role":"assistant","content":null}"#;
        Self::chunk(speech, &Self::said(choice, delta, None, ""), "", None)
    }

    fn text(&self, speech: &Speech, choice: usize, piece: &Piece, finish: Option<&str>) -> String {
        let logprobs = Self::logprobs(speech, piece);
        let said = if speech.plan.is_chat {
            let delta = format!(r#"{{"content":"{TEXT}"}}"#);
            Self::said(choice, &delta, finish, &logprobs)
        } else {
            Self::with_text(choice, TEXT, finish, &logprobs)
        };
        let timings = speech.timings.then_some(piece.count);
        Self::chunk(speech, &said, "", timings)
    }

    fn delta(&self, speech: &Speech, choice: usize, delta: &str) -> String {
        let timings = speech.timings.then_some(speech.facts.completion_tokens);
        Self::chunk(speech, &Self::said(choice, delta, None, ""), "", timings)
    }

    fn finish(&self, speech: &Speech, choice: usize, reason: &str, piece: &Piece) -> String {
        if !speech.plan.is_chat {
            let said = Self::with_text(choice, "", Some(reason), "");
            let usage = Self::counts(speech, piece.count);
            return Self::chunk(speech, &said, &usage, Some(piece.count));
        }
        // They go with the last chunk.
        let is_last = !speech.facts.usage_chunk || speech.timings;
        let said = Self::said(choice, "{}", Some(reason), "");
        Self::chunk(speech, &said, "", is_last.then_some(piece.count))
    }

    fn usage(&self, speech: &Speech) -> Option<String> {
        if !(speech.plan.is_chat && speech.facts.usage_chunk) {
            return None;
        }
        let completion = speech.completion();
        let usage = Self::counts(speech, completion);
        Some(Self::chunk(speech, "", &usage, Some(completion)))
    }

    fn error(&self, error: &ErrorEvent) -> String {
        let kind = error.kind.as_deref().unwrap_or("server_error");
        json!({ "error": { "code": error.code, "message": error.message, "type": kind } })
            .to_string()
    }
}
