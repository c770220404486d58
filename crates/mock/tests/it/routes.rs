//! Which answer a request gets.

use serde_json::json;
use streamweld_mock::{Dialect, Mock, Raw, Script};

use crate::client::{Client, End};

async fn get(mock: &Mock, target: &str) -> (u16, serde_json::Value) {
    let mut client = Client::connect(mock.addr()).await;
    client.get(target).await;
    client.json().await
}

#[tokio::test]
async fn built_in_paths() {
    let mock = Mock::start(Script::new()).await.unwrap();
    assert_eq!(get(&mock, "/health").await.0, 200);
    mock.set_healthy(false);
    assert_eq!(get(&mock, "/health").await.0, 503);
    assert_eq!(get(&mock, "/v1/models").await.1["data"][0]["id"], "mock");
    assert_eq!(get(&mock, "/nothing").await.0, 404);
    assert_eq!(get(&mock, "/upgrade").await.0, 426);
}

#[tokio::test]
async fn a_head_request_gets_no_body() {
    let mock = Mock::start(Script::new()).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client
        .send("HEAD /health HTTP/1.1\r\nconnection: close\r\n\r\n")
        .await;
    assert!(client.head().await.contains("content-length: 15\r\n"));
    assert_eq!(client.rest().await, (Vec::new(), End::Fin));
}

#[tokio::test]
async fn scripts_queue_and_then_the_default_answers() {
    let mock = Mock::start(Script::tokens(1)).await.unwrap();
    mock.push_script(Script::error(429).header("retry-after", "3"));
    let mut client = Client::stream_chat(mock.addr()).await;
    let (status, body) = {
        let head = client.head().await;
        assert!(head.contains("retry-after: 3\r\n"));
        client.input.splice(0..0, head.into_bytes());
        client.json().await
    };
    assert_eq!(
        (status, &body["error"]["type"]),
        (429, &json!("rate_limit_error"))
    );
    client.get("/health").await;
    assert_eq!(client.json().await.0, 200);
    client
        .post("/v1/chat/completions", r#"{"stream":true}"#)
        .await;
    assert_eq!(client.body().await.1, End::Clean);
}

#[tokio::test]
async fn errors_speak_the_dialect() {
    let mock = Mock::start(Script::error(529)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.post("/v1/messages", r#"{"stream":true}"#).await;
    let (status, body) = client.json().await;
    assert_eq!(status, 529);
    assert_eq!(
        (&body["type"], &body["error"]["type"]),
        (&json!("error"), &json!("overloaded_error"))
    );
}

#[tokio::test]
async fn a_path_can_have_its_own_answer() {
    let mock = Mock::start(Script::new()).await.unwrap();
    mock.set_script_at("/tokenize", Script::answer(200, json!({"tokens":[1]})));
    mock.set_script_at("/health", Script::error(500));
    mock.set_script_at("/stream", Script::tokens(1).dialect(Dialect::Generic));
    assert_eq!(get(&mock, "/tokenize").await, (200, json!({"tokens":[1]})));
    assert_eq!(get(&mock, "/health").await.0, 500);
    let mut client = Client::connect(mock.addr()).await;
    client.get("/stream").await;
    assert!(client.body().await.0.starts_with(b"data: {\"text\":\"t1\""));
}

#[tokio::test]
async fn a_request_can_bring_its_script() {
    let mock = Mock::start(Script::tokens(9)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client
        .get("/feed?mock.tokens=2&mock.end=clean_after:1")
        .await;
    assert_eq!(
        client.body().await.0,
        b"data: {\"text\":\"t1\",\"number\":1}\nid: 1\n\n"
    );
    let script = r#"{"text":"hi","tokens":null}"#;
    client
        .send(format!(
            "GET /feed HTTP/1.1\r\nx-mock-script: {script}\r\n\r\n"
        ))
        .await;
    assert_eq!(
        client.body().await.0,
        b"data: {\"text\":\"hi\",\"number\":1}\nid: 1\n\n"
    );
}

#[tokio::test]
async fn a_bad_script_is_told() {
    let mock = Mock::start(Script::new()).await.unwrap();
    let (status, body) = get(&mock, "/feed?mock.tokns=2").await;
    assert_eq!(status, 400);
    assert!(body["error"]["message"].as_str().unwrap().contains("tokns"));
}

#[tokio::test]
async fn a_raw_default_answers_everywhere() {
    let raw = Raw::new().write("HTTP/1.1 204 No Content\r\n\r\n");
    let mock = Mock::start(Script::raw(raw)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.get("/whatever").await;
    assert!(client.head().await.starts_with("HTTP/1.1 204"));
}
