//! The events of an Anthropic message behind a seam.
//!
//! A message has one beginning, and each of its blocks has one. The reader has both, and reads on in the block that is
//! open; so neither is shown again, and a block of another kind in its place would be read wrongly. Pings ahead of
//! anything new belong to that beginning. The counts at the end are of the whole message.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use super::{Before, Overlap, Rejoined};
use crate::edit::{Edits, wire_lines};
use crate::transcript::{Block, Input, Message};

/// See [`Rejoin`](super::Rejoin).
#[derive(Clone, Debug)]
pub(super) struct Messages {
    /// The message was begun.
    begun: bool,
    /// The block in which the reader stands, until it has begun again.
    open: Option<Block>,
    input: Input,
    /// Tokens of the answer that the backend was given.
    given: u64,
    overlap: Overlap,
    /// Something new was shown.
    goes_on: bool,
}

/// What an event is, before it is written.
enum Seen {
    /// New.
    New,
    /// The reader has it.
    Known,
    /// Of another answer.
    Other,
}

impl Messages {
    pub(super) fn new(shown: &Message, before: Before, overlap: &str) -> Self {
        Self {
            begun: shown.begun(),
            open: shown.open().cloned(),
            input: shown.input(),
            given: before.completion_tokens,
            overlap: Overlap(overlap.to_owned()),
            goes_on: false,
        }
    }

    pub(super) fn is_joined(&self) -> bool {
        self.overlap.is_over()
    }

    /// The next event. One that is not understood passes as it is, once nothing has to come again any more.
    pub(super) fn event(&mut self, event: &Event<'_>) -> Rejoined {
        let data = event.data();
        let mut edits = Edits::new(&data);
        let seen = match serde_json::from_str::<Frame<'_>>(&data) {
            Ok(frame) => self.frame(event.name(), &frame, &mut edits),
            Err(_) => self.unless_it_has_to_come(),
        };
        match seen {
            Seen::New => {
                self.goes_on = true;
                Rejoined::Lines(wire_lines(event, &edits.apply()))
            }
            Seen::Known => Rejoined::Nothing,
            Seen::Other => Rejoined::Broken,
        }
    }

    fn frame<'a>(&mut self, name: Option<&str>, frame: &Frame<'a>, edits: &mut Edits<'a>) -> Seen {
        match frame.kind.as_deref().or(name) {
            Some("message_start") if self.begun => Seen::Known,
            Some("ping") if !self.goes_on => Seen::Known,
            Some("content_block_start") => self.start(frame),
            Some("content_block_delta") => self.delta(frame, edits),
            Some("message_delta") => {
                if let Some(usage) = &frame.usage {
                    self.count(usage, edits);
                }
                self.unless_it_has_to_come()
            }
            _ => self.unless_it_has_to_come(),
        }
    }

    /// What comes behind the overlap is new, and nothing else may come before it.
    fn unless_it_has_to_come(&self) -> Seen {
        if self.is_joined() {
            Seen::New
        } else {
            Seen::Other
        }
    }

    fn start(&mut self, frame: &Frame<'_>) -> Seen {
        let Some(open) = self.open.take() else {
            return self.unless_it_has_to_come();
        };
        let block = frame.content_block.as_ref();
        let kind = block.and_then(|block| block.kind.as_deref());
        // Text in it would have to be shown without a beginning; nobody was seen to write any.
        let is_empty =
            block.is_some_and(|block| block.text.as_deref().unwrap_or_default().is_empty());
        if frame.index == Some(open.index) && kind == Some(&*open.kind) && is_empty {
            Seen::Known
        } else {
            Seen::Other
        }
    }

    fn delta<'a>(&mut self, frame: &Frame<'a>, edits: &mut Edits<'a>) -> Seen {
        let delta = frame.delta.as_ref();
        let text = delta.filter(|delta| delta.kind.as_deref() == Some("text_delta"));
        let Some(raw) = text.and_then(|delta| delta.text) else {
            return self.unless_it_has_to_come();
        };
        let Ok(text) = serde_json::from_str::<String>(raw.get()) else {
            return Seen::Other;
        };
        if text.is_empty() && !self.goes_on {
            return Seen::Known;
        }
        let Some(new) = self.overlap.swallow(&text) else {
            return Seen::Other;
        };
        if new.len() == text.len() {
            return Seen::New;
        }
        if new.is_empty() {
            return Seen::Known;
        }
        edits.replace(raw, serde_json::to_string(new).expect("text is JSON"));
        Seen::New
    }

    /// Adds up: what has to come again is counted by the backend as it is here, once; and what it was given of the answer
    /// it counts as a part of its prompt.
    fn count<'a>(&self, usage: &Usage<'a>, edits: &mut Edits<'a>) {
        let number = |raw: &RawValue| raw.get().parse::<u64>().ok();
        if let Some((raw, count)) = usage
            .output_tokens
            .and_then(|raw| Some((raw, number(raw)?)))
        {
            edits.replace(raw, (self.given + count).to_string());
        }
        let Some(input) = self.input.tokens else {
            if let Some((raw, count)) = usage.input_tokens.and_then(|raw| Some((raw, number(raw)?)))
            {
                edits.replace(raw, count.saturating_sub(self.given).to_string());
            }
            return;
        };
        for (raw, first) in [
            (usage.input_tokens, input),
            (usage.cache_creation_input_tokens, self.input.to_cache),
            (usage.cache_read_input_tokens, self.input.from_cache),
        ] {
            if let Some(raw) = raw.filter(|raw| number(raw).is_some()) {
                edits.replace(raw, first.to_string());
            }
        }
    }
}

/// The members of an event that a seam looks at; values that it changes keep their place in the text.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    index: Option<u32>,
    #[serde(borrow)]
    content_block: Option<Begun<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    usage: Option<Usage<'a>>,
}

#[derive(Deserialize)]
struct Begun<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_creation_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_read_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
