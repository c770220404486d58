//! Whole answers, in the shapes of the real servers.

use serde_json::{Value, json};
use streamweld_mock::{Ask, Dialect, Mock, Script};

use crate::client::{Client, End};

/// The data of each event.
fn data(body: &[u8]) -> Vec<String> {
    let body = std::str::from_utf8(body).unwrap();
    body.split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| event.split_once("data: ").unwrap().1.to_owned())
        .collect()
}

async fn stream(script: Script, path: &str, request: &str) -> Vec<u8> {
    let mock = Mock::start(script).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.post(path, request).await;
    let (body, end) = client.body().await;
    assert_eq!(end, End::Clean);
    body
}

#[tokio::test]
async fn chat_has_the_shape_of_the_engines() {
    let request = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},
                      "messages":[{"role":"user","content":"say it"}]}"#;
    let body = stream(Script::text("Hi \"you\""), "/v1/chat/completions", request).await;
    let head = r#"{"id":"chatcmpl-mock-00000001","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"mock","choices":"#;
    let delta = |delta: &str, reason: &str| {
        format!(
            r#"{head}[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}],"usage":null}}"#
        )
    };
    let expected = [
        delta(r#"{"role":"assistant","content":""}"#, "null"),
        delta(r#"{"content":"Hi"}"#, "null"),
        delta(r#"{"content":" \"you\""}"#, "null"),
        delta("{}", r#""stop""#),
        format!(
            r#"{head}[],"usage":{{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}}}}"#
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(&body), expected);
}

#[tokio::test]
async fn completions_have_the_shape_of_the_engines() {
    let body = stream(
        Script::tokens(2),
        "/v1/completions",
        r#"{"stream":true,"max_tokens":1}"#,
    )
    .await;
    let head = r#"{"id":"cmpl-mock-00000001","object":"text_completion","created":1700000000,"model":"mock","choices":"#;
    let expected = [
        format!(r#"{head}[{{"index":0,"text":"t1","logprobs":null,"finish_reason":null}}]}}"#),
        format!(r#"{head}[{{"index":0,"text":"","logprobs":null,"finish_reason":"length"}}]}}"#),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(&body), expected);
}

#[tokio::test]
async fn anthropic_has_the_shape_of_the_service() {
    let body = stream(
        Script::tokens(1),
        "/v1/messages",
        r#"{"model":"c","stream":true}"#,
    )
    .await;
    let expected = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg-mock-00000001","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":1}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\nevent: ping\n",
        r#"data: {"type":"ping"}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"t1"}}"#,
        "\n\nevent: content_block_stop\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\nevent: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}"#,
        "\n\nevent: message_stop\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[tokio::test]
async fn generic_streams_have_no_end_of_their_own() {
    let body = stream(Script::tokens(2), "/generic", "").await;
    let expected =
        "data: {\"text\":\"t1\",\"number\":1}\n\ndata: {\"text\":\" t2\",\"number\":2}\n\n";
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[tokio::test]
async fn several_choices_are_interleaved() {
    let request = r#"{"stream":true,"n":2}"#;
    let body = stream(Script::tokens(2), "/v1/chat/completions", request).await;
    let indexes: Vec<Value> = data(&body)
        .iter()
        .filter_map(|data| serde_json::from_str::<Value>(data).ok())
        .map(|chunk| chunk["choices"][0]["index"].clone())
        .collect();
    assert_eq!(indexes, [0, 1, 0, 1, 0, 1, 0, 1]);
}

#[tokio::test]
async fn token_ids_and_running_usage_when_asked_for() {
    let request = r#"{"stream":true,"return_token_ids":true,"prompt":"a b",
                      "stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
    let body = stream(Script::tokens(2), "/v1/completions", request).await;
    let chunks: Vec<Value> = data(&body)
        .iter()
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect();
    assert_eq!(chunks[0]["choices"][0]["prompt_token_ids"], json!([1, 2]));
    assert_eq!(chunks[0]["choices"][0]["token_ids"], json!([1000]));
    assert_eq!(chunks[1]["choices"][0]["token_ids"], json!([1001]));
    let running = json!({"prompt_tokens":2,"completion_tokens":2,"total_tokens":4});
    assert_eq!(chunks[1]["usage"], running);
    assert!(chunks[1]["choices"][0].get("prompt_token_ids").is_none());
}

#[tokio::test]
async fn an_answer_is_continued_by_prefill_and_by_token_ids() {
    let prefill = r#"{"stream":true,"continue_final_message":true,
                      "messages":[{"role":"assistant","content":"t1 t"}]}"#;
    let body = stream(Script::tokens(3), "/v1/chat/completions", prefill).await;
    let texts = |body: &[u8]| -> String {
        data(body)
            .iter()
            .filter_map(|data| serde_json::from_str::<Value>(data).ok())
            .filter_map(|chunk| {
                let choice = &chunk["choices"][0];
                choice["delta"]["content"]
                    .as_str()
                    .or(choice["text"].as_str())
                    .map(str::to_owned)
            })
            .collect()
    };
    assert_eq!(texts(&body), "2 t3");
    let ids = r#"{"stream":true,"return_token_ids":true,"prompt":[1,2,1000,1001]}"#;
    let body = stream(Script::tokens(3), "/v1/completions", ids).await;
    assert_eq!(texts(&body), " t3");
    assert!(data(&body)[0].contains(r#""token_ids":[1002],"prompt_token_ids":[1,2,3,4]"#));
}

#[tokio::test]
async fn unstreamed_answers_carry_the_same_text() {
    let mock = Mock::start(Script::tokens(2)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    for (dialect, pointer) in [
        (Dialect::OpenAiChat, "/choices/0/message/content"),
        (Dialect::OpenAiCompletions, "/choices/0/text"),
        (Dialect::OpenAiResponses, "/output/0/content/0/text"),
        (Dialect::AnthropicMessages, "/content/0/text"),
        (Dialect::Gemini, "/candidates/0/content/parts/0/text"),
    ] {
        let (path, model) = match dialect {
            Dialect::Gemini => ("/v1beta/models/m:generateContent", "/modelVersion"),
            _ => (dialect.path(), "/model"),
        };
        client.post(path, r#"{"model":"m","stream":false}"#).await;
        let (status, body) = client.json().await;
        assert_eq!(
            (status, body.pointer(pointer).unwrap()),
            (200, &json!("t1 t2")),
            "{dialect}"
        );
        assert_eq!(body.pointer(model).unwrap(), "m");
    }
}

#[tokio::test]
async fn expected_and_wire_tell_what_is_sent() {
    for dialect in Dialect::ALL {
        let script = Script::tokens(5);
        let mock = Mock::start(script.clone()).await.unwrap();
        let mut client = Client::connect(mock.addr()).await;
        client.post(dialect.path(), r#"{"stream":true}"#).await;
        let (body, _) = client.body().await;
        let ask = Ask::stream(dialect);
        assert_eq!(body, script.wire(&ask), "{dialect}");
        assert_eq!(body, script.expected(&ask).concat(), "{dialect}");
        let recorded = mock.recorder().request(0).unwrap().ask(dialect);
        assert_eq!(recorded, ask);
        let before = dialect.events_before_text(&script);
        assert!(
            script.expected(&ask)[before]
                .windows(2)
                .any(|pair| pair == b"t1"),
            "{dialect}"
        );
    }
}
