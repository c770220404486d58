//! The same of Gemini.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use streamweld_dialect::{BodyEnd, Dialect, End, FailureClass, Judge, Verdict};

use super::{Meaning, error, fast_event, is_error, member, written};

/// The rules as one would say them.
#[derive(Default)]
struct SlowJudge {
    reasons: BTreeMap<u64, Option<String>>,
    blocked: bool,
}

impl SlowJudge {
    fn event(&mut self, data: &str) -> Meaning {
        let chunk: Value = serde_json::from_str(data).unwrap();
        if is_error(chunk.get("error")) {
            return Meaning::Failed(FailureClass::UpstreamError);
        }
        let given = |reason: &Value| {
            let reason = reason.as_str().filter(|reason| !reason.is_empty())?;
            (reason != "FINISH_REASON_UNSPECIFIED").then(|| reason.to_owned())
        };
        for candidate in chunk["candidates"].as_array().into_iter().flatten() {
            let reason = given(&candidate["finishReason"]);
            if reason.as_deref() == Some("abort") {
                return Meaning::Failed(FailureClass::Aborted);
            }
            let index = candidate["index"].as_u64().unwrap_or(0);
            self.reasons.insert(index, reason);
        }
        self.blocked |= given(&chunk["promptFeedback"]["blockReason"]).is_some();
        Meaning::Event
    }

    fn is_whole(&self) -> bool {
        if self.reasons.is_empty() {
            return self.blocked;
        }
        self.reasons.values().all(Option::is_some)
    }
}

proptest! {
    #[test]
    fn the_fast_judge_means_what_the_slow_one_means_of_gemini(
        events in prop::collection::vec(written(chunk()), 0..12),
    ) {
        let mut slow = SlowJudge::default();
        let mut fast = Judge::new(Dialect::Gemini);
        for data in &events {
            let meaning = fast_event(&mut fast, None, data);
            prop_assert_eq!(&meaning, &slow.event(data), "{}", data);
            prop_assert!(!fast.is_settled());
            if meaning != Meaning::Event {
                return Ok(());
            }
            let end = fast.end(BodyEnd::Clean, None);
            let done = matches!(&end, Verdict::Done(done) if done.end == End::Eof);
            prop_assert_eq!(done, slow.is_whole(), "{}", data);
            for how in [BodyEnd::Cut, BodyEnd::Silence] {
                let failed = matches!(fast.end(how, None), Verdict::Failed(_));
                prop_assert!(failed, "only a proper end is a success");
            }
        }
    }
}

fn chunk() -> impl Strategy<Value = Value> {
    let candidates = prop::collection::vec(candidate(), 0..3);
    let block = member(prop::sample::select(vec![Value::Null, "SAFETY".into()]));
    (candidates, block, error()).prop_map(|(candidates, block, error)| {
        let mut chunk = json!({"candidates": candidates, "usageMetadata": {"promptTokenCount": 1}});
        if let Some(block) = block {
            chunk["promptFeedback"] = json!({"blockReason": block});
        }
        if let Some(error) = error {
            chunk["error"] = error;
        }
        chunk
    })
}

fn candidate() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "",
        "a",
        "error",
        "index",
        "finishReason",
        "\"finishReason\"",
        "\\",
        "{\"error\"",
        "日",
    ]);
    let index = member(prop_oneof![8 => Just(0_u32), 1 => Just(1), 1 => Just(10)]);
    let reason = member(prop_oneof![
        6 => Just(Value::Null),
        1 => Just(Value::from("")),
        1 => Just(Value::from("FINISH_REASON_UNSPECIFIED")),
        4 => Just(Value::from("STOP")),
        1 => Just(Value::from("SAFETY")),
        1 => Just(Value::from("abort")),
    ]);
    (text, index, reason).prop_map(|(text, index, reason)| {
        let mut candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}});
        if let Some(index) = index {
            candidate["index"] = index.into();
        }
        if let Some(reason) = reason {
            candidate["finishReason"] = reason;
        }
        candidate
    })
}
