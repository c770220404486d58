//! Answers that failed, and say so.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, End as MockEnd, ErrorEvent, Raw, Script};
use streamweld_tests::{Harness, Shown, blocks};

use super::{LLM, begun, chat, delta, plain, shown, whole};

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_before_the_finish_is_truncated() {
    for dialect in LLM {
        let (shown, events) = shown(dialect, whole().end(MockEnd::NoFinish)).await;
        shown.assert_failed(&events, "truncated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_at_all_is_truncated() {
    for dialect in LLM {
        let (shown, events) = shown(dialect, whole().clean_after(0)).await;
        assert!(events.is_empty());
        shown.assert_failed(&[], "truncated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_without_a_finish_proves_nothing_and_is_withheld() {
    for dialect in LLM {
        let (shown, mut events) = shown(dialect, whole().end(MockEnd::SentinelOnly)).await;
        let sentinel = events.pop().expect("the mock sends one");
        let terminal = shown.assert_failed(&events, "truncated");
        let frame = terminal["upstream"]["frame"].as_str().expect("the frame");
        assert_eq!(Some(frame), sentinel.data.as_deref());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_finish_reason_is_none() {
    let empty = delta(0, "", &json!(""));
    let events = [&delta(0, "a", &json!("")), &empty, "[DONE]"];
    chat(&events)
        .await
        .assert_failed(&plain(&events[..2]), "truncated");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_finish_is_no_success_whatever_follows() {
    for dialect in LLM {
        for sentinel in [false, true] {
            let abort = streamweld_mock::Abort {
                events: 3,
                sentinel,
            };
            let script = whole().end(MockEnd::AbortAfter(abort));
            let harness = Harness::start(script.clone()).await;
            let shown = Shown::of(&harness, dialect).await;
            let mut events = shown.expected(&harness, &script);
            if dialect == Dialect::AnthropicMessages {
                // The mock closes its block before it says why.
                events.push(blocks(&shown.replay.0)[events.len()].clone());
            }
            let terminal = shown.assert_failed(&events, "aborted");
            assert_eq!(terminal["upstream"]["code"], "abort");
            let frame = terminal["upstream"]["frame"].as_str().expect("the frame");
            assert!(frame.contains("\"abort\""), "{frame}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_that_nobody_knows_is_no_success() {
    for reason in ["abort", "cancelled", "error", "weather"] {
        let text = delta(0, "a", &Value::Null);
        let finish = delta(0, "", &json!(reason));
        let terminal = chat(&[&text, &finish, "[DONE]"])
            .await
            .assert_failed(&plain(&[&text]), "aborted");
        assert_eq!(terminal["upstream"]["code"], reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_in_a_frame_of_failure_is_committed_with_its_finish_set_to_null() {
    let text = delta(0, "a", &Value::Null);
    let abort = delta(0, " and the rest", &json!("abort"));
    let salvaged = abort.replace("\"abort\"", "null");
    chat(&[&text, &abort, "[DONE]"])
        .await
        .assert_failed(&plain(&[&text, &salvaged]), "aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_ids_in_a_frame_of_failure_are_committed_too() {
    let abort = r#"{"choices":[{"index":0,"delta":{},"token_ids":[7,8],"finish_reason":"abort"}]}"#;
    chat(&[abort])
        .await
        .assert_failed(&plain(&[&abort.replace("\"abort\"", "null")]), "aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_beside_an_error_is_committed_without_the_error() {
    let frame = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"error":{"message":"m"}}"#;
    chat(&[frame]).await.assert_failed(
        &plain(&[r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#]),
        "upstream_error",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_event_is_an_error_whatever_follows() {
    for dialect in LLM {
        for sentinel in [false, true] {
            let error = ErrorEvent {
                events: 4,
                sentinel,
                message: "the engine is on fire".to_owned(),
                ..ErrorEvent::default()
            };
            let (shown, events) = shown(dialect, whole().end(MockEnd::ErrorAfter(error))).await;
            let terminal = shown.assert_failed(&events, "upstream_error");
            assert_eq!(terminal["upstream"]["message"], "the engine is on fire");
            let frame = terminal["upstream"]["frame"].as_str().expect("the frame");
            assert!(frame.contains("on fire"), "{frame}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_event_after_the_finish_is_an_error_too() {
    for dialect in LLM {
        let before = Script::expected(&whole(), &streamweld_mock::Ask::stream(dialect)).len() - 1;
        let (shown, mut events) = shown(dialect, whole().error_after(before)).await;
        assert_eq!(events.len(), before);
        if dialect == Dialect::AnthropicMessages {
            events.pop();
        }
        shown.assert_failed(&events, "upstream_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_torn_after_the_finish_is_an_error_too() {
    let stop = delta(0, "a", &json!("stop"));
    // The whole line, and the half of it.
    for torn in [
        "data: {\"error\":{\"message\":\"m\"}}\n",
        "data: {\"error\":{\"mess",
    ] {
        for cut in [false, true] {
            let raw = begun(&[&stop]).chunk(torn);
            let raw = if cut { raw.fin() } else { raw.last_chunk() };
            let (shown, _) = shown(Dialect::OpenAiChat, Script::raw(raw)).await;
            shown.assert_failed(&plain(&[&stop]), "upstream_error");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_of_an_error_is_one() {
    let text = delta(0, "a", &Value::Null);
    let shapes = [
        "data: {\"error\":\"text\"}\n\n",
        "event: error\ndata: it broke\n\n",
        "error: {\"message\":\"m\"}\n\n",
        "data: {\"error\":{},\"choices\":[]}\n\n",
    ];
    for shape in shapes {
        let raw = Raw::new()
            .stream_head()
            .chunk(format!("data: {text}\n\n"))
            .chunk(shape)
            .chunk("data: [DONE]\n\n")
            .last_chunk();
        let (shown, _) = shown(Dialect::OpenAiChat, Script::raw(raw)).await;
        shown.assert_failed(&plain(&[&text]), "upstream_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_is_null_or_false_is_none() {
    let stop =
        json!({"error": null, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            .to_string();
    let events = [&*stop, "[DONE]"];
    chat(&events)
        .await
        .assert_done(&plain(&events), "sentinel", &["stop"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_failure_is_kept_to_8_kib() {
    let frame = json!({"error": {"message": "x".repeat(100_000)}}).to_string();
    let terminal = chat(&[&frame]).await.assert_failed(&[], "upstream_error");
    let kept = terminal["upstream"]["frame"].as_str().expect("the frame");
    assert!(kept.len() <= 8 << 10 && frame.starts_with(kept));
}
