//! As the source of SGLang 0.5 writes; it was not run.

use serde_json::json;

use super::{Form, Piece, Speech, TEXT, reason};
use crate::{ErrorEvent, engine::tokens::END};

pub(super) struct Sglang;

impl Sglang {
    fn chunk(speech: &Speech, choices: &str, usage: &str) -> String {
        let (id, object, created) = (&speech.id, speech.object(), speech.facts.created);
        let model = &speech.model;
        format!(
            r#"{{"id":{id},"object":"{object}","created":{created},"model":{model},"choices":[{choices}],"usage":{usage}}}"#
        )
    }

    fn counts(speech: &Speech, count: usize) -> String {
        let prompt = speech.facts.prompt_tokens;
        let total = prompt + count;
        format!(
            r#"{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{count},"prompt_tokens_details":null,"reasoning_tokens":0}}"#
        )
    }

    /// Counts on the way, also without the last ones.
    fn running(speech: &Speech, count: usize) -> String {
        if speech.facts.continuous_usage {
            Self::counts(speech, count)
        } else {
            "null".to_owned()
        }
    }

    fn said(
        speech: &Speech,
        choice: usize,
        said: &str,
        piece: &Piece,
        finish: Option<&str>,
    ) -> String {
        let matched = match finish {
            Some("stop") => END.to_string(),
            _ => "null".to_owned(),
        };
        let finish = reason(finish);
        let ids = if speech.facts.token_ids && !speech.plan.is_chat {
            let is_first = speech
                .plan
                .pieces
                .first()
                .is_none_or(|first| first == piece);
            let prompt = if is_first {
                format!(r#","prompt_token_ids":{}"#, speech.ids(&speech.plan.prompt))
            } else {
                String::new()
            };
            format!(r#","token_ids":{}{prompt}"#, speech.ids(&piece.ids))
        } else {
            String::new()
        };
        let choice = format!(
            r#"{{"index":{choice},{said},"logprobs":null,"finish_reason":{finish},"matched_stop":{matched}{ids}}}"#
        );
        Self::chunk(speech, &choice, &Self::running(speech, piece.count))
    }

    fn with_delta(role: &str, content: &str) -> String {
        format!(
            r#""delta":{{"role":{role},"content":{content},"reasoning_content":null,"tool_calls":null}}"#
        )
    }
}

impl Form for Sglang {
    fn role(&self, speech: &Speech, choice: usize) -> String {
        let delta = Self::with_delta(r#""assistant""#, r#""""#);
        Self::said(speech, choice, &delta, &Piece::default(), None)
    }

    fn text(&self, speech: &Speech, choice: usize, piece: &Piece, finish: Option<&str>) -> String {
        let said = if speech.plan.is_chat {
            Self::with_delta("null", &format!(r#""{TEXT}""#))
        } else {
            format!(r#""text":"{TEXT}""#)
        };
        Self::said(speech, choice, &said, piece, finish)
    }

    fn delta(&self, speech: &Speech, choice: usize, delta: &str) -> String {
        let piece = Piece {
            count: speech.facts.completion_tokens,
            ..Piece::default()
        };
        Self::said(speech, choice, &format!(r#""delta":{delta}"#), &piece, None)
    }

    fn finish(&self, speech: &Speech, choice: usize, reason: &str, piece: &Piece) -> String {
        let said = if speech.plan.is_chat {
            Self::with_delta("null", "null")
        } else {
            r#""text":"""#.to_owned()
        };
        Self::said(speech, choice, &said, piece, Some(reason))
    }

    fn usage(&self, speech: &Speech) -> Option<String> {
        let usage = Self::counts(speech, speech.completion());
        speech
            .facts
            .usage_chunk
            .then(|| Self::chunk(speech, "", &usage))
    }

    fn error(&self, error: &ErrorEvent) -> String {
        let kind = error.kind.as_deref().unwrap_or("InternalServerError");
        json!({ "error": {
            "object": "error", "message": error.message, "type": kind, "param": null,
            "code": error.code,
        }})
        .to_string()
    }
}
