//! How a streamed answer ends.
//!
//! In JSON an end is written long, `{"rst_after": {"events": 5, "bytes": 10}}`, or short,
//! `"rst_after:5+10"`; the short form also serves query parameters and command lines.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Value, json};

/// A place in the stream: after `events` whole events, and then `bytes` bytes into the next one.
///
/// Every event of the dialect counts, also those before the first text (the role chunk, Anthropic's
/// `message_start`); what a [`Mark`](crate::Mark) adds does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Point {
    /// How many whole events come before.
    pub events: usize,
    /// How many bytes of the next event come before.
    pub bytes: usize,
}

impl From<usize> for Point {
    fn from(events: usize) -> Self {
        Self { events, bytes: 0 }
    }
}

impl From<(usize, usize)> for Point {
    fn from((events, bytes): (usize, usize)) -> Self {
        Self { events, bytes }
    }
}

/// An error event in the stream, in the words of the dialect, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ErrorEvent {
    /// After how many events it comes.
    pub events: usize,
    /// What it says.
    pub message: String,
    /// Its `type` member. Default: what real servers of the dialect say.
    pub kind: Option<String>,
    /// Its `code` member in the OpenAI dialects. Default 500.
    pub code: u16,
    /// Whether the dialect's success sentinel follows all the same, as many engines do it.
    pub sentinel: bool,
}

impl Default for ErrorEvent {
    fn default() -> Self {
        Self {
            events: 0,
            message: "the mock engine failed".to_owned(),
            kind: None,
            code: 500,
            sentinel: false,
        }
    }
}

/// A finish with the reason `abort`, as engines write it when they are shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Abort {
    /// After how many events it comes.
    pub events: usize,
    /// Whether the success sentinel follows.
    pub sentinel: bool,
}

/// How the answer ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum End {
    /// Finish reason, usage where asked for, sentinel, clean end of the body.
    #[default]
    Done,
    /// As `Done` without the sentinel.
    NoSentinel,
    /// All text and then a clean end: no finish reason, no usage, no sentinel.
    NoFinish,
    /// All text and then the sentinel, without a finish reason.
    SentinelOnly,
    /// As `NoSentinel`, but the connection stays open and silent.
    SilenceAfterFinish,
    /// As `Done`, but the last so many bytes of the last event are missing. With 1 only its blank
    /// line is torn off.
    TornLast(usize),
    /// The connection is reset (RST) at this point. What the peer has not yet taken from this
    /// machine's send buffer is lost with it; use a gate before it where that matters.
    RstAfter(Point),
    /// The connection is closed (FIN) at this point, without the last chunk.
    FinAfter(Point),
    /// The body ends as if it were whole at this point.
    CleanAfter(Point),
    /// An error event, then a clean end.
    ErrorAfter(ErrorEvent),
    /// A finish with reason `abort`, then a clean end.
    AbortAfter(Abort),
}

/// The short form of an end was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown end {0:?}; an end is one of {SHORT}")]
pub struct UnknownEnd(String);

/// Every short form, with the name of what a number in it counts.
const SHORT: &str = "done, no_sentinel, no_finish, sentinel_only, silence_after_finish, torn_last:BYTES, \
     rst_after:EVENTS, fin_after:EVENTS, clean_after:EVENTS, error_after:EVENTS, abort_after:EVENTS";

impl FromStr for End {
    type Err = UnknownEnd;

    /// `done`, `no_finish`, …, `torn_last:6`, `rst_after:5`, `fin_after:5+10`, `error_after:5`,
    /// `error_after:5+sentinel`, `abort_after:5+sentinel`.
    fn from_str(text: &str) -> Result<Self, UnknownEnd> {
        let unknown = || UnknownEnd(text.to_owned());
        let Some((word, place)) = text.split_once(':') else {
            return Self::deserialize(Value::from(text)).map_err(|_| unknown());
        };
        let (events, more) = match place.split_once('+') {
            Some((events, more)) => (events, Some(more)),
            None => (place, None),
        };
        let events: usize = events.parse().map_err(|_| unknown())?;
        let place = match (word, more) {
            ("torn_last", None) => json!(events),
            (_, None) => json!({ "events": events }),
            (_, Some("sentinel")) => json!({ "events": events, "sentinel": true }),
            (_, Some(bytes)) => {
                let bytes: usize = bytes.parse().map_err(|_| unknown())?;
                json!({ "events": events, "bytes": bytes })
            }
        };
        Self::deserialize(json!({ word: place })).map_err(|_| unknown())
    }
}

// The derive with `remote` makes the long form an inherent function; these two add the short form.
impl Serialize for End {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match <Value as Deserialize>::deserialize(from)? {
            Value::String(short) => short.parse().map_err(D::Error::custom),
            long => Self::deserialize(long).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: End) {
        let end: End = serde_json::from_str(json).unwrap();
        assert_eq!(end, expected);
        let again = serde_json::to_string(&end).unwrap();
        assert_eq!(serde_json::from_str::<End>(&again).unwrap(), expected);
    }

    #[test]
    fn short_and_long_forms_mean_the_same() {
        check(r#""done""#, End::Done);
        check(r#""no_finish""#, End::NoFinish);
        check(r#""torn_last:6""#, End::TornLast(6));
        check(r#""rst_after:5""#, End::RstAfter(5.into()));
        check(r#""fin_after:5+10""#, End::FinAfter((5, 10).into()));
        check(
            r#"{"fin_after":{"events":5,"bytes":10}}"#,
            End::FinAfter((5, 10).into()),
        );
        let error = ErrorEvent {
            events: 3,
            sentinel: true,
            ..ErrorEvent::default()
        };
        check(r#""error_after:3+sentinel""#, End::ErrorAfter(error));
        check(
            r#"{"abort_after":{"events":2}}"#,
            End::AbortAfter(Abort {
                events: 2,
                sentinel: false,
            }),
        );
    }

    #[test]
    fn an_unknown_end_is_told_every_one_that_there_is() {
        let shown: Vec<&str> = SHORT.split(", ").collect();
        for short in &shown {
            let short = short.replace("BYTES", "1").replace("EVENTS", "1");
            assert!(short.parse::<End>().is_ok(), "{short}");
        }
        // The long form comes from the derive, which knows all names.
        let error = serde_json::from_str::<End>(r#"{"?":1}"#)
            .unwrap_err()
            .to_string();
        let all: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        let names = shown.iter().map(|short| short.split(':').next().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), all);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "dne",
            "rst_after",
            "rst_after:x",
            "rst_after:1+y",
            "done:5",
        ] {
            assert!(text.parse::<End>().is_err(), "{text:?}");
        }
    }
}
