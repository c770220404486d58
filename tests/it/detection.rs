//! Which dialect a stream has (protocol.md 7.1): told for a path, detected, or seen in its first event.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Raw, Script};
use streamweld_server::config::DialectRoute;
use streamweld_tests::{Block, CHAT, End, Harness, Setup, blocks, state};

/// In front of a backend that answers every path with these, and then ends.
async fn told(routes: &[(&str, &str)], script: Script) -> Harness {
    let routes: Vec<DialectRoute> = routes
        .iter()
        .map(|(path, name)| DialectRoute::new((*path).to_owned(), name).expect("a dialect"))
        .collect();
    let setup = Setup::new(script).config(|config| config.generation.dialects = routes);
    setup.start().await
}

fn begun(events: &[&str]) -> Raw {
    let head = Raw::new().stream_head();
    events
        .iter()
        .fold(head, |raw, event| raw.chunk(format!("{event}\n\n")))
}

/// What a POST to this path is shown: its blocks, how its body ends, and its state.
async fn shown(harness: &Harness, path: &str) -> (Vec<Block>, End, Value) {
    let response = harness.client.send("POST", path, CHAT).await;
    let id = response.id();
    let (body, end) = response.all().await;
    (blocks(&body), end, state(&harness.client, &id).await)
}

const CHUNK: &str = r#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Good"}}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_told_dialect_stands_above_the_path() {
    let routes = [("/app/*", "openai_chat"), ("/v1/messages", "generic")];
    let harness = told(&routes, Script::raw(begun(&[CHUNK]).last_chunk())).await;
    let (events, end, state) = shown(&harness, "/app/talk").await;
    assert_eq!(state["dialect"], "openai_chat");
    assert_eq!(state["terminal"]["code"], "truncated");
    assert_eq!((events.len(), end), (2, End::Fin));
    // What would be cut short as a message is all that anybody knows of it.
    let (events, end, state) = shown(&harness, "/v1/messages").await;
    assert_eq!(state["dialect"], "generic");
    assert_eq!(state["terminal"]["end"], "unknown");
    assert_eq!((events.len(), end), (1, End::Proper));
    // Others are detected.
    let (_, _, state) = shown(&harness, "/v1/completions").await;
    assert_eq!(state["dialect"], "openai_completions");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_dialect_can_be_told() {
    for dialect in Dialect::ALL {
        let script = Script::tokens(3).dialect(dialect);
        let harness = told(&[("/app", dialect.as_str())], script).await;
        let (_, end, state) = shown(&harness, "/app").await;
        assert_eq!(state["dialect"], dialect.as_str());
        assert_eq!((state["status"].as_str(), end), (Some("done"), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_no_dialect_passes_through() {
    let script = Script {
        upstream_ids: Some(1),
        ..Script::tokens(3)
    };
    let harness = told(&[("/v1/*", "none")], script.clone()).await;
    let response = harness.client.chat().await;
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    let (body, end) = response.all().await;
    let request = harness.mock.recorder().request(0).expect("one request");
    let events = script.expected(&request.ask(Dialect::OpenAiChat)).concat();
    assert_eq!(end, End::Proper);
    let body = String::from_utf8(body).expect("UTF-8");
    assert!(
        body.starts_with("id: 1\ndata: ") || body.contains("\nid: 1\n"),
        "{body}"
    );
    assert_eq!(body.matches("data: ").count(), blocks(&events).len());
}

/// First events, each with what a cut behind it looks like.
const FIRST: [(&str, &str); 3] = [
    (CHUNK, "data: {\"error\":"),
    (
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"usage\":{\"input_tokens\":4}}}",
        "event: error\ndata: {\"type\":\"error\"",
    ),
    (
        "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"object\":\"response\"}}",
        "event: error\ndata: {\"type\":\"error\"",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_first_event_shows_how_an_error_looks() {
    for (event, form) in FIRST {
        let harness = Harness::start(Script::raw(begun(&[event]).fin())).await;
        let response = harness.client.send("POST", "/own", CHAT).await;
        let id = response.id();
        let (body, end) = response.all().await;
        let body = String::from_utf8(body).expect("UTF-8");
        assert!(body.contains(&format!("\n\n{form}")), "{body}");
        assert_eq!(end, End::Fin);
        let state = state(&harness.client, &id).await;
        assert_eq!(state["dialect"], "generic");
        assert_eq!(state["terminal"]["code"], "truncated");
        assert_eq!(state["usage"]["estimated"], true);
    }
}

/// The first call of MCP has none of its fields yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_call_of_mcp_that_is_cut_gets_an_error_for_its_answer() {
    let event = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let harness = Harness::start(Script::raw(begun(&[event]).fin())).await;
    let call = r#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#;
    let response = harness.client.send("POST", "/mcp", call).await;
    let (body, end) = response.all().await;
    assert_eq!(end, End::Fin);
    let blocks = blocks(&body);
    let form: Value = serde_json::from_str(blocks[1].data.as_deref().expect("data")).expect("JSON");
    assert_eq!(form["id"], "a");
    assert_eq!(form["error"]["data"]["code"], "truncated");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_event_decides_no_end() {
    for (event, _) in FIRST {
        let failed = "data: {\"error\":{\"message\":\"m\"}}";
        let events = [event, failed, "data: [DONE]", "data: more"];
        let harness = Harness::start(Script::raw(begun(&events).last_chunk())).await;
        let (shown, end, state) = shown(&harness, "/own").await;
        assert_eq!((shown.len(), end), (4, End::Proper));
        assert_eq!(state["terminal"]["kind"], "done");
        assert_eq!(state["terminal"]["end"], "unknown");
        assert_eq!(state["terminal"]["reasons"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_on_an_unknown_path_is_as_the_first_event_says() {
    let harness = Harness::start(Script::raw(begun(&[CHUNK]).stall())).await;
    let mut response = harness.client.send("POST", "/own", CHAT).await;
    let id = response.id();
    response.body.blocks(1).await;
    let stop = format!("/v1/streams/{id}/stop");
    let stopped = harness.client.send("POST", &stop, "").await.json().await;
    assert_eq!(stopped["text"], "Good");
    let (rest, end) = response.body.rest().await;
    let rest = blocks(&rest);
    assert_eq!((rest.len(), end), (2, End::Proper));
    assert_eq!(rest[1].data.as_deref(), Some("[DONE]"));
}
