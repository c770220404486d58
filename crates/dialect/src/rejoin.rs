//! One answer across a seam: the events of a continuation, written as the rest of the answer that they continue.
//!
//! The reader began with one answer and must not see that there were two requests: the id, time and model are those of
//! the first, there is no second beginning, what was asked for again at the seam is not shown twice, and the counts add
//! up. Everything else passes as upstream wrote it, to the byte.

mod chunks;
mod messages;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

pub(crate) use chunks::says_nothing;

use self::chunks::Chunks;
use self::messages::Messages;
use crate::{Dialect, Transcript};

/// What the first part of an answer fixed for all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `id`, `created` and `model` as JSON values, where the first part had them.
    pub id: Option<String>,
    /// See `id`.
    pub created: Option<String>,
    /// See `id`.
    pub model: Option<String>,
}

/// What was counted before the seam.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Tokens of the prompt, as the first backend counted.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer that the backend was given: what it counts is behind them.
    pub completion_tokens: u64,
}

/// The events of one continuation, in their order.
#[derive(Clone, Debug)]
pub struct Rejoin(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Of chat and completions.
    Chunks(Chunks),
    /// Of Anthropic.
    Messages(Box<Messages>),
}

/// What an event of a continuation is to the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejoined {
    /// The wire lines of it, without an id line and without the blank line.
    Lines(Vec<u8>),
    /// Nothing: the reader has it already.
    Nothing,
    /// The seam does not hold: it is another text, or it ended within what had to come again.
    Broken,
}

impl Identity {
    /// Of the first chunk that has all of it, or of as much as there is.
    #[must_use]
    pub fn of(first: &str) -> Self {
        let Ok(chunk) = serde_json::from_str::<Named<'_>>(first) else {
            return Self::default();
        };
        let text = |value: Option<&RawValue>| value.map(|value| value.get().to_owned());
        Self {
            id: text(chunk.id),
            created: text(chunk.created),
            model: text(chunk.model),
        }
    }

    fn shown(answer: &Transcript) -> Self {
        let json = |text: &str| serde_json::to_string(text).expect("text is JSON");
        Self {
            id: answer.id().map(json),
            created: answer.created().map(|created| created.to_string()),
            model: answer.model().map(json),
        }
    }
}

impl Rejoin {
    /// Behind the chunks of an answer of which `overlap` has to come again.
    #[must_use]
    pub fn new(identity: Identity, before: Before, overlap: &str) -> Self {
        Self(Form::Chunks(Chunks::new(identity, before, overlap)))
    }

    /// Behind what was shown of an answer, of which `overlap` has to come again.
    #[must_use]
    pub fn behind(shown: &Transcript, before: Before, overlap: &str) -> Self {
        match shown.dialect() {
            Dialect::AnthropicMessages => {
                let messages = Messages::new(shown.message(), before, overlap);
                Self(Form::Messages(Box::new(messages)))
            }
            _ => Self::new(Identity::shown(shown), before, overlap),
        }
    }

    /// Ids that were told already come again, because a continuation cannot begin within a character. Where the app has
    /// `seen` them, others in their place are another answer. Messages have none.
    #[must_use]
    pub fn with_again(mut self, ids: &[u32], seen: bool) -> Self {
        if let Form::Chunks(chunks) = &mut self.0 {
            chunks.expect_ids(ids, seen);
        }
        self
    }

    /// Whether everything that had to come again has come.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        match &self.0 {
            Form::Chunks(chunks) => chunks.is_joined(),
            Form::Messages(messages) => messages.is_joined(),
        }
    }

    /// The next event. One that is none of this API passes as it is.
    pub fn event(&mut self, event: &Event<'_>) -> Rejoined {
        match &mut self.0 {
            Form::Chunks(chunks) => chunks.event(event),
            Form::Messages(messages) => messages.event(event),
        }
    }
}

/// What has to come before anything is new.
#[derive(Clone, Debug)]
struct Overlap(String);

impl Overlap {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// What of a text is new; `None` if it is another one than what had to come.
    fn swallow<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        if let Some(new) = text.strip_prefix(self.0.as_str()) {
            self.0.clear();
            return Some(new);
        }
        self.0 = self.0.strip_prefix(text)?.to_owned();
        Some("")
    }
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    created: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
