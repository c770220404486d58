//! The chunks of chat and completions behind a seam.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use super::{Before, Identity, Overlap, Rejoined};
use crate::edit::{Edits, is_filled, wire_lines};

/// See [`Rejoin`](super::Rejoin).
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    identity: Identity,
    before: Before,
    overlap: Overlap,
    /// Ids that come again, of a character that was not whole.
    again: VecDeque<u32>,
    /// The reader has seen them, so that they have to be the same.
    seen: bool,
}

impl Chunks {
    pub(super) fn new(identity: Identity, before: Before, overlap: &str) -> Self {
        Self {
            identity,
            before,
            overlap: Overlap(overlap.to_owned()),
            again: VecDeque::new(),
            seen: false,
        }
    }

    pub(super) fn expect_ids(&mut self, ids: &[u32], seen: bool) {
        self.again.extend(ids);
        self.seen = seen;
    }

    pub(super) fn is_joined(&self) -> bool {
        self.overlap.is_over()
    }

    /// The next chunk. One that is no chunk of this API passes as it is.
    pub(super) fn event(&mut self, event: &Event<'_>) -> Rejoined {
        let data = event.data();
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(&data) else {
            return if self.is_joined() {
                Rejoined::Lines(wire_lines(event, &data))
            } else {
                Rejoined::Broken
            };
        };
        let mut edits = Edits::new(&data);
        let mut shows = chunk.choices.is_empty();
        for choice in &chunk.choices {
            match self.choice(choice, &mut edits) {
                Some(true) => shows = true,
                Some(false) => {}
                None => return Rejoined::Broken,
            }
        }
        self.count(chunk.usage.as_ref(), &mut edits);
        if !shows || !self.is_joined() {
            return Rejoined::Nothing;
        }
        self.name(&chunk, &mut edits);
        Rejoined::Lines(wire_lines(event, &edits.apply()))
    }

    /// Whether a choice shows anything new; `None` if it belongs to another answer.
    fn choice<'a>(&mut self, choice: &Choice<'a>, edits: &mut Edits<'a>) -> Option<bool> {
        let delta = choice.delta.as_ref();
        let finishes = choice.finish_reason.is_some_and(is_filled);
        // A beginning says who speaks; the reader knows.
        if let Some(role) = delta.and_then(|delta| delta.role) {
            edits.remove_member(role);
        }
        let mut is_new = finishes || delta.is_some_and(Delta::has_more);
        // That of a continuation has the answer in it.
        if let Some(prompt) = choice.prompt_token_ids.filter(|ids| is_filled(ids)) {
            edits.nullify(prompt);
        }
        let written = delta.map_or(choice.text, |delta| delta.content);
        if let Some(raw) = written.filter(|raw| is_filled(raw)) {
            let text: String = serde_json::from_str(raw.get()).ok()?;
            let new = self.overlap.swallow(&text)?;
            is_new |= !new.is_empty();
            if new.len() < text.len() {
                edits.replace(raw, serde_json::to_string(new).ok()?);
            }
        }
        if is_new && !self.is_joined() {
            return None;
        }
        // Of a character that takes several tokens the first come without text.
        let tells = match choice.token_ids.filter(|ids| is_filled(ids)) {
            Some(raw) if self.is_joined() => self.ids(raw, edits)?,
            _ => false,
        };
        Some(is_new || tells)
    }

    /// Whether there are ids that were not told; `None` if they are others than those that were seen.
    fn ids<'a>(&mut self, raw: &'a RawValue, edits: &mut Edits<'a>) -> Option<bool> {
        if self.again.is_empty() {
            return Some(true);
        }
        let mut ids: VecDeque<u32> = serde_json::from_str(raw.get()).ok()?;
        while let (Some(told), Some(id)) = (self.again.front(), ids.front()) {
            if self.seen && told != id {
                return None;
            }
            self.again.pop_front();
            ids.pop_front();
        }
        edits.replace(raw, serde_json::to_string(&ids).ok()?);
        Some(!ids.is_empty())
    }

    /// Adds up: what has to come again is counted by the backend as it is here, once.
    fn count<'a>(&self, usage: Option<&Usage<'a>>, edits: &mut Edits<'a>) {
        let Some(usage) = usage else { return };
        let number = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse::<u64>().ok());
        let Some(count) = number(usage.completion_tokens) else {
            return;
        };
        let completion = self.before.completion_tokens + count;
        // The backend counts what it was given of the answer as a part of its prompt.
        let told = number(usage.prompt_tokens);
        let of_prompt = told.map(|told| told.saturating_sub(self.before.completion_tokens));
        let prompt = self.before.prompt_tokens.or(of_prompt);
        for (raw, figure) in [
            (usage.prompt_tokens, prompt),
            (usage.completion_tokens, Some(completion)),
            (usage.total_tokens, prompt.map(|prompt| prompt + completion)),
        ] {
            if let (Some(raw), Some(figure)) = (raw, figure) {
                edits.replace(raw, figure.to_string());
            }
        }
    }

    fn name<'a>(&self, chunk: &Chunk<'a>, edits: &mut Edits<'a>) {
        for (raw, first) in [
            (chunk.id, &self.identity.id),
            (chunk.created, &self.identity.created),
            (chunk.model, &self.identity.model),
        ] {
            if let (Some(raw), Some(first)) = (raw, first) {
                edits.replace(raw, first.clone());
            }
        }
    }
}

/// Whether a chunk has choices, and none of them says anything.
pub(crate) fn says_nothing(data: &str) -> bool {
    let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) else {
        return false;
    };
    let says = |choice: &Choice<'_>| {
        let delta = choice.delta.as_ref();
        let written = delta.map_or(choice.text, |delta| delta.content);
        let more = delta.is_some_and(Delta::has_more);
        more || [written, choice.finish_reason]
            .into_iter()
            .flatten()
            .any(is_filled)
    };
    !chunk.choices.is_empty() && !chunk.choices.iter().any(says)
}

/// The members of a chunk that a seam changes; values keep their place in the text.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    created: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<Usage<'a>>,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_token_ids: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

impl Delta<'_> {
    /// It shows something that is not text.
    fn has_more(&self) -> bool {
        let others = [
            self.tool_calls,
            self.function_call,
            self.reasoning_content,
            self.reasoning,
            self.refusal,
        ];
        others.into_iter().flatten().any(is_filled)
    }
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    total_tokens: Option<&'a RawValue>,
}
