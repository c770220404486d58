//! The hot path against a slow, obvious judge: JSON values looked at one by one. Here of chat, below of others.

mod gemini;
mod responses;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use streamweld_dialect::{BodyEnd, Dialect, End, FailureClass, Judge, Mark, Verdict};
use streamweld_sse::{Decoder, Limits};

/// What an event means, without its particulars.
#[derive(Debug, PartialEq)]
enum Meaning {
    Event,
    Done,
    Failed(FailureClass),
}

/// The rules as one would say them.
#[derive(Default)]
struct SlowJudge {
    reasons: BTreeMap<u64, Option<String>>,
    asked: usize,
}

impl SlowJudge {
    fn event(&mut self, data: &str) -> Meaning {
        if data == "[DONE]" {
            return if self.is_finished() {
                Meaning::Done
            } else {
                Meaning::Failed(FailureClass::Truncated)
            };
        }
        let chunk: Value = serde_json::from_str(data).unwrap();
        if is_error(chunk.get("error")) {
            return Meaning::Failed(FailureClass::UpstreamError);
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            let reason = choice["finish_reason"]
                .as_str()
                .filter(|reason| !reason.is_empty());
            if reason.is_some_and(|reason| !["stop", "length"].contains(&reason)) {
                return Meaning::Failed(FailureClass::Aborted);
            }
            let known = self
                .reasons
                .entry(choice["index"].as_u64().unwrap_or(0))
                .or_default();
            if let Some(reason) = reason {
                *known = Some(reason.to_owned());
            }
        }
        Meaning::Event
    }

    fn is_settled(&self) -> bool {
        self.is_finished() && self.reasons.len() >= self.asked
    }

    fn is_finished(&self) -> bool {
        !self.reasons.is_empty() && self.reasons.values().all(Option::is_some)
    }
}

proptest! {
    #[test]
    fn the_fast_judge_means_what_the_slow_one_means(
        events in prop::collection::vec(event(), 0..12),
        asked in prop_oneof![Just(1_usize), 1_usize..4, Just(usize::MAX)],
        told in 0_usize..12,
    ) {
        let mut slow = SlowJudge::default();
        let mut fast = Judge::new(Dialect::OpenAiChat);
        for (at, data) in events.iter().enumerate() {
            if at == told {
                slow.asked = asked;
                fast.expect(asked);
            }
            let meaning = fast_event(&mut fast, None, data);
            prop_assert_eq!(&meaning, &slow.event(data), "{}", data);
            if meaning != Meaning::Event {
                return Ok(());
            }
            prop_assert_eq!(fast.is_settled(), slow.is_settled(), "{}", data);
        }
        let done = matches!(fast.end(BodyEnd::Clean, None), Verdict::Done(done) if done.end == End::Eof);
        prop_assert_eq!(done, slow.is_settled());
    }
}

fn fast_event(judge: &mut Judge, name: Option<&str>, data: &str) -> Meaning {
    let name = name.map(|name| format!("event: {name}\n"));
    let block = format!("{}data: {data}\n\n", name.unwrap_or_default());
    let mut input = block.as_bytes();
    let mut decoder = Decoder::new(Limits::default());
    match judge.event(&decoder.decode(&mut input).unwrap().unwrap()) {
        Mark::Event | Mark::Hold => Meaning::Event,
        Mark::Skip => panic!("no event here is empty"),
        Mark::End(_) => Meaning::Done,
        Mark::Failed { failure, .. } => Meaning::Failed(failure.class),
    }
}

/// Both ways in which servers write JSON; texts here hold none of the replaced pairs.
fn written(json: impl Strategy<Value = Value>) -> impl Strategy<Value = String> {
    (json, any::<bool>()).prop_map(|(json, spaced)| {
        let json = json.to_string();
        if spaced {
            json.replace("\":", "\" : ").replace(",\"", ", \"")
        } else {
            json
        }
    })
}

fn error() -> impl Strategy<Value = Option<Value>> {
    member(prop_oneof![
        6 => Just(Value::Null),
        1 => Just(Value::from("")),
        1 => Just(serde_json::json!({"message": "m"})),
        1 => Just(Value::from("broken")),
    ])
}

/// Whether this tells an error, as one would say it.
fn is_error(error: Option<&Value>) -> bool {
    let falsy = [Value::Null, Value::from(""), Value::from(false)];
    error.is_some_and(|error| !falsy.contains(error))
}

fn event() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just("[DONE]".to_owned()),
        12 => written(chunk()),
    ]
}

fn chunk() -> impl Strategy<Value = Value> {
    let choices = prop::collection::vec(choice(), 0..3);
    (choices, error()).prop_map(|(choices, error)| {
        let mut chunk = serde_json::json!({"id": "c", "choices": choices});
        if let Some(error) = error {
            chunk["error"] = error;
        }
        chunk
    })
}

fn choice() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "",
        "a",
        "error",
        "index",
        "\"error\"",
        "\\",
        "{\"error\"",
        "finish_reason",
        "日",
    ]);
    let index = member(prop_oneof![6 => Just(0_u32), 2 => Just(1), 1 => Just(10)]);
    let reason = member(prop_oneof![
        8 => Just(Value::Null),
        1 => Just(Value::from("")),
        3 => Just(Value::from("stop")),
        1 => Just(Value::from("length")),
        1 => Just(Value::from("abort")),
    ]);
    (text, index, reason).prop_map(|(text, index, reason)| {
        let mut choice = serde_json::json!({"delta": {"content": text, "error": null}});
        if let Some(index) = index {
            choice["index"] = index.into();
        }
        if let Some(reason) = reason {
            choice["finish_reason"] = reason;
        }
        choice
    })
}

/// A member that is sometimes missing.
fn member<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.8, value)
}
