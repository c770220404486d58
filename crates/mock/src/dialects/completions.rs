//! OpenAI legacy Completions.

use serde::Serialize;

use super::{
    Facts, Voice,
    chat::{Usage, openai_error, prompt_ids},
    event, json,
    template::{COMPLETION, TEXT, TOKEN_ID, TOTAL, Template},
};
use crate::ErrorEvent;

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    /// Missing, null or a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    text: &'a str,
    logprobs: Option<()>,
    finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_token_ids: Option<Vec<u32>>,
}

/// The voice of OpenAI legacy Completions.
pub(super) struct Completions {
    facts: Facts,
    /// Per choice: its first event (which carries the prompt's ids where ids are asked for), and
    /// every later one.
    templates: Vec<(Template, Template)>,
}

impl Completions {
    pub(super) fn new(facts: Facts) -> Self {
        let mut voice = Self {
            facts,
            templates: Vec::new(),
        };
        let template = |index, first| {
            let usage = Usage::running(&voice.facts, COMPLETION, TOTAL);
            let event = voice.choice(index, TEXT, None, &[TOKEN_ID], first, usage);
            Template::new(&event, voice.facts.prompt_tokens, voice.facts.skipped)
        };
        voice.templates = (0..voice.facts.choices)
            .map(|index| (template(index, true), template(index, false)))
            .collect();
        voice
    }

    fn chunk(&self, choices: &[Choice<'_>], usage: Option<Option<Usage>>) -> Vec<u8> {
        event(
            None,
            &json(&Chunk {
                id: &self.facts.id,
                object: "text_completion",
                created: self.facts.created,
                model: &self.facts.model,
                choices,
                usage,
            }),
        )
    }

    fn choice(
        &self,
        index: usize,
        text: &str,
        finish_reason: Option<&str>,
        token_ids: &[u32],
        first: bool,
        usage: Option<Option<Usage>>,
    ) -> Vec<u8> {
        let ids = self.facts.token_ids;
        let choice = Choice {
            index,
            text,
            logprobs: None,
            finish_reason,
            token_ids: ids.then_some(token_ids),
            prompt_token_ids: (ids && first).then(|| prompt_ids(&self.facts)),
        };
        self.chunk(&[choice], usage)
    }
}

impl Voice for Completions {
    fn opening(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn text(&self, choice: usize, token: usize, text: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>) {
        let (first, later) = &self.templates[choice];
        let template = if token == self.facts.skipped {
            first
        } else {
            later
        };
        template.fill(token, text, out);
    }

    fn finish(&self, reason: &str, _events: usize) -> Vec<Vec<u8>> {
        let done = self.facts.completion_tokens;
        (0..self.facts.choices)
            .map(|index| {
                let usage = Usage::running(&self.facts, done, self.facts.prompt_tokens + done);
                self.choice(index, "", Some(reason), &[], false, usage)
            })
            .collect()
    }

    fn usage(&self) -> Option<Vec<u8>> {
        let usage = Usage::whole(&self.facts);
        self.facts
            .usage_chunk
            .then(|| self.chunk(&[], Some(Some(usage))))
    }

    fn sentinel(&self) -> Option<Vec<u8>> {
        Some(event(None, "[DONE]"))
    }

    fn error(&self, error: &ErrorEvent) -> Vec<u8> {
        event(None, &openai_error(error))
    }
}
