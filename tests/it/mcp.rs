//! MCP over HTTP (protocol.md 7.5): a call outlives its connection up to 2025-11-25, and ends with it from then on.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Outcome, Raw, Script};
use streamweld_tests::{
    Block, Client, End, Harness, Response, Setup, blocks, patience, state, without_ids,
};

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}"#;
const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
const RESULT: &str =
    r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done"}]}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no such tool"}}"#;

/// An event as servers write it.
fn message(id: Option<&str>, data: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: message\n{id}data: {data}\n\n")
}

/// The same event as clients read it, without its id.
fn shown(data: &str) -> Block {
    Block {
        event: Some("message".to_owned()),
        data: Some(data.to_owned()),
        ..Block::default()
    }
}

fn begun(messages: &[String]) -> Raw {
    let head = Raw::new().stream_head();
    messages
        .iter()
        .fold(head, |raw, message| raw.chunk(message))
}

fn whole(messages: &[String]) -> Script {
    Script::raw(begun(messages).last_chunk())
}

fn version(client: &Client, version: &str) -> Client {
    client.with("mcp-protocol-version", version)
}

fn in_session(client: &Client) -> Client {
    version(client, "2025-11-25").with("mcp-session-id", "s-1")
}

async fn call(client: &Client) -> Response {
    client.send("POST", "/mcp", CALL).await
}

#[track_caller]
fn data(block: &Block) -> Value {
    serde_json::from_str(block.data.as_deref().expect("data")).expect("JSON")
}

/// The same request as its client sends it to come back.
async fn again(client: &Client, id: &str, seq: u64) -> Response {
    let client = client.with("last-event-id", &format!("{id}:{seq}"));
    client.get("/mcp").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_durable_under_ids_of_ours() {
    let events = ["", PROGRESS, RESULT];
    let script = whole(&[
        "id: u-1\nretry: 500\ndata:\n\n".to_owned(),
        message(Some("u-2"), PROGRESS),
        message(Some("u-3"), RESULT),
    ]);
    let harness = Harness::start(script).await;
    let client = in_session(&harness.client);
    let response = call(&client).await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let body = blocks(&body);
    assert_eq!(body[0].retry.as_deref(), Some("500"));
    for (seq, (block, expected)) in (2..).zip(body.iter().zip(events)) {
        assert_eq!(block.data.as_deref(), Some(expected));
        assert_eq!(block.id.as_deref(), Some(format!("{id}:{seq}").as_str()));
    }
    assert_eq!(body.len(), events.len());
    let state = state(&client, &id).await;
    assert_eq!(state["dialect"], "mcp");
    assert_eq!(state["usage"], Value::Null);
    assert_eq!(state["terminal"]["end"], "eof");
    assert_eq!(state["terminal"]["reasons"], json!(["result"]));
    assert_eq!(again(&client, &id, 4).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_lost_comes_back_by_get() {
    let raw = begun(&["id: u-1\ndata:\n\n".to_owned()])
        .gate("go")
        .chunk(message(None, PROGRESS))
        .chunk(message(None, RESULT))
        .last_chunk();
    for protocol in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let harness = Harness::start(Script::raw(raw.clone())).await;
        let client = version(&harness.client, protocol);
        let mut response = call(&client).await;
        let id = response.id();
        response.body.blocks(1).await;
        response.leave().await;
        let back = again(&client, &id, 2).await;
        harness.mock.gates().release("go");
        let (body, end) = back.all().await;
        assert_eq!(end, End::Proper);
        let expected = [shown(PROGRESS), shown(RESULT)];
        assert_eq!(without_ids(&blocks(&body)), expected);
        assert_eq!(harness.mock.recorder().count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_client_leaves_before_the_head_goes_on() {
    let raw = Raw::new().gate("head").write("");
    let raw = raw.stream_head().chunk(message(None, RESULT)).last_chunk();
    let harness = Harness::start(Script::raw(raw)).await;
    let client = in_session(&harness.client);
    let request = client.request("POST", "/mcp", CALL);
    let connection = client.begin(&request).await;
    let recorder = harness.mock.recorder();
    recorder.wait_requests(1).await.expect("is asked");
    drop(connection);
    harness.mock.gates().release("head");
    let ending = recorder.wait_closed(0).await.expect("ends");
    assert_eq!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_an_answer() {
    let harness = Harness::start(whole(&[message(None, ERROR)])).await;
    let response = call(&in_session(&harness.client)).await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(
        (without_ids(&blocks(&body)), end),
        (vec![shown(ERROR)], End::Proper)
    );
    let state = state(&in_session(&harness.client), &id).await;
    assert_eq!(state["status"], "done");
    assert_eq!(state["terminal"]["reasons"], json!(["error"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_the_end_however_the_body_ends() {
    for (raw, end) in [
        (begun(&[message(None, RESULT)]).fin(), "cut"),
        (begun(&[message(None, RESULT)]).stall(), "silence"),
    ] {
        let harness = Harness::start(Script::raw(raw)).await;
        let client = in_session(&harness.client);
        let response = call(&client).await;
        let id = response.id();
        let (body, shown_end) = response.all().await;
        assert_eq!(shown_end, End::Proper);
        assert_eq!(without_ids(&blocks(&body)), [shown(RESULT)]);
        assert_eq!(state(&client, &id).await["terminal"]["end"], end);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_can_take_up_again_is_answered_with_an_error() {
    let other = RESULT.replace("\"id\":7", "\"id\":8");
    for (body, id) in [
        (CALL.to_owned(), json!(7)),
        (CALL.replace('7', "\"c-7\""), json!("c-7")),
    ] {
        for raw in [
            begun(&[message(None, PROGRESS)]).last_chunk(),
            begun(&[message(None, PROGRESS)]).fin(),
            // The answer to another call is none to this one.
            begun(&[message(None, &other)]).last_chunk(),
        ] {
            let harness = Harness::start(Script::raw(raw)).await;
            let client = in_session(&harness.client);
            let response = client.send("POST", "/mcp", &body).await;
            let stream = response.id();
            let (first, end) = response.all().await;
            assert_eq!(end, End::Fin, "an error ends with an abort");
            let first = blocks(&first);
            assert_eq!(first.len(), 2);
            let form = data(&first[1]);
            assert_eq!(first[1].id, None);
            assert_eq!(form["jsonrpc"], "2.0");
            assert_eq!(form["id"], id);
            assert_eq!(form["error"]["code"], -32603);
            assert_eq!(form["error"]["data"]["code"], "truncated");
            let (back, end) = again(&client, &stream, 2).await.all().await;
            assert_eq!(end, End::Proper);
            assert_eq!(data(&blocks(&back)[0]), form);
            assert_eq!(again(&client, &stream, 3).await.status, 204);
            let state = state(&client, &stream).await;
            assert_eq!(state["terminal"]["code"], "truncated");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_calls_in_one_are_whole_with_the_body() {
    let second = RESULT.replace("\"id\":7", "\"id\":8");
    let answers = [message(None, RESULT), message(None, &second)];
    let batch = format!("[{CALL},{}]", CALL.replace('7', "8"));
    let ask = async |raw: Raw| {
        let harness = Harness::start(Script::raw(raw)).await;
        let client = version(&harness.client, "2025-03-26");
        let response = client.send("POST", "/mcp", &batch).await;
        let id = response.id();
        let (body, end) = response.all().await;
        (blocks(&body).len(), end, state(&client, &id).await)
    };
    let (shown, end, state) = ask(begun(&answers).last_chunk()).await;
    assert_eq!((shown, end), (2, End::Proper));
    assert_eq!(state["terminal"]["end"], "eof");
    // After one answer nothing says that there is no other; and no one call that a form could be about.
    let (shown, end, state) = ask(begun(&answers[..1]).fin()).await;
    assert_eq!((shown, end), (1, End::Fin));
    assert_eq!(state["terminal"]["code"], "truncated");
    let slow = begun(&answers[..1]).pause(Duration::from_secs(6));
    let (shown, end, _) = ask(slow.chunk(&answers[1]).last_chunk()).await;
    assert_eq!((shown, end), (2, End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_closes_early_is_asked_for_the_rest() {
    for cut in [false, true] {
        let first = begun(&[
            "id: u-1\ndata:\n\n".to_owned(),
            message(Some("u-2"), PROGRESS),
        ]);
        let first = if cut { first.fin() } else { first.last_chunk() };
        let harness = Harness::start(Script::default()).await;
        harness.mock.push_script(Script::raw(first));
        harness
            .mock
            .push_script(whole(&[message(Some("u-3"), RESULT)]));
        let client = in_session(&harness.client);
        let response = call(&client).await;
        let id = response.id();
        let (body, end) = response.all().await;
        assert_eq!((blocks(&body).len(), end), (2, End::Proper));
        let terminal = state(&client, &id).await["terminal"].take();
        assert_eq!(terminal["kind"], "done");
        assert_eq!(terminal["end"], "resumable");
        assert_eq!(terminal["reasons"], json!([]));
        // What was missed comes from the journal; behind it the backend is asked by its own id.
        let (missed, end) = again(&client, &id, 2).await.all().await;
        assert_eq!(
            (without_ids(&blocks(&missed)), end),
            (vec![shown(PROGRESS)], End::Proper)
        );
        let never = client.with("last-event-id", &format!("{id}:3~7"));
        let never = never.get("/mcp").await.error_code().await;
        assert_eq!(never, (409, "journal_regressed".to_owned()));
        let rest = again(&client, &id, 3).await;
        let next = rest.id();
        assert_ne!(next, id);
        let (rest, end) = rest.all().await;
        assert_eq!(
            (without_ids(&blocks(&rest)), end),
            (vec![shown(RESULT)], End::Proper)
        );
        let asked = harness.mock.recorder().request(1).expect("two requests");
        assert_eq!((asked.method.as_str(), asked.path()), ("GET", "/mcp"));
        assert_eq!(asked.header("last-event-id"), Some("u-2"));
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        let terminal = state(&client, &next).await["terminal"].take();
        assert_eq!(terminal["reasons"], json!(["result"]));
        assert_eq!(harness.mock.recorder().count(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_session_is_a_stranger() {
    let harness = Harness::start(whole(&[message(None, RESULT)])).await;
    let client = in_session(&harness.client);
    let response = call(&client).await;
    let id = response.id();
    response.all().await;
    let old = version(&harness.client, "2025-11-25");
    for stranger in [old.with("mcp-session-id", "s-2"), old.clone()] {
        assert_eq!(again(&stranger, &id, 0).await.status, 404);
        let state = stranger.get(&format!("/v1/streams/{id}")).await;
        assert_eq!(state.status, 404);
    }
    assert_eq!(again(&client, &id, 0).await.status, 200);
    // The first call has no session yet, and its client learns of one by its answer.
    let response = call(&old).await;
    let id = response.id();
    response.all().await;
    assert_eq!(again(&client, &id, 0).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_2026_07_28_on_a_client_that_closes_cancels() {
    let events = [message(Some("u-1"), PROGRESS), message(None, RESULT)].concat();
    for protocol in ["2026-07-28", "2031-01-01", "DRAFT"] {
        let raw = Raw::new().stream_head().chunk(events.clone()).stall();
        let harness = Harness::start(Script::raw(raw)).await;
        let mut response = call(&version(&harness.client, protocol)).await;
        assert_eq!(response.header("x-streamweld-stream-id"), None);
        assert_eq!(response.header("x-streamweld-durability"), None);
        let body = response.body.chunk().await.expect("goes on");
        assert_eq!(String::from_utf8(body).expect("UTF-8"), events);
        response.leave().await;
        let recorder = harness.mock.recorder();
        let ending = recorder.wait_closed(0).await.expect("is closed");
        assert_ne!(ending.outcome, Outcome::Finished);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_get_passes_through_unless_it_is_made_durable() {
    let events = message(Some("u-1"), PROGRESS);
    let script = whole(std::slice::from_ref(&events));
    let harness = Harness::start(script.clone()).await;
    let client = in_session(&harness.client);
    let response = client.get("/mcp").await;
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    let (body, _) = response.all().await;
    assert_eq!(String::from_utf8(body).expect("UTF-8"), events);
    let theirs = client.with("last-event-id", "u-1");
    theirs.get("/mcp").await.all().await;
    let asked = harness.mock.recorder().request(1).expect("two requests");
    assert_eq!(asked.header("last-event-id"), Some("u-1"));

    let setup =
        Setup::new(script).config(|config| config.generation.durable_get = vec!["/mcp".to_owned()]);
    let harness = setup.start().await;
    let client = in_session(&harness.client);
    let response = client.get("/mcp").await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(
        (without_ids(&blocks(&body)), end),
        (vec![shown(PROGRESS)], End::Proper)
    );
    assert_eq!(state(&client, &id).await["terminal"]["end"], "resumable");
    // It goes on from where the backend's own id says.
    let next = again(&client, &id, 2).await;
    assert_ne!(next.id(), id);
    let asked = harness.mock.recorder().request(1).expect("two requests");
    assert_eq!(asked.header("last-event-id"), Some("u-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_call_passes_through() {
    let harness = Harness::start(Script::answer(202, "")).await;
    let client = in_session(&harness.client);
    for (method, body) in [("DELETE", ""), ("POST", PROGRESS)] {
        let response = client.send(method, "/mcp", body).await;
        assert_eq!(response.status, 202);
        assert_eq!(response.header("x-streamweld-stream-id"), None);
    }
    let asked = harness.mock.recorder().request(0).expect("two requests");
    assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_the_call() {
    for answered in [false, true] {
        let events = [message(None, if answered { RESULT } else { PROGRESS })];
        let harness = Harness::start(Script::raw(begun(&events).stall())).await;
        let client = in_session(&harness.client);
        let mut response = call(&client).await;
        let id = response.id();
        response.body.blocks(1).await;
        let stop = format!("/v1/streams/{id}/stop");
        assert_eq!(client.send("POST", &stop, "").await.status, 200);
        let (rest, end) = patience(response.body.rest()).await;
        assert_eq!(end, End::Proper);
        let rest = blocks(&rest);
        assert_eq!(rest.len(), usize::from(!answered));
        if let Some(form) = rest.first().map(data) {
            assert_eq!(form["id"], 7);
            assert_eq!(form["error"]["code"], -32000);
            assert_eq!(form["error"]["data"]["code"], "stopped");
        }
    }
}
