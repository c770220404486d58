//! How an end is judged, and how it looks to each kind of reader (protocol.md 7).

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, End as MockEnd, ErrorEvent, Raw, RawStep, Script};
use streamweld_tests::{Block, End, Harness, Setup, Shown, ask, blocks, patience, without_ids};

const LLM: [Dialect; 3] = [
    Dialect::OpenAiChat,
    Dialect::OpenAiCompletions,
    Dialect::AnthropicMessages,
];

fn reason(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::AnthropicMessages => "end_turn",
        Dialect::OpenAiResponses => "completed",
        _ => "stop",
    }
}

/// What the events of this script are does not depend on the request.
fn whole() -> Script {
    Script {
        model: Some("m".to_owned()),
        ..Script::tokens(3)
    }
}

/// One generation of this script, in front of a mock of its own.
async fn shown(dialect: Dialect, script: Script) -> (Shown, Vec<Block>) {
    let harness = Harness::start(script.clone()).await;
    let shown = Shown::of(&harness, dialect).await;
    let expected = shown.expected(&harness, &script);
    (shown, expected)
}

/// A chat or completions stream of exactly these blocks, ended cleanly.
fn stream(events: &[&str]) -> Script {
    let mut raw = Raw::new().stream_head();
    for event in events {
        raw = raw.chunk(format!("data: {event}\n\n"));
    }
    Script::raw(raw.last_chunk())
}

/// The blocks of [`stream`].
fn plain(events: &[&str]) -> Vec<Block> {
    events
        .iter()
        .map(|event| Block {
            data: Some((*event).to_owned()),
            ..Block::default()
        })
        .collect()
}

fn delta(index: u32, content: &str, finish: &Value) -> String {
    json!({"id": "c", "choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish}]})
        .to_string()
}

async fn chat(events: &[&str]) -> Shown {
    shown(Dialect::OpenAiChat, stream(events)).await.0
}

// Successes.

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
async fn every_choice_needs_its_own_finish() {
    let (a, b) = (delta(0, "a", &Value::Null), delta(1, "b", &Value::Null));
    let (stop, length) = (delta(0, "", &json!("stop")), delta(1, "", &json!("length")));
    let one = [&*a, &b, &stop];
    chat(&one).await.assert_failed(&plain(&one), "truncated");
    let both = [&*a, &b, &length, &stop, "[DONE]"];
    chat(&both)
        .await
        .assert_done(&plain(&both), "sentinel", &["stop", "length"]);
}

// More choices than one.

/// What the client that sent this request was shown, without ids, and the terminal in the state.
async fn asked(dialect: Dialect, request: &Value, raw: Raw) -> (Vec<Block>, End, Value) {
    let harness = Harness::start(Script::raw(raw)).await;
    let client = &harness.client;
    let request = request.to_string();
    let response = client.send("POST", dialect.path(), &request).await;
    let id = response.id();
    let (body, end) = response.all().await;
    let mut state = client.get(&format!("/v1/streams/{id}")).await.json().await;
    (without_ids(&blocks(&body)), end, state["terminal"].take())
}

/// A stream that goes on with more steps after these events.
fn begun(events: &[&str]) -> Raw {
    let head = Raw::new().stream_head();
    events
        .iter()
        .fold(head, |raw, event| raw.chunk(format!("data: {event}\n\n")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_was_asked_for_and_never_began_is_missed() {
    let (text, stop) = (delta(0, "a", &Value::Null), delta(0, "", &json!("stop")));
    let events = [&*text, &stop];
    let (chat, completions) = (Dialect::OpenAiChat, Dialect::OpenAiCompletions);
    let requests = [
        (chat, json!({"model": "m", "stream": true, "n": 2}), true),
        (chat, json!({"n": 3, "stream": true}), true),
        // Not every client says in the body that it wants a stream.
        (chat, json!({"n": 2}), true),
        (
            completions,
            json!({"stream": true, "n": 2, "prompt": "p"}),
            true,
        ),
        (
            completions,
            json!({"stream": true, "prompt": ["p", "q"]}),
            true,
        ),
        (
            completions,
            json!({"stream": true, "prompt": [[1, 2], [3]]}),
            true,
        ),
        (
            completions,
            json!({"stream": true, "n": 1, "prompt": [1, 2]}),
            false,
        ),
        (chat, json!({"stream": true, "prompt": ["p", "q"]}), false),
        (chat, json!({"stream": true, "n": 0}), false),
        (chat, json!({"stream": true, "n": -2}), false),
        (chat, json!({"stream": true, "n": 1_000_000_000}), false),
        (chat, json!({"stream": true, "n": "2"}), false),
        (chat, json!({"stream": true, "n": null}), false),
    ];
    for (dialect, request, missed) in requests {
        for cut in [false, true] {
            let raw = begun(&events);
            let raw = if cut { raw.fin() } else { raw.last_chunk() };
            let (mut shown, end, terminal) = asked(dialect, &request, raw).await;
            let form = shown.split_off(events.len());
            assert_eq!(shown, plain(&events), "{request}");
            if missed {
                assert_eq!((form.len(), end), (1, End::Fin), "{request}");
                assert_eq!(terminal["kind"], "error", "{request}");
                assert_eq!(terminal["code"], "truncated", "{request}");
            } else {
                assert_eq!((form.len(), end), (0, End::Proper), "{request}");
                assert_eq!(terminal["kind"], "done", "{request}");
                assert_eq!(terminal["end"], if cut { "cut" } else { "eof" });
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sentinel_says_that_no_more_choices_will_come() {
    let stop = delta(0, "a", &json!("stop"));
    let events = [&*stop, "[DONE]"];
    let request = json!({"stream": true, "n": 2});
    let raw = begun(&events).last_chunk();
    let (shown, end, terminal) = asked(Dialect::OpenAiChat, &request, raw).await;
    assert_eq!((shown, end), (plain(&events), End::Proper));
    assert_eq!(terminal["end"], "sentinel");
    assert_eq!(terminal["reasons"], json!(["stop"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_takes_its_time_is_waited_for() {
    let stop = delta(0, "a", &json!("stop"));
    let (text, length) = (delta(1, "b", &Value::Null), delta(1, "", &json!("length")));
    let events = [&*stop, &text, &length, "[DONE]"];
    let wait = async |request: Value, before: usize| {
        // Longer than a settled answer waits for its sentinel.
        let raw = begun(&events[..before]).pause(Duration::from_secs(6));
        let raw = events[before..]
            .iter()
            .fold(raw, |raw, event| raw.chunk(format!("data: {event}\n\n")));
        let (shown, end, terminal) = asked(Dialect::OpenAiChat, &request, raw.last_chunk()).await;
        assert_eq!((shown, end), (plain(&events), End::Proper));
        assert_eq!(terminal["end"], "sentinel");
        assert_eq!(terminal["reasons"], json!(["stop", "length"]));
    };
    tokio::join!(
        // Before it has begun, where it was asked for.
        wait(json!({"stream": true, "n": 2}), 1),
        // And once it has begun, whether or not it was.
        wait(json!({"stream": true, "n": 2}), 2),
        wait(json!({"stream": true}), 2),
    );
}

// Failures.

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

// Cuts, at every place.

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_after_every_event_is_judged_by_what_came_before() {
    let cut = async |dialect| {
        let harness = Harness::start(whole()).await;
        let count = whole()
            .expected(&streamweld_mock::Ask::stream(dialect))
            .len();
        for rst in [false, true] {
            for k in 0..=count {
                let script = if rst {
                    whole().rst_after(k)
                } else {
                    whole().fin_after(k)
                };
                let script = script.gate_after(k, "cut");
                harness.mock.set_script(script.clone());
                // Held, because a reset may take with it what was sent just before. A stop reason waits for what is
                // behind it.
                let waits = dialect == Dialect::AnthropicMessages && k == count - 1;
                let before = k - usize::from(waits);
                let shown = Shown::held(&harness, dialect, before, Some("cut")).await;
                let events = shown.expected(&harness, &script);
                assert_eq!(events.len(), k);
                // Where the reason is not the sentinel it stands before it.
                let settles = !matches!(
                    dialect,
                    Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Generic
                );
                let ends = !matches!(dialect, Dialect::Gemini | Dialect::Generic);
                if ends && k == count {
                    shown.assert_done(&events, "sentinel", &[reason(dialect)]);
                } else if settles && k == count - 1 {
                    shown.assert_done(&events, "cut", &[reason(dialect)]);
                } else {
                    shown.assert_failed(&events, "truncated");
                }
            }
        }
    };
    for dialect in Dialect::ALL {
        cut(dialect).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_event_is_none() {
    for dialect in Dialect::ALL {
        // Its text may be whole: without the blank line it is no event.
        let one = whole().expected(&streamweld_mock::Ask::stream(dialect))[1].len();
        for bytes in [1, 10, one - 1] {
            let (shown, events) = shown(dialect, whole().clean_after((1, bytes))).await;
            assert_eq!(events.len(), 1);
            match dialect {
                Dialect::Generic => shown.assert_done(&events, "unknown", &[]),
                _ => drop(shown.assert_failed(&events, "truncated")),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_framing_is_a_cut() {
    for dialect in Dialect::ALL {
        let script = whole().mark(2, streamweld_mock::Deed::BadChunk);
        let (shown, events) = shown(dialect, script).await;
        assert_eq!(events.len(), 2);
        shown.assert_failed(&events, "truncated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8_is_never_journaled() {
    for dialect in Dialect::ALL {
        let (shown, events) = shown(dialect, whole().bad_utf8_after(2)).await;
        assert_eq!(events.len(), 2);
        shown.assert_failed(&events, "invalid_utf8");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_over_the_limit_is_never_journaled_nor_read_to_its_end() {
    for dialect in Dialect::ALL {
        let endless = Raw::new()
            .write(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )
            .write("data: ")
            .repeat("x".repeat(64 << 10), 1024)
            .write("\n\n")
            .fin();
        let harness = Setup::new(Script::raw(endless).dialect(dialect))
            .config(|config| config.generation.max_event = 256 << 10)
            .start()
            .await;
        let shown = Shown::of(&harness, dialect).await;
        shown.assert_failed(&[], "event_too_large");
        let ending = harness
            .mock
            .recorder()
            .wait_closed(0)
            .await
            .expect("is closed");
        // What fits into the buffers of two sockets, and no more.
        assert!(ending.bytes < 32 << 20, "{ending:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_just_the_limit_passes() {
    let event = format!("data: {}\n\n", "x".repeat(1000));
    let limit = event.len();
    for (limit, passes) in [(limit, true), (limit - 1, false)] {
        let raw = Raw::new().stream_head().chunk(event.clone()).last_chunk();
        let harness = Setup::new(Script::raw(raw))
            .config(move |config| config.generation.max_event = limit)
            .start()
            .await;
        let shown = Shown::of(&harness, Dialect::Generic).await;
        if passes {
            shown.assert_done(&blocks(event.as_bytes()), "unknown", &[]);
        } else {
            shown.assert_failed(&[], "event_too_large");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_runs_for_too_long_is_ended() {
    for dialect in Dialect::ALL {
        let script = whole().stall_after(2);
        let harness = Setup::new(script.clone())
            .config(|config| config.generation.max_duration = Duration::from_millis(1500))
            .start()
            .await;
        let shown = Shown::of(&harness, dialect).await;
        shown.assert_failed(&shown.expected(&harness, &script), "max_duration");
        let recorder = harness.mock.recorder();
        recorder.wait_open_connections(0).await.expect("is closed");
    }
}

// Stops.

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_cleanly_for_every_reader_in_the_form_of_its_dialect() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(Script::tokens(8).stall_after(4)).await;
        let mut response = ask(&harness.client, dialect).await;
        let id = response.id();
        let mut body = response.body.blocks(4).await;
        let stop = format!("/v1/streams/{id}/stop");
        let stopped = harness.client.send("POST", &stop, "").await.json().await;
        assert_eq!(stopped["status"], "stopped");
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        assert_eq!(end, End::Proper);
        let replay = harness.client.events(&id).await.all().await;
        assert_eq!(replay.1, End::Proper);
        let plain = dialect == Dialect::Gemini;
        if plain {
            assert_eq!(blocks(&body), without_ids(&blocks(&replay.0)));
        } else {
            assert_eq!(replay.0, body);
        }
        let form = blocks(&replay.0).split_off(4);
        let datas: Vec<Value> = form
            .iter()
            .map(|block| block.data.as_deref().unwrap_or_default())
            .map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
            .collect();
        match dialect {
            Dialect::Generic => assert!(form.is_empty()),
            Dialect::AnthropicMessages => {
                let names: Vec<_> = form.iter().map(|block| block.event.as_deref()).collect();
                assert_eq!(
                    names,
                    [
                        Some("content_block_stop"),
                        Some("message_delta"),
                        Some("message_stop")
                    ]
                );
                assert_eq!(datas[1]["delta"]["stop_reason"], "end_turn");
            }
            Dialect::OpenAiResponses => {
                assert_eq!(datas.len(), 1);
                assert_eq!(form[0].event.as_deref(), Some("response.incomplete"));
                assert_eq!(datas[0]["sequence_number"], 4);
                assert_eq!(datas[0]["response"]["created_at"], 1_700_000_000);
            }
            Dialect::Gemini => {
                assert_eq!(datas.len(), 1);
                assert_eq!(datas[0]["candidates"][0]["finishReason"], "STOP");
            }
            Dialect::OpenAiChat | Dialect::OpenAiCompletions => {
                assert_eq!(datas.len(), 2);
                assert_eq!(datas[0]["choices"][0]["finish_reason"], "stop");
                assert_eq!(datas[0]["created"], 1_700_000_000);
                assert_eq!(datas[1], "[DONE]");
            }
        }
        // The terminal's id stands on the last block, and nowhere else.
        for (place, block) in form.iter().enumerate() {
            let last = place + 1 == form.len();
            assert_eq!(
                block.id.as_ref().map(|_| block.seq()),
                last.then(|| stopped["terminal"]["seq"].as_u64().expect("a sequence"))
            );
        }
        let closed = harness.mock.recorder().wait_closed(0);
        patience(closed).await.expect("the backend is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_comes_after_the_end_is_anybodys() {
    let stop = delta(0, "a", &json!("stop"));
    let events = [&*stop, "[DONE]"];
    let raw = Raw::new()
        .stream_head()
        .chunk(format!("data: {stop}\n\ndata: [DONE]\n\ndata: late\n\n"))
        .chunk("data: {\"error\":1}\n\n")
        .step(RawStep::Rst);
    let (shown, _) = shown(Dialect::OpenAiChat, Script::raw(raw)).await;
    shown.assert_done(&plain(&events), "sentinel", &["stop"]);
}

// Readers that are there when it ends.

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_there_see_the_end_that_is_theirs() {
    for dialect in Dialect::ALL {
        let script = Script::tokens(8).gate_after(3, "end").fin_after(3);
        let harness = Harness::start(script).await;
        let control = harness.client.with("x-streamweld-events", "control");
        let mut maker = ask(&control, dialect).await;
        let id = maker.id();
        let mut seen = maker.body.blocks(4).await;
        let mut resumed = ask(
            &harness.client.with("last-event-id", &format!("{id}:2")),
            dialect,
        )
        .await;
        let mut followed = harness.client.events(&id).await;
        let mut tail = resumed.body.blocks(2).await;
        let mut all = followed.body.blocks(3).await;
        harness.mock.gates().release("end");

        // With control events even the client that made it has a clean end: the terminal tells.
        let (rest, end) = maker.body.rest().await;
        seen.extend_from_slice(&rest);
        assert_eq!(end, End::Proper);
        let names: Vec<_> = blocks(&seen)
            .into_iter()
            .filter_map(|block| block.event)
            .filter(|name| name.starts_with("streamweld."))
            .collect();
        assert_eq!(names, ["streamweld.open", "streamweld.error"]);

        let (rest, end) = resumed.body.rest().await;
        tail.extend_from_slice(&rest);
        let (rest, other_end) = followed.body.rest().await;
        all.extend_from_slice(&rest);
        assert_eq!(end, other_end);
        assert!(blocks(&all).ends_with(&blocks(&tail)));
        if dialect == Dialect::Generic {
            assert_eq!((blocks(&all).len(), end), (3, End::Fin));
        } else {
            assert_eq!((blocks(&all).len(), end), (4, End::Proper));
            assert_eq!(blocks(&all)[3].seq(), 5);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_a_form_without_ids_and_a_terminal_with_one_for_control_readers() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(Script::tokens(8).stall_after(4)).await;
        let control = harness.client.with("x-streamweld-events", "control");
        let mut maker = ask(&control, dialect).await;
        let id = maker.id();
        let mut seen = maker.body.blocks(5).await;
        let stop = format!("/v1/streams/{id}/stop");
        assert_eq!(harness.client.send("POST", &stop, "").await.status, 200);
        let (rest, end) = maker.body.rest().await;
        seen.extend_from_slice(&rest);
        assert_eq!(end, End::Proper);
        let mut rest = blocks(&seen).split_off(5);
        let terminal = rest.pop().expect("a terminal");
        assert_eq!(terminal.event.as_deref(), Some("streamweld.stopped"));
        assert_eq!(terminal.seq(), 6);
        let payload: Value =
            serde_json::from_str(&terminal.data.expect("data")).expect("one line of JSON");
        assert_eq!(payload["by"], "client");
        assert!(rest.iter().all(|block| block.id.is_none()));
        assert_eq!(rest.is_empty(), dialect == Dialect::Generic);
    }
}
