//! How a body over HTTP/1.1 ends, and what happens when it is let go.

use std::pin::pin;
use std::time::Duration;

use http::Request;
use http_body::Body;
use http_body_util::BodyExt;
use streamweld_upstream::{CutKind, Read};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use crate::raw::{Endless, Raw, client, client_with, drain, read_head, reset, send, within};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const LENGTH_5: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK\r\n\r\n";

/// The backend sends head and rest, then closes.
async fn check(head: &str, rest: &str, data: &str, cut: Option<CutKind>) {
    let raw = Raw::closing(format!("{head}{rest}")).await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    let source = response.body_mut();
    assert_eq!(source.is_close_delimited(), head == UNTIL_CLOSE);
    assert_eq!(drain(source).await, (data.into(), cut), "{head}{rest}");
    // The end stays what it was.
    assert_eq!(drain(source).await, (String::new(), cut), "{head}{rest}");
}

#[tokio::test]
async fn proper_ends() {
    check(CHUNKED, "5\r\nabcde\r\n0\r\n\r\n", "abcde", None).await;
    check(
        CHUNKED,
        "5;x=y\r\nabcde\r\n0\r\nx: y\r\n\r\n",
        "abcde",
        None,
    )
    .await;
    check(CHUNKED, "0\r\n\r\n", "", None).await;
    check(LENGTH_5, "abcde", "abcde", None).await;
    check(UNTIL_CLOSE, "abcde", "abcde", None).await;
    check(UNTIL_CLOSE, "", "", None).await;
}

/// Every place where a chunked body can be broken off. Only what was complete is an end.
#[tokio::test]
async fn a_body_cut_anywhere_is_incomplete() {
    let whole = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for length in 0..whole.len() {
        let raw = Raw::closing(format!("{CHUNKED}{}", &whole[..length])).await;
        let mut response = send(&client(), &raw.backend()).await.unwrap();
        let (data, cut) = drain(response.body_mut()).await;
        assert!("abcde".starts_with(&data), "{data}");
        assert_eq!(cut, Some(CutKind::Incomplete), "at {length}");
    }
    for length in 0..5 {
        let data = &"abcde"[..length];
        check(LENGTH_5, data, data, Some(CutKind::Incomplete)).await;
    }
}

#[tokio::test]
async fn broken_framing() {
    for rest in [
        "+5\r\nabcde\r\n",
        "x\r\n",
        "-1\r\n",
        "fffffffffffffffff\r\n",
        "3\r\nabcX\r\n",
        "0x3\r\nabc\r\n",
    ] {
        let raw = Raw::answering(format!("{CHUNKED}{rest}")).await;
        let mut response = send(&client(), &raw.backend()).await.unwrap();
        let (_, cut) = drain(response.body_mut()).await;
        assert_eq!(cut, Some(CutKind::BadFraming), "{rest:?}");
    }
}

#[tokio::test]
async fn a_reset_is_a_cut_in_every_framing() {
    for head in [CHUNKED, LENGTH_5, UNTIL_CLOSE] {
        let (go, wait) = oneshot::channel();
        let wait = std::sync::Mutex::new(Some(wait));
        let raw = Raw::start(move |mut stream, _| {
            let wait = wait.lock().unwrap().take().unwrap();
            async move {
                read_head(&mut stream).await;
                stream.write_all(head.as_bytes()).await.unwrap();
                wait.await.unwrap();
                reset(stream);
            }
        })
        .await;
        let mut response = send(&client(), &raw.backend()).await.unwrap();
        go.send(()).unwrap();
        let (_, cut) = drain(response.body_mut()).await;
        assert_eq!(cut, Some(CutKind::Reset), "{head}");
    }
}

#[tokio::test]
async fn trailers_come_before_the_end() {
    let raw = Raw::answering(format!("{CHUNKED}1\r\na\r\n0\r\nx-sum: 7\r\n\r\n")).await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    let source = response.body_mut();
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "a"));
    match within(source.read()).await {
        Read::Trailers(trailers) => assert_eq!(trailers["x-sum"], "7"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(within(source.read()).await, Read::End));
}

#[tokio::test]
async fn what_is_ready_can_be_taken_without_waiting() {
    let (go, wait) = oneshot::channel();
    let raw = stepwise(format!("{CHUNKED}1\r\na\r\n"), wait, "1\r\nb\r\n").await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    let source = response.body_mut();
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "a"));
    assert!(source.try_read_ready().is_none());
    go.send(()).unwrap();
    within(async {
        loop {
            match source.try_read_ready() {
                Some(Read::Data(data)) => return assert_eq!(data, "b"),
                Some(other) => panic!("{other:?}"),
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    assert!(source.try_read_ready().is_none());
}

/// Answers one request with `first`, and with `then` when told to go on.
async fn stepwise(first: String, wait: oneshot::Receiver<()>, then: &'static str) -> Raw {
    let script = std::sync::Mutex::new(Some((first, wait)));
    Raw::start(move |mut stream, _| {
        let (first, wait) = script.lock().unwrap().take().unwrap();
        async move {
            read_head(&mut stream).await;
            stream.write_all(first.as_bytes()).await.unwrap();
            wait.await.unwrap();
            stream.write_all(then.as_bytes()).await.unwrap();
            while stream.read_u8().await.is_ok() {}
        }
    })
    .await
}

/// However many chunks it holds, and with the head or behind it.
#[tokio::test]
async fn one_read_gives_one_piece() {
    let (go, wait) = oneshot::channel();
    let many = "1\r\nd\r\n2;x=y\r\nef\r\n03 \r\nghi\r\n0\r\n\r\n";
    let raw = stepwise(format!("{CHUNKED}1\r\na\r\n2\r\nbc\r\n"), wait, many).await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    let source = response.body_mut();
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "abc"));
    go.send(()).unwrap();
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "defghi"));
    assert!(matches!(source.try_read_ready(), Some(Read::End)));
}

#[tokio::test]
async fn silence_cuts_when_a_limit_is_set() {
    let raw = Raw::answering(format!("{CHUNKED}1\r\na\r\n")).await;
    let client = client_with(|config| {
        config.between_bytes_timeout = Some(Duration::from_millis(50));
    });
    let mut response = send(&client, &raw.backend()).await.unwrap();
    let (data, cut) = drain(response.body_mut()).await;
    assert_eq!((data.as_str(), cut), ("a", Some(CutKind::TimedOut)));
}

/// Reports when the peer has closed its connection.
async fn watched(answer: &'static str) -> (Raw, oneshot::Receiver<()>) {
    let (closed, wait) = oneshot::channel();
    let closed = std::sync::Mutex::new(Some(closed));
    let raw = Raw::start(move |mut stream, _| {
        let closed = closed.lock().unwrap().take().unwrap();
        async move {
            read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            let mut rest = [0; 1024];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            closed.send(()).unwrap();
        }
    })
    .await;
    (raw, wait)
}

#[tokio::test]
async fn dropping_a_source_closes_the_connection() {
    let (raw, closed) = watched("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let client = client();
    drop(send(&client, &raw.backend()).await.unwrap());
    within(closed).await.unwrap();
}

#[tokio::test]
async fn dropping_a_source_closes_the_connection_while_the_request_is_being_sent() {
    let (raw, closed) = watched("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let client = client();
    let request = Request::post("/x").body(Endless).unwrap();
    drop(within(client.send(&raw.backend(), request)).await.unwrap());
    within(closed).await.unwrap();
}

#[tokio::test]
async fn dropping_a_request_closes_the_connection() {
    let (raw, closed) = watched("").await;
    let client = client();
    let backend = raw.backend();
    {
        let mut request = pin!(client.send(&backend, crate::raw::get("/x")));
        while raw.connections() == 0 {
            tokio::select! {
                biased;
                _ = &mut request => panic!("nothing was answered"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    within(closed).await.unwrap();
}

#[tokio::test]
async fn as_a_body_it_keeps_its_length_and_its_error() {
    let raw = Raw::closing(format!("{LENGTH_5}abc")).await;
    let response = send(&client(), &raw.backend()).await.unwrap();
    let mut body = response.into_body().into_body();
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(!body.is_end_stream());
    let frame = within(body.frame()).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "abc");
    let error = within(body.frame()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), CutKind::Incomplete);
    assert!(!body.is_end_stream());
}
