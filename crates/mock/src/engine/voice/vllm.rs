//! As vLLM 0.32 was seen to write.

use super::{Form, Piece, Speech, TEXT, quote, reason};
use crate::{ErrorEvent, dialects::openai_error};

pub(super) struct Vllm;

/// Stands in the last chunk alone.
const FINGERPRINT: &str = r#","system_fingerprint":"vllm-0.32.0-mock""#;

impl Vllm {
    fn chunk(speech: &Speech, choices: &str, more: &str) -> String {
        let (id, object, created) = (&speech.id, speech.object(), speech.facts.created);
        let model = &speech.model;
        format!(
            r#"{{"id":{id},"object":"{object}","created":{created},"model":{model},"choices":[{choices}]{more}}}"#
        )
    }

    /// What is in a choice behind its text.
    fn tail(speech: &Speech, piece: &Piece, finish: Option<&str>) -> String {
        let (finish_reason, ids) = (reason(finish), speech.ids(&piece.ids));
        if speech.plan.is_chat {
            let stop = if finish.is_some() {
                r#","stop_reason":null"#
            } else {
                ""
            };
            return format!(
                r#""logprobs":null,"finish_reason":{finish_reason}{stop},"token_ids":{ids}"#
            );
        }
        let is_first = speech
            .plan
            .pieces
            .first()
            .is_none_or(|first| first == piece);
        let prompt = if is_first {
            speech.ids(&speech.plan.prompt)
        } else {
            "null".to_owned()
        };
        format!(
            r#""logprobs":null,"finish_reason":{finish_reason},"stop_reason":null,"prompt_token_ids":{prompt},"token_ids":{ids}"#
        )
    }

    /// Counts on the way: only beside the last ones.
    fn running(speech: &Speech, count: usize) -> String {
        let facts = &speech.facts;
        if !(facts.continuous_usage && facts.usage_chunk) {
            return String::new();
        }
        let (prompt, total) = (facts.prompt_tokens, facts.prompt_tokens + count);
        let details = if speech.plan.is_chat {
            r#","completion_tokens_details":null"#
        } else {
            ""
        };
        format!(
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{count}{details}}}"#
        )
    }

    fn said(
        speech: &Speech,
        choice: usize,
        delta: &str,
        piece: &Piece,
        finish: Option<&str>,
    ) -> String {
        let tail = Self::tail(speech, piece, finish);
        let said = format!(r#"{{"index":{choice},{delta},{tail}}}"#);
        let is_last =
            finish.is_some() && choice + 1 == speech.facts.choices && !speech.facts.usage_chunk;
        let fingerprint = if is_last { FINGERPRINT } else { "" };
        let more = Self::running(speech, piece.count) + fingerprint;
        Self::chunk(speech, &said, &more)
    }

    fn with_text(speech: &Speech, text: &str) -> String {
        if speech.plan.is_chat {
            format!(r#""delta":{{"content":"{text}"}}"#)
        } else {
            format!(r#""text":"{text}""#)
        }
    }
}

impl Form for Vllm {
    fn role(&self, speech: &Speech, choice: usize) -> String {
        let role = quote(&speech.plan.role);
        let said = format!(
            r#"{{"index":{choice},"delta":{{"role":{role},"content":""}},"logprobs":null,"finish_reason":null}}"#
        );
        let prompt = speech.ids(&speech.plan.prompt);
        let more = Self::running(speech, 0)
            + &format!(r#","prompt_token_ids":{prompt},"prompt_text":null"#);
        Self::chunk(speech, &said, &more)
    }

    fn text(&self, speech: &Speech, choice: usize, piece: &Piece, finish: Option<&str>) -> String {
        Self::said(
            speech,
            choice,
            &Self::with_text(speech, TEXT),
            piece,
            finish,
        )
    }

    fn delta(&self, speech: &Speech, choice: usize, delta: &str) -> String {
        let piece = Piece {
            count: speech.facts.completion_tokens,
            ..Piece::default()
        };
        Self::said(speech, choice, &format!(r#""delta":{delta}"#), &piece, None)
    }

    fn finish(&self, speech: &Speech, choice: usize, reason: &str, piece: &Piece) -> String {
        let empty = Self::with_text(speech, "");
        Self::said(speech, choice, &empty, piece, Some(reason))
    }

    fn usage(&self, speech: &Speech) -> Option<String> {
        let (prompt, completion) = (speech.facts.prompt_tokens, speech.completion());
        let total = prompt + completion;
        let usage = format!(
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}}}{FINGERPRINT}"#
        );
        speech
            .facts
            .usage_chunk
            .then(|| Self::chunk(speech, "", &usage))
    }

    fn error(&self, error: &ErrorEvent) -> String {
        openai_error(error)
    }
}
