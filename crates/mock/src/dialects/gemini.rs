//! Gemini's `streamGenerateContent`: one candidate, a part for each call, counts on every event, no sentinel.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    Facts, Voice, event, json,
    template::{COMPLETION, TEXT, TOTAL, Template},
};
use crate::ErrorEvent;

/// A whole answer, or a part of one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    candidates: [Candidate<'a>; 1],
    usage_metadata: Usage,
    model_version: &'a str,
    response_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    index: u32,
}

#[derive(Serialize)]
struct Content<'a> {
    parts: [Part<'a>; 1],
    role: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Part<'a> {
    Text(&'a str),
    FunctionCall {
        name: &'a str,
        args: &'a Map<String, Value>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: usize,
    candidates_token_count: usize,
    total_token_count: usize,
}

impl<'a> Answer<'a> {
    /// The answer to a request that does not stream.
    pub(super) fn whole(facts: &'a Facts, text: &'a str) -> Self {
        Self::last(facts, text, &facts.finish)
    }

    fn last(facts: &'a Facts, text: &'a str, reason: &'a str) -> Self {
        Self::part(facts, Part::Text(text), Some(reason), Usage::whole(facts))
    }

    fn part(facts: &'a Facts, part: Part<'a>, reason: Option<&'a str>, usage: Usage) -> Self {
        Self {
            candidates: [Candidate {
                content: Content {
                    parts: [part],
                    role: "model",
                },
                finish_reason: reason,
                index: 0,
            }],
            usage_metadata: usage,
            model_version: &facts.model,
            response_id: &facts.id,
        }
    }
}

impl Usage {
    fn whole(facts: &Facts) -> Self {
        let done = facts.completion_tokens;
        Self {
            prompt_token_count: facts.prompt_tokens,
            candidates_token_count: done,
            total_token_count: facts.prompt_tokens + done,
        }
    }
}

/// The voice of Gemini.
pub(super) struct Gemini {
    facts: Facts,
    template: Template,
}

impl Gemini {
    pub(super) fn new(facts: Facts) -> Self {
        let usage = Usage {
            prompt_token_count: facts.prompt_tokens,
            candidates_token_count: COMPLETION,
            total_token_count: TOTAL,
        };
        let text = event(
            None,
            &json(&Answer::part(&facts, Part::Text(TEXT), None, usage)),
        );
        let template = Template::new(&text, facts.prompt_tokens, facts.skipped);
        Self { facts, template }
    }
}

impl Voice for Gemini {
    fn opening(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn text(&self, _choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        self.template.fill(token, text, out);
    }

    fn calls(&self, _events: usize) -> Vec<Vec<u8>> {
        // Not in pieces: a part holds a whole call.
        let calls = self.facts.calls.iter().map(|call| {
            let (name, args) = (call.name.as_str(), &call.arguments);
            let part = Part::FunctionCall { name, args };
            let usage = Usage::whole(&self.facts);
            event(None, &json(&Answer::part(&self.facts, part, None, usage)))
        });
        calls.collect()
    }

    fn finish(&self, reason: &str, _events: usize) -> Vec<Vec<u8>> {
        vec![event(None, &json(&Answer::last(&self.facts, "", reason)))]
    }

    fn usage(&self) -> Option<Vec<u8>> {
        None
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        None
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        event(None, &gemini_error(error))
    }
}

/// The error object of Gemini.
pub(crate) fn gemini_error(error: &ErrorEvent) -> String {
    let status = error.kind.as_deref().unwrap_or(match error.code {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    });
    json!({ "error": { "code": error.code, "message": error.message, "status": status } })
        .to_string()
}
