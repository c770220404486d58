//! Upgrades over HTTP/1.1.

use http::header::{CONNECTION, UPGRADE};
use http::{Request, StatusCode};
use http_body_util::Empty;
use streamweld_upstream::upgrade;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::raw::{Raw, client, read_head, send, within};

const SWITCHING: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

#[tokio::test]
async fn an_asked_upgrade_gives_the_bytes_in_both_directions() {
    let raw = Raw::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        // The first bytes of the new protocol come in one piece with the head.
        let early = format!("{SWITCHING}hello ");
        stream.write_all(early.as_bytes()).await.unwrap();
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
    .await;
    let request = Request::get("/x")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "echo")
        .body(Empty::new())
        .unwrap();
    let client = client();
    let mut response = within(client.send(&raw.backend(), request)).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let upgraded = upgrade(&mut response);
    // The response is only needed until then.
    drop(response);
    let mut upgraded = within(upgraded).await.unwrap();
    upgraded.write_all(b"world").await.unwrap();
    upgraded.shutdown().await.unwrap();
    let mut text = String::new();
    within(upgraded.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "hello world");
}

#[tokio::test]
async fn another_answer_is_no_upgrade() {
    let raw = Raw::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    within(upgrade(&mut response)).await.unwrap_err();
}
