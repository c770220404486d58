//! Holding a stream at an exact event.

use std::time::Duration;

use streamweld_mock::{Mock, Script};
use tokio::time::Instant;

use crate::client::{Client, End};

#[tokio::test]
async fn nothing_is_written_beyond_a_gate() {
    let mock = Mock::start(Script::tokens(4).gate_after(3, "three"))
        .await
        .unwrap();
    let mut client = Client::stream_chat(mock.addr()).await;
    mock.gates().wait_arrived("three", 1).await.unwrap();
    client.head().await;
    for _ in 0..3 {
        client.chunk().await.unwrap();
    }
    assert!(client.input.is_empty());
    mock.gates().release("three");
    let (chunks, end) = client.chunks().await;
    assert_eq!((chunks.len(), end), (4, End::Clean));
}

#[tokio::test]
async fn every_event_waits_for_its_step() {
    let mock = Mock::start(Script::tokens(2).step_gate("tick"))
        .await
        .unwrap();
    let mut client = Client::stream_chat(mock.addr()).await;
    client.head().await;
    for event in 1..=5 {
        mock.gates().wait_arrived("tick", event).await.unwrap();
        assert!(client.input.is_empty());
        mock.gates().step("tick");
        client.chunk().await.unwrap();
    }
    assert_eq!(client.chunks().await, (Vec::new(), End::Clean));
}

#[tokio::test]
async fn the_head_waits_for_its_gate() {
    let mock = Mock::start(Script::tokens(1).head_gate("head"))
        .await
        .unwrap();
    let mut client = Client::stream_chat(mock.addr()).await;
    mock.gates().wait_arrived("head", 1).await.unwrap();
    assert_eq!(mock.recorder().count(), 1);
    mock.gates().release("head");
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn delays_are_kept() {
    let ms = Duration::from_millis;
    let script = Script {
        head_delay: ms(20),
        first_token_delay: ms(30),
        pace: ms(10),
        ..Script::tokens(2)
    };
    let mock = Mock::start(script).await.unwrap();
    let start = Instant::now();
    let mut client = Client::stream_chat(mock.addr()).await;
    client.head().await;
    assert!(start.elapsed() >= ms(20));
    let (_, end) = client.chunks().await;
    assert_eq!(end, End::Clean);
    // Head, first token, and four gaps between five events.
    assert!(start.elapsed() >= ms(20 + 30 + 40));
}
