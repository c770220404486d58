//! Judging OpenAI chat and legacy completions: choices, each with a finish reason of its own, and
//! `[DONE]`, which proves nothing: engines write it after an abort and after an error too.
//!
//! A finish reason is a success only if it is on [`SUCCESS`]. Any other is `aborted`, with the
//! reason as its code: the known ones (`abort`, `cancelled`, `error`) and one never heard of alike,
//! because a short answer taken for a whole one is worse than a whole one called short. An empty
//! reason is none: one engine writes it on every chunk.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{
    Done, End, Failure, FailureClass, Mark,
    edit::{is_filled, without_failure},
    fault,
    mark::truncated,
    object::object,
    probe::{self, OPENAI, is_blank},
    reasons::{self, Reasons},
    recurring::Recurring,
};

/// The finish reasons of a whole answer: those of the API, `repetition` (vLLM, its own stop), and
/// `stop_sequence` and `eos_token` (TGI).
const SUCCESS: [&str; 8] = [
    "stop",
    "length",
    "tool_calls",
    "content_filter",
    "function_call",
    "repetition",
    "stop_sequence",
    "eos_token",
];

/// The choices that were started, and the success reason of each that has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choices {
    reasons: Reasons,
    /// Choice 0 has been seen, so an ordinary chunk, which can tell of no other, changes nothing.
    first_started: bool,
    recurring: Recurring,
    /// How many were asked for, as far as is known.
    asked: usize,
}

impl Choices {
    pub(crate) fn expect(&mut self, choices: usize) {
        self.asked = choices;
    }

    /// Everything that was started has its reason, and nothing that was asked for is missing.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_finished() && self.reasons.len() >= self.asked
    }

    /// Everything that was started has its reason. With the sentinel that is enough: some engines
    /// ignore how many were asked for.
    fn is_finished(&self) -> bool {
        self.reasons.is_complete()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.reasons.list()
    }

    /// A choice was shown, perhaps with a success reason. One that has finished stays finished: some
    /// engines send extras for it afterwards.
    fn show(&mut self, index: u32, reason: Option<&'static str>) {
        self.first_started |= index == 0;
        self.reasons.show(index, reason);
    }
}

pub(crate) fn event(choices: &mut Choices, event: &Event<'_>) -> Mark {
    let data = event.data();
    if let Some(failure) = fault::announced(event, &data) {
        return Mark::Failed {
            failure,
            salvage: None,
        };
    }
    if is_blank(&data) {
        return Mark::Skip;
    }
    if data.trim_ascii() == "[DONE]" {
        return sentinel(choices, &data);
    }
    if choices.first_started && choices.recurring.is_ordinary(&OPENAI, data.as_bytes()) {
        return Mark::Event;
    }
    suspicious(choices, event, &data)
}

fn sentinel(choices: &Choices, data: &str) -> Mark {
    if choices.is_finished() {
        return Mark::End(Done {
            end: End::Sentinel,
            reasons: choices.reasons(),
        });
    }
    Mark::Failed {
        failure: truncated("the sentinel came before every choice had finished").frame(data),
        salvage: None,
    }
}

fn suspicious(choices: &mut Choices, event: &Event<'_>, data: &str) -> Mark {
    let Some(chunk) = object::<Chunk<'_>>(data) else {
        // What is not understood is passed on, unless it still shows that something failed.
        return if probe::has_error(data.as_bytes()) {
            Mark::Failed {
                failure: fault::told(data),
                salvage: None,
            }
        } else {
            Mark::Event
        };
    };
    if chunk.tells_error() {
        return Mark::Failed {
            failure: fault::told(data),
            salvage: chunk.salvage(event, data),
        };
    }
    if let Some(reason) = chunk.choices().find_map(Choice::bad_reason) {
        return Mark::Failed {
            failure: Failure::new(FailureClass::Aborted)
                .frame(data)
                .message(&format!("the answer ended with finish reason {reason:?}"))
                .code(&reason),
            salvage: chunk.salvage(event, data),
        };
    }
    for choice in chunk.choices() {
        let reason = choice.reason().and_then(|reason| success(&reason));
        choices.show(choice.index.unwrap_or(0), reason);
    }
    Mark::Event
}

fn success(reason: &str) -> Option<&'static str> {
    SUCCESS.into_iter().find(|success| *success == reason)
}

/// The members of a chunk that a judgement needs; values keep their place in the text.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        self.choices.iter().flatten()
    }

    fn tells_error(&self) -> bool {
        let is_error = |value: &&RawValue| value.get() == "\"error\"";
        self.error
            .is_some_and(|error| fault::is_truthy(error.get()))
            || self.object.as_ref().is_some_and(is_error)
            || self.kind.as_ref().is_some_and(is_error)
    }

    /// The event without its failure, if it carries output: engines flush what they held back for
    /// stop strings into the very chunk that says `abort`.
    fn salvage(&self, event: &Event<'_>, data: &'a str) -> Option<Vec<u8>> {
        if !self.choices().any(Choice::has_output) {
            return None;
        }
        let bad = self
            .choices()
            .filter(|choice| choice.bad_reason().is_some());
        let reasons = bad.filter_map(|choice| choice.finish_reason);
        Some(without_failure(event, data, self.error, reasons))
    }
}

impl<'a> Choice<'a> {
    fn reason(&self) -> Option<Cow<'a, str>> {
        reasons::written(self.finish_reason)
    }

    fn bad_reason(&self) -> Option<Cow<'a, str>> {
        self.reason().filter(|reason| success(reason).is_none())
    }

    /// Whether there is generated output in it: text, token ids, or anything in a delta but a role.
    fn has_output(&self) -> bool {
        self.text.is_some_and(is_filled)
            || self.token_ids.is_some_and(is_filled)
            || self.delta.is_some_and(|delta| {
                serde_json::from_str::<BTreeMap<String, &RawValue>>(delta.get()).is_ok_and(
                    |members| {
                        members
                            .iter()
                            .any(|(name, value)| name != "role" && is_filled(value))
                    },
                )
            })
    }
}
