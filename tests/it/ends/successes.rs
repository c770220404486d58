//! Answers that are whole.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, End as MockEnd};
use streamweld_tests::{End, Harness, Setup, Shown, ask, blocks, without_ids};

use super::{LLM, chat, delta, plain, reason, shown, stream, whole};

#[tokio::test(flavor = "multi_thread")]
async fn the_sentinel_after_a_finish_ends_a_success() {
    for dialect in LLM {
        let (shown, events) = shown(dialect, whole()).await;
        shown.assert_done(&events, "sentinel", &[reason(dialect)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_after_a_finish_is_a_success_without_an_invented_sentinel() {
    for dialect in LLM {
        let (shown, events) = shown(dialect, whole().end(MockEnd::NoSentinel)).await;
        shown.assert_done(&events, "eof", &[reason(dialect)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_torn_after_a_finish_is_a_success() {
    for dialect in LLM {
        let (shown, events) = shown(dialect, whole().end(MockEnd::TornLast(4))).await;
        shown.assert_done(&events, "eof", &[reason(dialect)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_after_a_finish_is_a_success_after_the_grace() {
    let settle = async |dialect| {
        let script = whole().end(MockEnd::SilenceAfterFinish);
        let harness = Harness::start(script.clone()).await;
        let started = tokio::time::Instant::now();
        let shown = Shown::of(&harness, dialect).await;
        assert!(started.elapsed() >= Duration::from_secs(5));
        let events = shown.expected(&harness, &script);
        shown.assert_done(&events, "silence", &[reason(dialect)]);
        // The silent connection is not kept.
        let recorder = harness.mock.recorder();
        recorder.wait_closed(0).await.expect("is closed");
        recorder.wait_open_connections(0).await.expect("is closed");
    };
    tokio::join!(settle(LLM[0]), settle(LLM[1]), settle(LLM[2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generic_stream_that_ends_cleanly_is_done_for_all_anybody_knows() {
    let (shown, events) = shown(Dialect::Generic, whole()).await;
    shown.assert_done(&events, "unknown", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generic_stream_gives_no_word_a_meaning() {
    let events = [
        r#"{"error":{"message":"m"}}"#,
        "[DONE]",
        r#"{"choices":[{"index":0,"finish_reason":"abort"}]}"#,
        "last",
    ];
    let (shown, _) = shown(Dialect::Generic, stream(&events)).await;
    shown.assert_done(&plain(&events), "unknown", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_success_reason_settles() {
    for reason in [
        "stop",
        "length",
        "tool_calls",
        "function_call",
        "content_filter",
        "repetition",
    ] {
        let finish = delta(0, "", &json!(reason));
        let events = [&delta(0, "a", &Value::Null), &finish, "[DONE]"];
        chat(&events)
            .await
            .assert_done(&plain(&events), "sentinel", &[reason]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_reason_comes_with_what_is_behind_it() {
    let dialect = Dialect::AnthropicMessages;
    let script = whole();
    let events = script.expected(&streamweld_mock::Ask::stream(dialect));
    let before = events.len() - 1;
    let harness = Setup::new(script.gate_after(before, "stop"))
        .config(|config| config.edge.heartbeat = Duration::from_millis(100))
        .start()
        .await;
    let mut response = ask(&harness.client, dialect).await;
    let mut shown = response.body.blocks(before - 1).await;
    // The backend has sent the reason as well.
    let arrived = harness.mock.gates().wait_arrived("stop", 1);
    arrived.await.expect("it stops there");
    for _ in 0..5 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
    harness.mock.gates().release("stop");
    let (rest, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    shown.extend_from_slice(&rest);
    assert_eq!(without_ids(&blocks(&shown)), blocks(&events.concat()));
}
