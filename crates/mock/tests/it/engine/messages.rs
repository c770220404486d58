//! Messages of Anthropic: gone on with by their text, counted, and refused where the service refuses.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Engine, Faults, Mock, Refuse, Script};

use super::{TEXT, ask, script};
use crate::client::Client;

const ENGINES: [Engine; 2] = [Engine::Anthropic, Engine::LlamaCpp];

fn request(prefix: &str, more: &Value) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Why is it salty?"})];
    if !prefix.is_empty() {
        messages.push(json!({"role": "assistant", "content": prefix}));
    }
    let mut body = json!({
        "model": "m", "stream": true, "max_tokens": 500, "system": "Be brief.", "messages": messages,
    });
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body
}

fn stream(script: &Script, body: &Value) -> Vec<Value> {
    let wire = script.wire(&ask(Dialect::AnthropicMessages, body));
    let events = std::str::from_utf8(&wire).unwrap().split_terminator("\n\n");
    let data = events.map(|event| {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        data
    });
    data.collect()
}

fn text(events: &[Value]) -> String {
    let deltas = events
        .iter()
        .filter_map(|event| event["delta"]["text"].as_str());
    deltas.collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    kinds.dedup();
    kinds
}

/// Tokens of the prompt and of the answer.
fn counts(events: &[Value]) -> (u64, u64) {
    let usage = &events[0]["message"]["usage"];
    let input = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    ];
    let input = input.iter().filter_map(|name| usage[*name].as_u64()).sum();
    let last = &events[events.len() - 2];
    (input, last["usage"]["output_tokens"].as_u64().unwrap())
}

async fn post(mock: &Mock, target: &str, body: &Value) -> (u16, Value) {
    let mut client = Client::connect(mock.addr()).await;
    client.post(target, &body.to_string()).await;
    client.json().await
}

async fn counted(mock: &Mock, body: &Value) -> u64 {
    let (status, told) = post(mock, "/anthropic/v1/messages/count_tokens", body).await;
    assert_eq!(status, 200);
    told["input_tokens"].as_u64().unwrap()
}

#[test]
fn each_has_its_habits() {
    let events = stream(&script(Engine::Anthropic), &request("", &json!({})));
    let all = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds(&events), all);
    assert_eq!(
        (
            text(&events).as_str(),
            events.last().unwrap()["type"].as_str()
        ),
        (TEXT, Some("message_stop"))
    );
    let last = &events[events.len() - 2];
    assert_eq!(last["delta"]["stop_reason"], "end_turn");
    assert_eq!(
        last["usage"]["input_tokens"],
        events[0]["message"]["usage"]["input_tokens"]
    );
    let events = stream(&script(Engine::LlamaCpp), &request("", &json!({})));
    assert!(!kinds(&events).contains(&"ping"));
    assert_eq!(text(&events), TEXT);
}

#[tokio::test]
async fn it_goes_on_at_every_word_and_both_parts_are_counted_as_the_whole() {
    for engine in ENGINES {
        let script = script(engine);
        let mock = Mock::start(script.clone()).await.unwrap();
        let whole = stream(&script, &request("", &json!({})));
        let (prompt, output) = counts(&whole);
        assert_eq!(counted(&mock, &request("", &json!({}))).await, prompt);
        let borders = TEXT.char_indices().filter(|(at, c)| {
            c.is_whitespace() && !TEXT[..*at].ends_with(char::is_whitespace) && *at > 0
        });
        for (at, _) in borders {
            let body = request(&TEXT[..at], &json!({}));
            let rest = stream(&script, &body);
            assert_eq!(text(&rest), TEXT[at..], "{engine} at {at}");
            let (input, new) = counts(&rest);
            let with = counted(&mock, &body).await;
            assert_eq!(
                (input, with - prompt + new),
                (with, output),
                "{engine} at {at}"
            );
        }
        let cut = stream(&script, &request("", &json!({"max_tokens": 3})));
        assert_eq!(cut[cut.len() - 2]["delta"]["stop_reason"], "max_tokens");
        assert_eq!(counts(&cut).1, 3);
    }
}

#[tokio::test]
async fn what_the_service_refuses_is_refused_in_its_words() {
    let mock = Mock::start(script(Engine::Anthropic)).await.unwrap();
    let refused = |said: &str| {
        json!({"type": "error", "request_id": "req_mock",
            "error": {"type": "invalid_request_error", "message": said}})
    };
    let space = refused("messages: final assistant content cannot end with trailing whitespace");
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let told = post(&mock, path, &request("The sea ", &json!({}))).await;
        assert_eq!(told, (400, space.clone()), "{path}");
    }
    mock.set_script(script(Engine::Anthropic).faults(Faults {
        refuse: Some(Refuse::Status(400)),
        ..Faults::default()
    }));
    let told = post(&mock, "/v1/messages", &request("The sea", &json!({}))).await;
    let prefill = "This model does not support assistant message prefill. The conversation must end with a user message.";
    assert_eq!(told, (400, refused(prefill)));
    // It is a beginning of an answer that is refused, and nothing else.
    let whole = post(
        &mock,
        "/v1/messages",
        &request("", &json!({"stream": false})),
    )
    .await;
    assert_eq!(
        (whole.0, whole.1["content"][0]["text"].as_str()),
        (200, Some(TEXT))
    );
}

#[tokio::test]
async fn the_service_has_nothing_else_that_engines_have() {
    let mock = Mock::start(script(Engine::Anthropic).model("claude"))
        .await
        .unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.get("/v1/models").await;
    assert_eq!(client.json().await.1["data"][0]["id"], "claude");
    for path in ["/tokenize", "/detokenize", "/apply-template"] {
        assert_eq!(
            post(&mock, path, &json!({"content": "a"})).await.0,
            404,
            "{path}"
        );
    }
}
