//! The same of Responses.

use proptest::prelude::*;
use serde_json::{Value, json};
use streamweld_dialect::{BodyEnd, Dialect, FailureClass, Judge, Verdict};

use super::{Meaning, error, fast_event, is_error, member, written};

/// The rules as one would say them.
fn slow_event(name: Option<&str>, data: &str) -> Meaning {
    use Meaning::{Done, Event, Failed};

    if name == Some("error") {
        return Failed(FailureClass::UpstreamError);
    }
    if data == "[DONE]" {
        return Failed(FailureClass::Truncated);
    }
    let frame: Value = serde_json::from_str(data).unwrap();
    let kind = frame["type"].as_str().or(name).unwrap_or_default();
    if kind == "error" || is_error(frame.get("error")) {
        return Failed(FailureClass::UpstreamError);
    }
    let Some(said) = kind.strip_prefix("response.") else {
        return Event;
    };
    if !["completed", "incomplete", "failed", "cancelled"].contains(&said) {
        return Event;
    }
    let response = &frame["response"];
    let status = response["status"].as_str().unwrap_or(said);
    if said == "failed" || status == "failed" {
        Failed(FailureClass::UpstreamError)
    } else if said == "cancelled"
        || !["completed", "incomplete"].contains(&status)
        || ([said, status].contains(&"incomplete")
            && response["incomplete_details"]["reason"] == "abort")
    {
        Failed(FailureClass::Aborted)
    } else {
        Done
    }
}

proptest! {
    #[test]
    fn the_fast_judge_means_what_the_slow_one_means_of_responses(
        events in prop::collection::vec((name(), data()), 0..12),
    ) {
        let mut fast = Judge::new(Dialect::OpenAiResponses);
        for (name, data) in &events {
            let meaning = fast_event(&mut fast, *name, data);
            prop_assert_eq!(&meaning, &slow_event(*name, data), "{:?} {}", name, data);
            prop_assert_eq!(fast.is_settled(), meaning == Meaning::Done);
            if meaning != Meaning::Event {
                return Ok(());
            }
        }
        let is_short = matches!(fast.end(BodyEnd::Clean, None), Verdict::Failed(_));
        prop_assert!(is_short, "nothing but a terminal is a success");
    }
}

fn name() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        6 => Just(None),
        6 => Just(Some("response.output_text.delta")),
        1 => Just(Some("response.completed")),
        1 => Just(Some("response.incomplete")),
        1 => Just(Some("error")),
    ]
}

fn data() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just("[DONE]".to_owned()), 24 => written(frame())]
}

fn frame() -> impl Strategy<Value = Value> {
    let kind = member(prop_oneof![
        12 => Just("response.output_text.delta"),
        2 => Just("response.completed"),
        1 => Just("response.incomplete"),
        1 => Just("response.failed"),
        1 => Just("response.cancelled"),
        1 => Just("response.mcp_call.failed"),
        1 => Just("keepalive"),
        1 => Just("error"),
    ]);
    let text = prop::sample::select(vec![
        "",
        "a",
        "error",
        "\"error\"",
        "response.completed",
        "\"response.failed\"",
        "\\",
        "日",
    ]);
    (kind, text, member(response()), error(), 0_u32..12).prop_map(
        |(kind, text, response, error, number)| {
            let mut frame = json!({"sequence_number": number, "delta": text});
            for (name, value) in [
                ("type", kind.map(Value::from)),
                ("response", response),
                ("error", error),
            ] {
                if let Some(value) = value {
                    frame[name] = value;
                }
            }
            frame
        },
    )
}

fn response() -> impl Strategy<Value = Value> {
    let status = member(prop::sample::select(vec![
        "completed",
        "completed",
        "incomplete",
        "failed",
        "cancelled",
        "in_progress",
    ]));
    let reason = member(prop::sample::select(vec!["max_output_tokens", "abort"]));
    (status, reason).prop_map(|(status, reason)| {
        let mut response = json!({"error": null, "incomplete_details": null});
        if let Some(status) = status {
            response["status"] = status.into();
        }
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({"reason": reason});
        }
        response
    })
}
