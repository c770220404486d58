//! Judging Anthropic messages: one message of blocks, a stop reason for the whole, `message_stop`.
//!
//! The answer is whole when a `message_delta` gave a success stop reason and every block that was
//! opened is closed; a torn or lost `message_stop` after that changes nothing. A stop reason that is
//! not on [`SUCCESS`] is `aborted`, named by its code. Event types that are not known pass, as the
//! API asks of its clients.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use streamweld_sse::Event;

use crate::{
    Done, End, Failure, FailureClass, Mark, fault,
    mark::{MAX_PARTS, truncated},
    object::object,
    probe::{self, is_blank},
};

const SUCCESS: [&str; 7] = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
];

/// The blocks that are open, and the success reason once there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    open: BTreeSet<u32>,
    /// More were open at once than are told apart, so that they are all closed cannot be known.
    lost_count: bool,
    reason: Option<&'static str>,
}

impl Blocks {
    pub(crate) fn is_settled(&self) -> bool {
        self.reason.is_some() && self.open.is_empty() && !self.lost_count
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.reason
            .iter()
            .map(|&reason| reason.to_owned())
            .collect()
    }

    /// A reason ahead of the end of its blocks was none: it was not shown either.
    pub(crate) fn resume(&mut self) {
        if !self.open.is_empty() {
            self.reason = None;
        }
    }

    fn start(&mut self, index: u32) {
        if self.open.len() < MAX_PARTS {
            self.open.insert(index);
        } else {
            self.lost_count = true;
        }
    }
}

pub(crate) fn event(blocks: &mut Blocks, event: &Event<'_>) -> Mark {
    let data = event.data();
    if let Some(failure) = fault::announced(event, &data) {
        return failed(failure);
    }
    if is_blank(&data) {
        return Mark::Skip;
    }
    let name = event.name();
    // Nearly every event. A delta neither opens nor closes anything.
    if name == Some("content_block_delta") && !probe::mentions_error(data.as_bytes()) {
        return Mark::Event;
    }
    let Some(frame) = object::<Frame<'_>>(&data) else {
        return unreadable(blocks, name, &data);
    };
    if frame.tells_error() {
        return failed(fault::told(&data));
    }
    let kind = frame.kind.as_deref().or(name);
    match kind {
        Some("content_block_start") => {
            if let Some(index) = frame.index {
                blocks.start(index);
            }
            Mark::Event
        }
        Some("content_block_stop") => {
            if let Some(index) = frame.index {
                blocks.open.remove(&index);
            }
            Mark::Event
        }
        Some("message_delta") => message_delta(blocks, frame.stop_reason(), &data),
        Some("message_stop") => stop(blocks, &data),
        _ => Mark::Event,
    }
}

fn message_delta(blocks: &mut Blocks, reason: Option<&str>, data: &str) -> Mark {
    let Some(reason) = reason else {
        return Mark::Event;
    };
    let success = SUCCESS.into_iter().find(|success| *success == reason);
    if success.is_none() {
        return failed(
            Failure::new(FailureClass::Aborted)
                .frame(data)
                .message(&format!("the answer ended with stop reason {reason:?}"))
                .code(reason),
        );
    }
    blocks.reason = success;
    Mark::Hold
}

/// Data that is not the JSON we know: the event's name is all there is to go by.
fn unreadable(blocks: &Blocks, name: Option<&str>, data: &str) -> Mark {
    if probe::has_error(data.as_bytes()) {
        failed(fault::told(data))
    } else if name == Some("message_stop") {
        stop(blocks, data)
    } else {
        Mark::Event
    }
}

fn stop(blocks: &Blocks, data: &str) -> Mark {
    if blocks.is_settled() {
        return Mark::End(Done {
            end: End::Sentinel,
            reasons: blocks.reasons(),
        });
    }
    failed(
        truncated("message_stop came without a stop reason or with a block still open").frame(data),
    )
}

fn failed(failure: Failure) -> Mark {
    // Nothing to salvage: frames that tell of an end carry no output in this dialect.
    Mark::Failed {
        failure,
        salvage: None,
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

impl<'a> Frame<'a> {
    fn tells_error(&self) -> bool {
        self.kind.as_deref() == Some("error")
            || self
                .error
                .is_some_and(|error| fault::is_truthy(error.get()))
    }

    fn stop_reason(&self) -> Option<&str> {
        let reason = self.delta.as_ref()?.stop_reason.as_deref()?;
        (!reason.is_empty()).then_some(reason)
    }
}
