//! Heads, and what is written between events.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::{Engine, Mock};

use super::{chat, script};
use crate::client::Client;

#[tokio::test]
async fn heads_are_those_of_the_engine() {
    for (engine, server, kind) in [
        (Engine::Vllm, "uvicorn", "text/event-stream; charset=utf-8"),
        (
            Engine::Sglang,
            "uvicorn",
            "text/event-stream; charset=utf-8",
        ),
        (Engine::LlamaCpp, "llama.cpp", "text/event-stream"),
    ] {
        let mock = Mock::start(script(engine)).await.unwrap();
        let mut client = Client::connect(mock.addr()).await;
        let body = chat(&json!({"return_token_ids": false}));
        client.post("/v1/chat/completions", &body.to_string()).await;
        let head = client.head().await;
        assert!(head.contains(&format!("server: {server}\r\n")), "{head}");
        assert!(
            head.contains(&format!("content-type: {kind}\r\n")),
            "{head}"
        );
        let buffering = head.contains("x-accel-buffering: no\r\n");
        assert_eq!(buffering, engine == Engine::LlamaCpp);
        client.chunks().await;
        client.get("/v1/models").await;
        let head = client.head().await;
        assert!(head.contains(&format!("server: {server}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn llama_cpp_comments_its_silence_as_often_as_it_is_asked_to() {
    let silent = script(Engine::LlamaCpp).stall_after(2);
    let mock = Mock::start(silent).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    let body = chat(&json!({"sse_ping_interval": 1}));
    client.post("/v1/chat/completions", &body.to_string()).await;
    client.head().await;
    for _ in 0..2 {
        let event = client.chunk().await.unwrap();
        assert!(event.starts_with(b"data: "));
    }
    for _ in 0..2 {
        assert_eq!(client.chunk().await.unwrap(), b":\n\n");
    }
    drop(client);
    mock.recorder().wait_closed(0).await.unwrap();
}

#[tokio::test]
async fn a_gate_ends_the_comments() {
    let waits = script(Engine::LlamaCpp).gate_after(2, "on");
    let mock = Mock::start(waits).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    let body = chat(&json!({"sse_ping_interval": 1}));
    client.post("/v1/chat/completions", &body.to_string()).await;
    client.head().await;
    while client.chunk().await.unwrap() != b":\n\n" {}
    mock.gates().release("on");
    let (chunks, _) = client.chunks().await;
    let rest = chunks.concat();
    assert!(rest.ends_with(b"data: [DONE]\n\n"));
    // None of the others comments anything.
    let other = Mock::start(script(Engine::Vllm).pause_after(2, Duration::from_millis(1100)));
    let other = other.await.unwrap();
    let mut client = Client::connect(other.addr()).await;
    client.post("/v1/chat/completions", &body.to_string()).await;
    let (body, _) = client.body().await;
    assert!(!String::from_utf8(body).unwrap().contains("\n:"));
}
