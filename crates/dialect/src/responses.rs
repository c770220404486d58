//! Judging OpenAI Responses: one response, one terminal event, which is its success and its sentinel in one.
//!
//! What a terminal means is said by its type and by the status of the response inside of it, and where these disagree
//! the status is believed: one engine writes `response.completed` for an answer that it gave up. Nothing before the
//! terminal speaks for an answer, and a `[DONE]`, which this API does not have, proves nothing here either. Event types
//! that are not known pass, as new ones are added all the time.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{
    Done, End, Failure, FailureClass, Mark, fault,
    mark::truncated,
    object::object,
    probe::{self, RESPONSES, ends_response, is_blank},
    reasons,
    recurring::Recurring,
    verdict::bounded,
};

/// Reasons of an incomplete response that tell of a failure, not of a limit.
const GIVEN_UP: [&str; 3] = ["abort", "cancelled", "error"];

/// The reason of success, once the terminal was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    reason: Option<String>,
    recurring: Recurring,
}

impl Response {
    pub(crate) fn is_settled(&self) -> bool {
        self.reason.is_some()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.reason.clone().into_iter().collect()
    }
}

pub(crate) fn event(response: &mut Response, event: &Event<'_>) -> Mark {
    let data = event.data();
    if let Some(failure) = fault::announced(event, &data) {
        return failed(failure);
    }
    if is_blank(&data) {
        return Mark::Skip;
    }
    if data.trim_ascii() == "[DONE]" {
        return failed(truncated("the sentinel came without an end of the response").frame(&data));
    }
    // Nearly every event. The name counts where the data does not say its type.
    let name = event.name();
    if !name.is_some_and(ends_response)
        && response.recurring.is_ordinary(&RESPONSES, data.as_bytes())
    {
        return Mark::Event;
    }
    let Some(frame) = object::<Frame<'_>>(&data) else {
        // What is not understood is passed on, unless it still shows that something failed.
        return if probe::has_error(data.as_bytes()) {
            failed(fault::told(&data))
        } else {
            Mark::Event
        };
    };
    if frame.tells_error() {
        return failed(fault::told(&data));
    }
    match frame.kind.as_deref().or(name) {
        Some(kind) if ends_response(kind) => end(response, kind, &frame.response, &data),
        _ => Mark::Event,
    }
}

fn end(response: &mut Response, kind: &str, body: &Body<'_>, data: &str) -> Mark {
    let status = reasons::written(body.status);
    let said = kind.strip_prefix("response.").unwrap_or(kind);
    match (said, status.as_deref().unwrap_or(said)) {
        ("failed", _) | (_, "failed") => failed(fault::told_by(data, body.error)),
        ("cancelled", _) => aborted(said, data),
        ("completed", "completed") => done(response, said),
        (_, "incomplete") | ("incomplete", "completed") => {
            let details = body.details.as_ref();
            let reason = details.and_then(|details| reasons::written(details.reason));
            match reason.as_deref().unwrap_or("incomplete") {
                reason if GIVEN_UP.contains(&reason) => aborted(reason, data),
                reason => done(response, reason),
            }
        }
        (_, status) => aborted(status, data),
    }
}

fn done(response: &mut Response, reason: &str) -> Mark {
    response.reason = Some(bounded(reason));
    Mark::End(Done {
        end: End::Sentinel,
        reasons: response.reasons(),
    })
}

fn aborted(reason: &str, data: &str) -> Mark {
    failed(
        Failure::new(FailureClass::Aborted)
            .frame(data)
            .message(&format!("the response ended as {reason:?}"))
            .code(reason),
    )
}

fn failed(failure: Failure) -> Mark {
    // Nothing to salvage: what a terminal holds of the output was in the events before it.
    Mark::Failed {
        failure,
        salvage: None,
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Body<'a>,
}

/// The members of a response that a judgement needs.
#[derive(Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, rename = "incomplete_details")]
    details: Option<Details<'a>>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

impl<'a> Frame<'a> {
    fn tells_error(&self) -> bool {
        self.kind.as_deref() == Some("error")
            || self
                .error
                .is_some_and(|error| fault::is_truthy(error.get()))
    }
}
