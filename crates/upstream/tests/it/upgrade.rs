//! Upgrades over HTTP/1.1.

use http::header::{CONNECTION, UPGRADE};
use http::{Request, StatusCode};
use http_body_util::Empty;
use streamweld_upstream::{ErrorKind, upgrade};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::raw::{Endless, Raw, client, read_head, send, within};

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

/// What the backend would read next is the rest of the request, and what it calls the new protocol.
#[tokio::test]
async fn an_upgrade_before_the_whole_request_is_refused() {
    let raw = Raw::answering(SWITCHING).await;
    let request = Request::post("/x")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "echo")
        .body(Endless)
        .unwrap();
    let error = within(client().send(&raw.backend(), request)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::BadResponse);
}

/// Who does not want the tunnel lets go of its connection.
#[tokio::test]
async fn an_upgrade_that_is_not_taken_over_is_closed() {
    let (tx, closed) = tokio::sync::oneshot::channel();
    let tx = std::sync::Mutex::new(Some(tx));
    let raw = Raw::start(move |mut stream, _| {
        let tx = tx.lock().unwrap().take().unwrap();
        async move {
            read_head(&mut stream).await;
            stream.write_all(SWITCHING.as_bytes()).await.unwrap();
            while stream.read_u8().await.is_ok() {}
            tx.send(()).unwrap();
        }
    })
    .await;
    let request = Request::get("/x")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "echo")
        .body(Empty::new())
        .unwrap();
    let client = client();
    drop(within(client.send(&raw.backend(), request)).await.unwrap());
    within(closed).await.unwrap();
}

#[tokio::test]
async fn another_answer_is_no_upgrade() {
    let raw = Raw::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    within(upgrade(&mut response)).await.unwrap_err();
}
