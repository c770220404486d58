//! Gemini (protocol.md 5.2, 7): no ids and no comments for clients that cannot read them, no end but a proper one, and
//! an error that is no event.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, End as BackendEnd, Raw, Script};
use streamweld_tests::{
    Block, CHAT, Client, End, Harness, Setup, Shown, Way, ask, blocks, ends, numbered, state,
    wait_seq, without_ids,
};

const GEMINI: Dialect = Dialect::Gemini;

fn script() -> Script {
    Script {
        model: Some("m".to_owned()),
        ..Script::text("Good morning to you").id("g7")
    }
}

async fn shown(script: &Script) -> (Shown, Vec<Block>) {
    let harness = Harness::start(script.clone()).await;
    let shown = Shown::of(&harness, GEMINI).await;
    let events = shown.expected(&harness, script);
    (shown, events)
}

/// A stream of exactly these events, ended cleanly.
fn stream(events: &[Value]) -> Script {
    let raw = events.iter().fold(Raw::new().stream_head(), |raw, event| {
        raw.chunk(format!("data: {event}\n\n"))
    });
    Script::raw(raw.last_chunk())
}

fn plain(events: &[Value]) -> Vec<Block> {
    let block = |event: &Value| Block {
        data: Some(event.to_string()),
        ..Block::default()
    };
    events.iter().map(block).collect()
}

fn control(client: &Client) -> Client {
    client.with("x-streamweld-events", "control")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_is_the_backends_to_the_byte_without_ids() {
    let script = script();
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.send("POST", GEMINI.path(), CHAT).await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let request = harness.mock.recorder().request(0).expect("one request");
    assert_eq!(request.target, GEMINI.path());
    let events = script.expected(&request.ask(GEMINI));
    assert_eq!(body, events.concat());
    let state = state(&harness.client, &id).await;
    assert_eq!(state["dialect"], "gemini");
    assert_eq!(state["terminal"]["end"], "eof");
    assert_eq!(state["terminal"]["reasons"], json!(["STOP"]));
    assert_eq!(state["usage"]["completion_tokens"], 4);
    assert_eq!(state["usage"]["estimated"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_resumes_or_asks_for_control_events_has_ids() {
    let script = script();
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.send("POST", GEMINI.path(), CHAT).await;
    let id = response.id();
    let (body, _) = response.all().await;
    let request = harness.mock.recorder().request(0).expect("one request");
    let all = numbered(&id, &script.expected(&request.ask(GEMINI)));
    assert_eq!(without_ids(&blocks(&all)), blocks(&body));
    let starts = [0, 1].map(|seq| (seq, 0));
    for (seq, at) in starts.into_iter().chain((2..).zip(ends(&all))) {
        for way in Way::ALL {
            let cursor = format!("{id}:{seq}");
            let rest = way
                .resume(&harness.client, &cursor, (GEMINI.path(), CHAT))
                .await;
            if at == all.len() {
                assert_eq!(rest.status, 204);
            } else {
                assert_eq!(rest.all().await, (all[at..].to_vec(), End::Proper));
            }
        }
    }
    let maker = ask(&control(&harness.client), GEMINI).await;
    let shown = blocks(&maker.all().await.0);
    assert!(shown.iter().all(|block| block.id.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_again_is_as_plain_as_the_first_time() {
    let harness = Harness::start(script()).await;
    let client = harness.client.with("idempotency-key", "k");
    let (first, _) = client.send("POST", GEMINI.path(), CHAT).await.all().await;
    let again = client.send("POST", GEMINI.path(), CHAT).await.all().await;
    assert_eq!(again, (first, End::Proper));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_query_it_is_any_other_stream() {
    let harness = Harness::start(script()).await;
    let path = "/v1beta/models/mock:streamGenerateContent";
    let response = harness.client.send("POST", path, CHAT).await;
    let id = response.id();
    response.all().await;
    let state = state(&harness.client, &id).await;
    assert_eq!(state["dialect"], "generic");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_proper_end_right_behind_the_reason_is_a_success() {
    let count = script()
        .expected(&streamweld_mock::Ask::stream(GEMINI))
        .len();
    for events in 0..=count {
        let (shown, before) = shown(&script().clean_after(events)).await;
        if events == count {
            shown.assert_done(&before, "eof", &["STOP"]);
        } else {
            shown.assert_failed(&before, "truncated");
        }
        let script = script().gate_after(events, "cut").fin_after(events);
        let harness = Harness::start(script.clone()).await;
        let cut = Shown::held(&harness, GEMINI, events, Some("cut")).await;
        cut.assert_failed(&cut.expected(&harness, &script), "truncated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_last_event_is_none() {
    let (shown, events) = shown(&script().end(BackendEnd::TornLast(1))).await;
    shown.assert_failed(&events, "truncated");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_limits_are_ends_of_their_own() {
    for reason in ["MAX_TOKENS", "SAFETY", "PROHIBITED_CONTENT", "IMAGE_SAFETY"] {
        let (shown, events) = shown(&script().finish(reason)).await;
        shown.assert_done(&events, "eof", &[reason]);
    }
    let blocked = [json!({"promptFeedback": {"blockReason": "SAFETY"}})];
    let (shown, _) = shown(&stream(&blocked)).await;
    shown.assert_done(&plain(&blocked), "eof", &["SAFETY"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_reason_is_taken_back_by_what_follows() {
    let chunk = |text: &str, reason: Option<&str>| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": reason}]});
    let short = [chunk("a", Some("STOP")), chunk("b", None)];
    let (cut, _) = shown(&stream(&short)).await;
    cut.assert_failed(&plain(&short), "truncated");
    let whole = [short, [chunk("c", None), chunk("d", Some("STOP"))]].concat();
    let (done, _) = shown(&stream(&whole)).await;
    done.assert_done(&plain(&whole), "eof", &["STOP"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_backend_is_one_in_each_of_its_forms() {
    let error = json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
    let pretty = serde_json::to_string_pretty(&error).expect("JSON");
    for form in [
        format!("data: {error}\n\n"),
        format!("{error}\n\n"),
        format!("{pretty}\n\n"),
        pretty.clone(),
        format!("[{pretty}]\r\n\r\n"),
    ] {
        let first = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
        let raw = Raw::new()
            .stream_head()
            .chunk(format!("data: {first}\n\n"))
            .chunk(form)
            .last_chunk();
        let (shown, _) = shown(&Script::raw(raw)).await;
        let terminal = shown.assert_failed(&plain(&[first]), "upstream_error");
        assert_eq!(terminal["upstream"]["message"], "overloaded");
        assert_eq!(terminal["upstream"]["code"], "503");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_beside_a_failure_is_kept() {
    let failed =
        json!({"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "abort"}]});
    let kept =
        json!({"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": null}]});
    let (shown, _) = shown(&stream(&[failed])).await;
    shown.assert_failed(&plain(&[kept]), "aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_ours_comes_in_a_piece_of_its_own() {
    // Events and end reach the server at once.
    let script = script()
        .writes(streamweld_mock::Writes::AllAtOnce)
        .fin_after(4);
    let harness = Harness::start(script).await;
    for _ in 0..50 {
        let mut response = ask(&harness.client, GEMINI).await;
        let mut pieces = Vec::new();
        while let Some(piece) = response.body.chunk().await {
            pieces.push(piece);
        }
        assert_eq!(response.body.end(), Some(End::Fin));
        let error = pieces.pop().expect("a form");
        let json: Value = serde_json::from_slice(&error).expect("nothing but JSON");
        assert_eq!(json["error"]["code"], 500);
        assert_eq!(json["error"]["details"][0]["reason"], "truncated");
        assert!(error.ends_with(b"}\n\n"));
        assert_eq!(blocks(&pieces.concat()).len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_is_a_blank_line_unless_the_reader_has_ids() {
    let harness = Setup::new(script().stall_after(2))
        .config(|config| config.edge.heartbeat = Duration::from_millis(50))
        .start()
        .await;
    let mut first = ask(&harness.client, GEMINI).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 3).await;
    let mut resumed = harness
        .client
        .with("last-event-id", &format!("{id}:3"))
        .events(&id)
        .await;
    let (mut plain, mut comments) = (0, 0);
    while plain < 3 {
        let piece = first.body.chunk().await.expect("goes on");
        assert!(!piece.contains(&b':') || piece.starts_with(b"data: "));
        plain += usize::from(piece == b"\n");
    }
    while comments < 3 {
        assert_eq!(resumed.body.chunk().await.as_deref(), Some(&b":\n"[..]));
        comments += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_answer_looks_finished_to_its_readers() {
    let harness = Harness::start(script().stall_after(2)).await;
    let mut response = ask(&harness.client, GEMINI).await;
    let id = response.id();
    drop(response.body.blocks(2).await);
    let stop = format!("/v1/streams/{id}/stop");
    let stopped = harness.client.send("POST", &stop, "").await.json().await;
    assert_eq!(stopped["text"], "Good morning");
    let (form, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    let form = blocks(&form);
    assert_eq!(form.len(), 1);
    assert_eq!(form[0].id, None);
    let data: Value = serde_json::from_str(form[0].data.as_deref().expect("data")).expect("JSON");
    assert_eq!(data["candidates"][0]["finishReason"], "STOP");
    assert_eq!(data["candidates"][0]["index"], 0);
    assert_eq!(data["responseId"], "g7");
    assert_eq!(data["usageMetadata"]["candidatesTokenCount"], 2);
    let replay = harness.client.events(&id).await.all().await;
    let last = blocks(&replay.0).pop().expect("the form");
    assert_eq!(last.seq(), 4);
    assert_eq!(without_ids(&[last]), form);
}
