//! OpenAI Chat Completions, with the extensions of vLLM (token ids, running usage) when asked for.

use serde::Serialize;
use serde_json::json;

use super::{
    Facts, Voice, arguments, event, json,
    template::{COMPLETION, TEXT, TOKEN_ID, TOTAL, Template},
};
use crate::ErrorEvent;

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: &'a [Choice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_ids: Option<Vec<u32>>,
    /// Missing, null or a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<&'a [u32]>,
}

#[derive(Serialize, Default)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[ToolCall<'a>; 1]>,
}

/// A call begins with its id and its name; what follows are pieces of its arguments.
#[derive(Serialize)]
struct ToolCall<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

/// A usage report of the OpenAI dialects.
#[derive(Serialize)]
pub(crate) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
}

impl Usage {
    /// The report at the end of an answer.
    pub(crate) fn whole(facts: &Facts) -> Self {
        let completion_tokens = facts.completion_tokens * facts.choices;
        Self {
            prompt_tokens: facts.prompt_tokens,
            completion_tokens,
            total_tokens: facts.prompt_tokens + completion_tokens,
        }
    }

    /// The `usage` member of an event before the end: missing, null, or a report.
    pub(super) fn running(facts: &Facts, completion: usize, total: usize) -> Option<Option<Self>> {
        match (facts.continuous_usage, facts.usage_chunk) {
            (true, _) => Some(Some(Self {
                prompt_tokens: facts.prompt_tokens,
                completion_tokens: completion,
                total_tokens: total,
            })),
            (false, true) => Some(None),
            (false, false) => None,
        }
    }
}

/// The voice of OpenAI Chat Completions.
pub(super) struct Chat {
    facts: Facts,
    templates: Vec<Template>,
}

impl Chat {
    pub(super) fn new(facts: Facts) -> Self {
        let mut chat = Self {
            facts,
            templates: Vec::new(),
        };
        chat.templates = (0..chat.facts.choices)
            .map(|index| {
                let delta = Delta {
                    content: Some(TEXT),
                    ..Delta::default()
                };
                let usage = Usage::running(&chat.facts, COMPLETION, TOTAL);
                let text = chat.choice(index, delta, None, &[TOKEN_ID], usage);
                Template::new(&text, chat.facts.prompt_tokens, chat.facts.skipped)
            })
            .collect();
        chat
    }

    fn chunk(&self, choices: &[Choice<'_>], prompt: bool, usage: Option<Option<Usage>>) -> Vec<u8> {
        let prompt_token_ids = (prompt && self.facts.token_ids).then(|| prompt_ids(&self.facts));
        event(
            None,
            &json(&Chunk {
                id: &self.facts.id,
                object: "chat.completion.chunk",
                created: self.facts.created,
                model: &self.facts.model,
                system_fingerprint: "mock",
                choices,
                prompt_token_ids,
                usage,
            }),
        )
    }

    fn choice(
        &self,
        index: usize,
        delta: Delta<'_>,
        finish_reason: Option<&str>,
        token_ids: &[u32],
        usage: Option<Option<Usage>>,
    ) -> Vec<u8> {
        let prompt = delta.role.is_some();
        let token_ids = (self.facts.token_ids && !prompt).then_some(token_ids);
        let choice = Choice {
            index,
            delta,
            logprobs: None,
            finish_reason,
            token_ids,
        };
        self.chunk(&[choice], prompt, usage)
    }

    fn behind_the_text(&self, choice: usize, delta: Delta<'_>, reason: Option<&str>) -> Vec<u8> {
        let done = self.facts.completion_tokens;
        let usage = Usage::running(&self.facts, done, self.facts.prompt_tokens + done);
        self.choice(choice, delta, reason, &[], usage)
    }

    fn calls_of(&self, choice: usize) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        each_call_delta(&self.facts, choice, |delta| {
            events.push(self.behind_the_text(choice, delta, None));
        });
        events
    }
}

/// The deltas in which a choice calls its tools, as JSON.
pub(crate) fn call_deltas(facts: &Facts, choice: usize) -> Vec<String> {
    let mut deltas = Vec::new();
    each_call_delta(facts, choice, |delta| deltas.push(json(&delta)));
    deltas
}

fn each_call_delta(facts: &Facts, choice: usize, mut take: impl FnMut(Delta<'_>)) {
    for (index, call) in facts.calls.iter().enumerate() {
        let begun = ToolCall {
            index,
            id: Some(format!("call-{choice}-{index}")),
            r#type: Some("function"),
            function: Function {
                name: Some(&call.name),
                arguments: "",
            },
        };
        let (_, pieces) = arguments(call);
        let more = pieces.iter().map(|piece| ToolCall {
            index,
            id: None,
            r#type: None,
            function: Function {
                name: None,
                arguments: piece,
            },
        });
        for call in std::iter::once(begun).chain(more) {
            take(Delta {
                tool_calls: Some([call]),
                ..Delta::default()
            });
        }
    }
}

impl Voice for Chat {
    fn opening(&self) -> Vec<Vec<u8>> {
        let choices = if self.facts.role_chunk {
            self.facts.choices
        } else {
            0
        };
        (0..choices)
            .map(|index| {
                let delta = Delta {
                    role: Some("assistant"),
                    content: Some(""),
                    ..Delta::default()
                };
                let usage = Usage::running(&self.facts, 0, self.facts.prompt_tokens);
                self.choice(index, delta, None, &[], usage)
            })
            .collect()
    }

    fn text(&self, choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        self.templates[choice].fill(token, text, out);
    }

    fn calls(&self, _events: usize) -> Vec<Vec<u8>> {
        let choices = 0..self.facts.choices;
        choices.flat_map(|choice| self.calls_of(choice)).collect()
    }

    fn finish(&self, reason: &str, _events: usize) -> Vec<Vec<u8>> {
        (0..self.facts.choices)
            .map(|index| self.behind_the_text(index, Delta::default(), Some(reason)))
            .collect()
    }

    fn usage(&self) -> Option<Vec<u8>> {
        let usage = Usage::whole(&self.facts);
        self.facts
            .usage_chunk
            .then(|| self.chunk(&[], false, Some(Some(usage))))
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        Some(event(None, "[DONE]"))
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        event(None, &openai_error(error))
    }
}

/// The ids of the prompt's tokens: 1, 2, 3 …
pub(super) fn prompt_ids(facts: &Facts) -> Vec<u32> {
    (1..).take(facts.prompt_tokens).collect()
}

/// The error object of the OpenAI dialects.
pub(crate) fn openai_error(error: &ErrorEvent) -> String {
    let kind = error.kind.as_deref().unwrap_or("InternalServerError");
    json!({
        "error": { "message": error.message, "type": kind, "param": null, "code": error.code }
    })
    .to_string()
}
