//! Judging Gemini's `streamGenerateContent`: candidates, each with a finish reason of its own, and no sentinel at all.
//!
//! So the one thing that makes an answer whole is a body that ends properly right behind the reasons. A finish reason
//! counts as long as nothing more of its candidate is shown: translators of other APIs write `STOP` on early events.
//! A prompt that is refused has no candidates but a block reason, which takes their place.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{
    Failure, FailureClass, Mark,
    edit::{is_filled, without_failure},
    fault,
    mark::truncated,
    object::object,
    probe::{self, GEMINI, is_blank},
    reasons::{self, Reasons},
    recurring::Recurring,
    verdict::bounded,
};

/// The finish reasons that the API knows. Refusals and malformed calls are ends of its own too: complete, and told to
/// the client by the event itself.
const KNOWN: [&str; 22] = [
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "MODEL_ARMOR",
    "CONTINUATION",
    "NO_IMAGE",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_LANGUAGE",
    "IMAGE_OTHER",
];

/// The candidates that were started, with the reason of the last event of each, and why the prompt was refused.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    reasons: Reasons,
    /// Candidate 0 goes on, so an ordinary event, which can tell of no other, changes nothing.
    first_open: bool,
    blocked: Option<String>,
    recurring: Recurring,
}

impl Candidates {
    /// Everything that was started has its reason, or the prompt was refused. With a proper end of the body behind it
    /// the answer is whole.
    pub(crate) fn is_finished(&self) -> bool {
        self.reasons.is_complete() || (self.reasons.len() == 0 && self.blocked.is_some())
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let blocked = self.blocked.iter().filter(|_| self.reasons.len() == 0);
        self.reasons
            .list()
            .into_iter()
            .chain(blocked.cloned())
            .collect()
    }
}

pub(crate) fn event(candidates: &mut Candidates, event: &Event<'_>) -> Mark {
    let data = event.data();
    if let Some(failure) = fault::announced(event, &data) {
        return failed(failure, None);
    }
    if is_blank(&data) {
        return fault::bare(event.raw()).map_or(Mark::Skip, |failure| failed(failure, None));
    }
    if data.trim_ascii() == "[DONE]" {
        return sentinel(candidates, &data);
    }
    if candidates.first_open && candidates.recurring.is_ordinary(&GEMINI, data.as_bytes()) {
        return Mark::Event;
    }
    let Some(chunk) = object::<Chunk<'_>>(&data) else {
        // What is not understood is passed on, unless it still shows that something failed.
        return if probe::has_error(data.as_bytes()) {
            failed(fault::told(&data), None)
        } else {
            Mark::Event
        };
    };
    read(candidates, &chunk, event, &data)
}

fn read(candidates: &mut Candidates, chunk: &Chunk<'_>, event: &Event<'_>, data: &str) -> Mark {
    if chunk
        .error
        .is_some_and(|error| fault::is_truthy(error.get()))
    {
        return failed(fault::told(data), chunk.salvage(event, data));
    }
    if let Some(reason) = chunk.candidates().find_map(Candidate::bad_reason) {
        let failure = Failure::new(FailureClass::Aborted)
            .frame(data)
            .message(&format!("the answer ended with finish reason {reason:?}"))
            .code(&reason);
        return failed(failure, chunk.salvage(event, data));
    }
    for candidate in chunk.candidates() {
        let reason = candidate.reason().and_then(|reason| known(&reason));
        candidates.reasons.set(candidate.index.unwrap_or(0), reason);
    }
    candidates.first_open = candidates.reasons.is_open(0);
    let feedback = chunk.feedback.as_ref();
    if let Some(reason) = feedback.and_then(|feedback| given(feedback.block_reason)) {
        candidates.blocked = Some(bounded(&reason));
    }
    Mark::Event
}

/// This API has none, and one from a translator proves nothing.
fn sentinel(candidates: &Candidates, data: &str) -> Mark {
    if candidates.is_finished() {
        return Mark::Skip;
    }
    failed(
        truncated("a sentinel came before every candidate had finished").frame(data),
        None,
    )
}

fn failed(failure: Failure, salvage: Option<Vec<u8>>) -> Mark {
    Mark::Failed { failure, salvage }
}

fn known(reason: &str) -> Option<&'static str> {
    KNOWN.into_iter().find(|known| *known == reason)
}

/// A reason, if there is one: the first value of the API's lists stands for none.
fn given(reason: Option<&RawValue>) -> Option<Cow<'_, str>> {
    reasons::written(reason).filter(|reason| !reason.ends_with("_UNSPECIFIED"))
}

/// The members of an event that a judgement needs; values keep their place in the text.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, rename = "promptFeedback")]
    feedback: Option<Feedback<'a>>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    index: Option<u32>,
    #[serde(borrow, rename = "finishReason")]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Feedback<'a> {
    #[serde(borrow, rename = "blockReason")]
    block_reason: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    fn candidates(&self) -> impl Iterator<Item = &Candidate<'a>> {
        self.candidates.iter().flatten()
    }

    /// The event without its failure, if it carries output.
    fn salvage(&self, event: &Event<'_>, data: &'a str) -> Option<Vec<u8>> {
        if !self.candidates().any(Candidate::has_output) {
            return None;
        }
        let bad = self
            .candidates()
            .filter(|candidate| candidate.bad_reason().is_some());
        let reasons = bad.filter_map(|candidate| candidate.finish_reason);
        Some(without_failure(event, data, self.error, reasons))
    }
}

impl<'a> Candidate<'a> {
    fn reason(&self) -> Option<Cow<'a, str>> {
        given(self.finish_reason)
    }

    fn bad_reason(&self) -> Option<Cow<'a, str>> {
        self.reason().filter(|reason| known(reason).is_none())
    }

    fn has_output(&self) -> bool {
        let parts = self.content.iter().flat_map(|content| &content.parts);
        parts
            .flatten()
            .any(|part| is_filled(part) && part.get() != r#"{"text":""}"#)
    }
}
