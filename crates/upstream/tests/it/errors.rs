//! What an error says, and what it keeps to itself.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use streamweld_upstream::{Backend, ErrorKind, Phase, UpstreamError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::raw::{
    FullQueue, Raw, backend, chain, client, client_with, read_head, reset, send, within,
};

/// Looks at everything an error says at once.
#[track_caller]
fn check(error: &UpstreamError, kind: ErrorKind, phase: Phase, sent: bool) {
    assert_eq!(error.kind(), kind, "{}", chain(error));
    assert_eq!(error.phase(), phase);
    assert_eq!(error.request_sent(), sent);
    assert_eq!(error.is_retry_safe(), !sent);
    assert_eq!(error.backend(), "engine-a");
    let text = error.to_string();
    assert!(text.starts_with("backend engine-a "), "{text}");
    assert!(!text.contains("127.0.0.1"), "{text}");
    assert!(error.source().is_some());
}

/// A backend where nobody listens.
async fn nobody() -> Backend {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    backend(&format!("http://127.0.0.1:{port}/s3cret"))
}

#[tokio::test]
async fn a_refused_connection() {
    let error = send(&client(), &nobody().await).await.unwrap_err();
    check(&error, ErrorKind::ConnectRefused, Phase::Connect, false);
    assert_eq!(error.to_string(), "backend engine-a refused the connection");
    assert!(!format!("{} {error:?}", chain(&error)).contains("s3cret"));
}

#[tokio::test]
async fn a_name_that_is_not_there() {
    let error = send(&client(), &backend("http://no-such-host.invalid")).await;
    check(&error.unwrap_err(), ErrorKind::Dns, Phase::Connect, false);
}

/// The accept queue is full, so that the kernel answers no further connection.
#[tokio::test]
async fn a_full_accept_queue_is_a_connect_timeout() {
    let full = FullQueue::start().await;
    let client = client_with(|config| config.connect_timeout = Duration::from_millis(100));
    let error = send(&client, &backend(&full.url())).await;
    check(
        &error.unwrap_err(),
        ErrorKind::ConnectTimeout,
        Phase::Connect,
        false,
    );
}

#[tokio::test]
async fn a_silent_tls_peer_is_a_connect_timeout() {
    let raw = Raw::answering("").await;
    let client = client_with(|config| config.connect_timeout = Duration::from_millis(50));
    let error = send(
        &client,
        &backend(&format!("https://127.0.0.1:{}", raw.port)),
    )
    .await;
    check(
        &error.unwrap_err(),
        ErrorKind::ConnectTimeout,
        Phase::Connect,
        false,
    );
}

#[tokio::test]
async fn a_peer_without_tls() {
    let raw = Raw::start(|mut stream, _| async move {
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        read_head(&mut stream).await;
    })
    .await;
    let error = send(
        &client(),
        &backend(&format!("https://127.0.0.1:{}", raw.port)),
    )
    .await;
    check(&error.unwrap_err(), ErrorKind::Tls, Phase::Connect, false);
}

#[tokio::test]
async fn no_head_in_time() {
    for answer in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let raw = Raw::answering(answer).await;
        let client = client_with(|config| {
            config.first_byte_timeout = Some(Duration::from_millis(50));
        });
        let error = send(&client, &raw.backend()).await.unwrap_err();
        check(&error, ErrorKind::FirstByteTimeout, Phase::Head, true);
    }
}

#[tokio::test]
async fn an_end_before_the_head() {
    for answer in ["", "HTTP/1.1 200 OK\r\nconte"] {
        let raw = Raw::closing(answer).await;
        let error = send(&client(), &raw.backend()).await.unwrap_err();
        check(&error, ErrorKind::Closed, Phase::Head, true);
    }
}

#[tokio::test]
async fn a_reset_before_the_head() {
    let raw = Raw::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        reset(stream);
    })
    .await;
    let error = send(&client(), &raw.backend()).await.unwrap_err();
    check(&error, ErrorKind::Closed, Phase::Head, true);
}

#[tokio::test]
async fn a_request_body_that_fails() {
    let raw =
        Raw::start(|mut stream, _| async move { while read_head(&mut stream).await.is_some() {} })
            .await;
    let request = Request::post("/x").body(Failing).unwrap();
    let error = within(client().send(&raw.backend(), request))
        .await
        .unwrap_err();
    check(&error, ErrorKind::RequestBody, Phase::Send, true);
    assert!(
        chain(&error).contains("the client went away"),
        "{}",
        chain(&error)
    );
}

/// A body that fails at once.
pub(crate) struct Failing;

impl Body for Failing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(io::Error::other("the client went away"))))
    }
}

/// The words are promised to dashboards.
#[test]
fn kinds_have_stable_words() {
    use ErrorKind::*;
    let kinds = [
        ConnectRefused,
        ConnectTimeout,
        ConnectFailed,
        Dns,
        Tls,
        Send,
        RequestBody,
        Closed,
        FirstByteTimeout,
        BadResponse,
    ];
    let words = [
        "connect_refused",
        "connect_timeout",
        "connect_failed",
        "dns",
        "tls",
        "send",
        "request_body",
        "closed",
        "first_byte_timeout",
        "bad_response",
    ];
    assert_eq!(kinds.map(ErrorKind::as_str), words);
}
