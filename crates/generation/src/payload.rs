//! What the control entries say, as JSON on one line (protocol.md 7.3).
//!
//! The journal keeps these as opaque bytes. Here is the one place that writes and reads them.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use streamweld_dialect::Failure;
use streamweld_journal::{Kind, Seq, StreamId, Window};

use crate::lifecycle::{End, Loss, Refused};

/// The payload of the entry `open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPayload {
    /// The generation.
    pub stream_id: String,
    /// Always 1.
    pub seq: u64,
    /// When it was journaled.
    pub time: String,
    /// How its events are understood.
    pub dialect: String,
    /// The model that the request named.
    pub model: Option<String>,
    /// The name of the backend.
    pub backend: String,
    /// The request that made it.
    pub request_id: String,
    /// What happens when nobody reads.
    pub orphan_policy: String,
}

/// What is kept beside the log, for whoever finds it when its producer is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// What its `open` entry says.
    pub open: OpenPayload,
    /// What the server wants of the backend's head for readers that attach. Never in an entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub head: HeadFields,
    /// The id of the call that is answered, as JSON (MCP). Never in an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Where in traces its generation is, as a `traceparent`. Never in an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// The id of the call that the generation of this window answers, as JSON.
pub(crate) fn call_of(window: &Window) -> Option<String> {
    let label: Label = serde_json::from_slice(&window.label()).ok()?;
    label.call
}

/// Names and values of a head.
pub type HeadFields = Vec<(String, String)>;

/// The payload of a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalPayload {
    /// The generation.
    pub stream_id: String,
    /// The sequence of the terminal.
    pub seq: u64,
    /// When it was journaled.
    pub time: String,
    /// How many requests were made to backends.
    pub attempts: u32,
    /// The names of the backends that were asked, in order, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// `done`: what showed the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// `done`: the finish reasons, in order of choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<String>>,
    /// `error`: the stable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `error`: one sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `error`: what the backend itself said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamSaid>,
    /// `stopped`: who called stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The last event ID of the backend itself, where it sends any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_last_event_id: Option<String>,
}

/// What a backend said of its failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamSaid {
    /// The frame of failure, at most 8 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// The message in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The code or type in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl End {
    /// The kind of the terminal entry.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Done(_) => Kind::Done,
            Self::Stopped(_) => Kind::Stopped,
            Self::Failed(_)
            | Self::Refused(_)
            | Self::OrphanCancelled
            | Self::TooLong
            | Self::Shutdown
            | Self::Incomplete
            | Self::OwnerLost
            | Self::Internal => Kind::Error,
        }
    }

    /// The stable code of an `error`; none for the other kinds.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Done(_) | Self::Stopped(_) => None,
            Self::Failed(failure) => Some(failure.class.as_str()),
            Self::Refused(_) => Some("migration_refused"),
            Self::OrphanCancelled => Some("orphan_cancelled"),
            Self::TooLong => Some("max_duration"),
            Self::Shutdown => Some("shutdown"),
            Self::Incomplete => Some("journal_incomplete"),
            Self::OwnerLost => Some("owner_lost"),
            Self::Internal => Some("internal_error"),
        }
    }

    /// What people are told of an `error`. Never holds anything of a prompt or an address.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Done(_) | Self::Stopped(_) => None,
            Self::Failed(failure) => Some(failure_message(failure)),
            Self::Refused(refused) => Some(refused_message(refused)),
            Self::OrphanCancelled => {
                Some("cancelled: no reader was left and the orphan policy ended it".to_owned())
            }
            Self::TooLong => Some("ended: it ran for longer than a generation may".to_owned()),
            Self::Shutdown => {
                Some("ended: the proxy shut down before the answer was complete".to_owned())
            }
            Self::Incomplete => Some("the journal lost a part of this answer".to_owned()),
            Self::OwnerLost => Some(format!("ended: {OWNER_LOST}")),
            Self::Internal => Some("ended by a fault of the proxy".to_owned()),
        }
    }

    /// The payload of the terminal entry.
    #[must_use]
    pub fn payload(&self, stream: StreamId, seq: Seq, time: SystemTime) -> TerminalPayload {
        let mut payload = TerminalPayload {
            stream_id: stream.to_string(),
            seq: seq.get(),
            time: timestamp(time),
            attempts: 1,
            code: self.code().map(str::to_owned),
            message: self.message(),
            ..TerminalPayload::default()
        };
        match self {
            Self::Done(done) => {
                payload.end = Some(done.end.as_str().to_owned());
                payload.reasons = Some(done.reasons.clone());
            }
            Self::Failed(Failure {
                frame,
                message,
                code,
                ..
            })
            | Self::Refused(Refused {
                loss:
                    Loss::Attempt(Failure {
                        frame,
                        message,
                        code,
                        ..
                    }),
                ..
            }) => {
                if frame.is_some() || code.is_some() {
                    payload.upstream = Some(UpstreamSaid {
                        frame: frame.clone(),
                        message: message.clone(),
                        code: code.clone(),
                    });
                }
            }
            Self::Stopped(by) => payload.by = Some(by.as_str().to_owned()),
            Self::OrphanCancelled
            | Self::TooLong
            | Self::Shutdown
            | Self::Incomplete
            | Self::OwnerLost
            | Self::Refused(_)
            | Self::Internal => {}
        }
        payload
    }
}

const OWNER_LOST: &str = "the replica that carried this answer is gone";

fn failure_message(failure: &Failure) -> String {
    use streamweld_dialect::FailureClass as Class;
    let what = match failure.class {
        Class::Aborted => "the backend aborted the answer",
        Class::UpstreamError => "the backend reported an error in mid-answer",
        Class::Truncated => "the backend's answer broke off before it was complete",
        Class::Stalled => "the backend fell silent in mid-answer",
        Class::InvalidUtf8 => "the backend sent an event that is not valid UTF-8",
        Class::EventTooLarge => "the backend sent an event over the size limit",
        Class::EncodingError => "the backend's content coding could not be decoded",
    };
    match &failure.message {
        Some(said) => format!("{what}: {said}"),
        None => what.to_owned(),
    }
}

fn refused_message(refused: &Refused) -> String {
    let gates = refused.gates.iter();
    let gates = gates.map(|(gate, saw)| format!("{} ({saw})", gate.as_str()));
    format!(
        "{}; no other backend could go on: {}",
        match &refused.loss {
            Loss::Attempt(failure) => failure_message(failure),
            Loss::Owner => OWNER_LOST.to_owned(),
        },
        gates.collect::<Vec<_>>().join("; ")
    )
}

/// The payload of the entry `migration`: another backend goes on from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MigrationPayload {
    /// The generation.
    pub stream_id: String,
    /// The sequence of the entry.
    pub seq: u64,
    /// When it was journaled.
    pub time: String,
    /// The name of the backend that was left.
    pub from: String,
    /// The name of the one that goes on.
    pub to: String,
    /// Why.
    pub trigger: String,
    /// How it was told where the answer was.
    pub method: String,
    /// Which attempt it is.
    pub attempt: u32,
}

/// The payload of the entry `warning`: a gate refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WarningPayload {
    /// The generation.
    pub stream_id: String,
    /// The sequence of the entry.
    pub seq: u64,
    /// When it was journaled.
    pub time: String,
    /// Which gate.
    pub gate: String,
    /// What it saw.
    pub message: String,
}

/// The lines of a control entry: its name and its payload as one line of JSON.
pub(crate) fn control_lines(kind: Kind, payload: &impl Serialize) -> Vec<u8> {
    let mut lines = Vec::with_capacity(256);
    lines.extend_from_slice(b"event: streamweld.");
    lines.extend_from_slice(kind.as_str().as_bytes());
    lines.extend_from_slice(b"\ndata: ");
    serde_json::to_writer(&mut lines, payload)
        .expect("plain structs of strings and numbers serialise");
    lines.push(b'\n');
    lines
}

/// A moment in the one form that all times have: UTC, milliseconds, `Z`.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use streamweld_dialect::{Done, End as DoneBy, FailureClass};

    use super::*;
    use crate::lifecycle::By;

    fn payload(end: &End) -> serde_json::Value {
        let id = StreamId::generate(UNIX_EPOCH);
        let mut value = serde_json::to_value(end.payload(
            id,
            Seq::new(7),
            UNIX_EPOCH + Duration::from_millis(1_500),
        ))
        .expect("serialises");
        assert_eq!(value["stream_id"], id.to_string());
        value
            .as_object_mut()
            .expect("an object")
            .remove("stream_id");
        value
    }

    #[test]
    fn done_tells_its_end_and_reasons() {
        let end = End::Done(Done {
            end: DoneBy::Sentinel,
            reasons: vec!["stop".to_owned()],
        });
        assert_eq!(
            payload(&end),
            serde_json::json!({"seq":7,"time":"1970-01-01T00:00:01.500Z","attempts":1,"end":"sentinel","reasons":["stop"]})
        );
    }

    #[test]
    fn a_failure_tells_its_class_and_what_the_backend_said() {
        let end = End::Failed(Failure {
            class: FailureClass::UpstreamError,
            frame: Some("{\"error\":{}}".to_owned()),
            message: Some("overloaded".to_owned()),
            code: Some("503".to_owned()),
        });
        let value = payload(&end);
        assert_eq!(value["code"], "upstream_error");
        assert_eq!(value["upstream"]["code"], "503");
        assert!(
            value["message"]
                .as_str()
                .expect("text")
                .ends_with("overloaded")
        );
    }

    #[test]
    fn stopped_tells_by_whom() {
        assert_eq!(payload(&End::Stopped(By::Admin))["by"], "admin");
    }

    #[test]
    fn a_control_entry_is_one_line_of_json() {
        let end = End::Failed(Failure {
            class: FailureClass::UpstreamError,
            frame: Some("a\nb\r".to_owned()),
            message: None,
            code: None,
        });
        let lines = control_lines(
            Kind::Error,
            &end.payload(StreamId::generate(UNIX_EPOCH), Seq::new(2), UNIX_EPOCH),
        );
        let text = String::from_utf8(lines).expect("utf-8");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.starts_with("event: streamweld.error\ndata: {"),
            "{text}"
        );
    }
}
