//! HTTP/2 by prior knowledge: the same promises, other frames.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, HOST, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::Empty;
use streamweld_upstream::{Client, CutKind, ErrorKind, Protocol, Read, UpstreamConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::errors::Failing;
use crate::raw::{Endless, Raw, chain, client_with, drain, get, send, within};

/// A backend that runs `script` for each request.
pub(crate) async fn backend<F, Fut>(script: F) -> Raw
where
    F: Fn(Request<RecvStream>, SendResponse<Bytes>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    configured(h2::server::Builder::new(), script).await
}

async fn configured<F, Fut>(builder: h2::server::Builder, script: F) -> Raw
where
    F: Fn(Request<RecvStream>, SendResponse<Bytes>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Raw::start(move |stream, _| {
        let (builder, script) = (builder.clone(), script.clone());
        async move {
            let mut connection = builder.handshake(stream).await.unwrap();
            let mut scripts = tokio::task::JoinSet::new();
            while let Some(Ok((request, respond))) = connection.accept().await {
                scripts.spawn(script(request, respond));
            }
        }
    })
    .await
}

fn client() -> Client {
    client_with(prior_knowledge)
}

fn prior_knowledge(config: &mut UpstreamConfig) {
    config.protocol = Protocol::Http2;
}

/// Sends a head and `data`; the stream stays open.
fn begin(respond: &mut SendResponse<Bytes>, data: &'static str) -> SendStream<Bytes> {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data(data.into(), false).unwrap();
    stream
}

#[tokio::test]
async fn a_whole_response_with_trailers() {
    let raw = backend(|request, mut respond| async move {
        assert_eq!(request.uri().path(), "/x");
        assert_eq!(request.uri().authority().unwrap().host(), "127.0.0.1");
        assert!(!request.headers().contains_key(HOST));
        let mut stream = begin(&mut respond, "abc");
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("7"));
        stream.send_trailers(trailers).unwrap();
    })
    .await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let source = response.body_mut();
    assert!(!source.is_close_delimited());
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "abc"));
    assert!(matches!(within(source.read()).await, Read::Trailers(t) if t["x-sum"] == "7"));
    assert!(matches!(within(source.read()).await, Read::End));
}

/// hyper alone would report the first as a proper end.
#[tokio::test]
async fn a_reset_stream_is_a_cut_whatever_the_reason() {
    for reason in [Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR] {
        let go = Arc::new(Notify::new());
        let wait = Arc::clone(&go);
        let raw = backend(move |_, mut respond| {
            let wait = Arc::clone(&wait);
            async move {
                let mut stream = begin(&mut respond, "abc");
                wait.notified().await;
                stream.send_reset(reason);
            }
        })
        .await;
        let mut response = send(&client(), &raw.backend()).await.unwrap();
        let source = response.body_mut();
        assert!(matches!(within(source.read()).await, Read::Data(data) if data == "abc"));
        go.notify_one();
        assert_eq!(
            drain(source).await,
            (String::new(), Some(CutKind::Reset)),
            "{reason}"
        );
    }
}

/// An h2 server that has answered without reading the request says RST_STREAM(NO_ERROR) behind its
/// END_STREAM: the rest of the request is not needed.
#[tokio::test]
async fn an_early_answer_is_an_end() {
    let raw = backend(|request, mut respond| async move {
        let mut stream = begin(&mut respond, "abc");
        stream.send_data(Bytes::new(), true).unwrap();
        drop(request);
    })
    .await;
    let request = Request::post("/x").body(Endless).unwrap();
    let mut response = within(client().send(&raw.backend(), request))
        .await
        .unwrap();
    assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
}

/// A backend that answers, waits, and then says GOAWAY(NO_ERROR), naming our stream as not accepted.
pub(crate) async fn disowning(wait: Arc<Notify>) -> Raw {
    const FRAMES: [&[u8]; 4] = [
        b"\0\0\0\x04\0\0\0\0\0",                   // SETTINGS
        b"\0\0\x01\x01\x04\0\0\0\x01\x88",         // HEADERS, stream 1: status 200
        b"\0\0\x03\0\0\0\0\0\x01abc",              // DATA, stream 1
        b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0", // GOAWAY, last stream 0, NO_ERROR
    ];
    Raw::start(move |mut stream, _| {
        let wait = Arc::clone(&wait);
        async move {
            let mut some = [0; 1024];
            let mut preface = 0;
            // The request is there when its HEADERS frame is; the answer may as well come before.
            while preface < 24 {
                preface += stream.read(&mut some).await.unwrap();
            }
            stream.write_all(FRAMES[0]).await.unwrap();
            let _ = stream.read(&mut some).await.unwrap();
            stream.write_all(FRAMES[1]).await.unwrap();
            stream.write_all(FRAMES[2]).await.unwrap();
            wait.notified().await;
            stream.write_all(FRAMES[3]).await.unwrap();
            while stream.read(&mut some).await.is_ok_and(|read| read > 0) {}
        }
    })
    .await
}

/// hyper alone would report a proper end.
#[tokio::test]
async fn a_disowned_stream_is_a_cut() {
    let go = Arc::new(Notify::new());
    let raw = disowning(Arc::clone(&go)).await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    let source = response.body_mut();
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "abc"));
    go.notify_one();
    let end = drain(source).await;
    assert_eq!(end, (String::new(), Some(CutKind::Reset)));
}

/// How the connection goes away in the middle of a body.
#[derive(Clone, Copy)]
enum Goes {
    Dropped,
    Reset,
    /// GOAWAY with this reason, then the end.
    Away(Reason),
}

async fn connection_goes(how: Goes, expected: CutKind) {
    let (tx, mut head_sent) = mpsc::channel::<()>(1);
    let raw = Raw::start(move |stream: TcpStream, _| {
        let tx = tx.clone();
        async move {
            let copy = socket2::SockRef::from(&stream).try_clone().unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            let stream = begin(&mut respond, "abc");
            let mut sent = false;
            // The connection runs until the head is read and `tx` has no more receiver.
            let mut closed = std::pin::pin!(tx.closed());
            poll_fn(|cx| {
                let _ = connection.poll_closed(cx);
                if !sent {
                    sent = true;
                    let _ = tx.try_send(());
                }
                closed.as_mut().poll(cx)
            })
            .await;
            match how {
                Goes::Dropped => {}
                Goes::Reset => copy.set_linger(Some(Duration::ZERO)).unwrap(),
                Goes::Away(reason) => {
                    connection.abrupt_shutdown(reason);
                    let _ = poll_fn(|cx| connection.poll_closed(cx)).await;
                }
            }
            drop((stream, connection));
        }
    })
    .await;
    let mut response = send(&client(), &raw.backend()).await.unwrap();
    let source = response.body_mut();
    assert!(matches!(within(source.read()).await, Read::Data(data) if data == "abc"));
    within(head_sent.recv()).await.unwrap();
    drop(head_sent);
    assert_eq!(drain(source).await, (String::new(), Some(expected)));
}

#[tokio::test]
async fn a_connection_that_ends_cuts_its_streams() {
    connection_goes(Goes::Dropped, CutKind::Incomplete).await;
}

#[tokio::test]
async fn a_connection_that_is_reset_cuts_its_streams() {
    connection_goes(Goes::Reset, CutKind::Reset).await;
}

#[tokio::test]
async fn a_connection_that_goes_away_cuts_its_streams() {
    connection_goes(Goes::Away(Reason::NO_ERROR), CutKind::Incomplete).await;
    connection_goes(Goes::Away(Reason::INTERNAL_ERROR), CutKind::Incomplete).await;
}

#[tokio::test]
async fn dropping_a_source_resets_its_stream_only() {
    let (tx, mut resets) = mpsc::channel(1);
    let raw = backend(move |request, mut respond| {
        let tx = tx.clone();
        async move {
            let mut stream = begin(&mut respond, "abc");
            if request.uri().path() == "/left" {
                let reason = poll_fn(|cx| stream.poll_reset(cx)).await.unwrap();
                tx.send(reason).await.unwrap();
            } else {
                stream.send_data("def".into(), true).unwrap();
            }
        }
    })
    .await;
    let client = client();
    let left = within(client.send(&raw.backend(), get("/left")))
        .await
        .unwrap();
    let mut kept = within(client.send(&raw.backend(), get("/kept")))
        .await
        .unwrap();
    drop(left);
    assert_eq!(within(resets.recv()).await, Some(Reason::CANCEL));
    assert_eq!(drain(kept.body_mut()).await, ("abcdef".into(), None));
    assert_eq!(raw.connections(), 1);
}

/// A backend that answers at once and reports when the connection has gone.
async fn reporting() -> (Raw, mpsc::Receiver<()>) {
    let (tx, closed) = mpsc::channel(1);
    let raw = Raw::start(move |stream, _| {
        let tx = tx.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                respond.send_response(Response::new(()), true).unwrap();
            }
            tx.send(()).await.unwrap();
        }
    })
    .await;
    (raw, closed)
}

#[tokio::test]
async fn dropping_the_client_closes_an_unused_connection() {
    let (raw, mut closed) = reporting().await;
    let client = client();
    let mut response = send(&client, &raw.backend()).await.unwrap();
    drain(response.body_mut()).await;
    drop(client);
    // What is left of the response holds no connection.
    within(closed.recv()).await.unwrap();
    drop(response);
}

#[tokio::test]
async fn an_unused_connection_is_closed_in_time() {
    let (raw, mut closed) = reporting().await;
    let client = client_with(|config| {
        prior_knowledge(config);
        config.pool_idle_timeout = Duration::from_millis(20);
    });
    let mut response = send(&client, &raw.backend()).await.unwrap();
    drain(response.body_mut()).await;
    within(closed.recv()).await.unwrap();
}

/// Silence ends the stream at once, not only when the source is let go.
#[tokio::test]
async fn a_stream_that_timed_out_is_reset() {
    let (tx, mut resets) = mpsc::channel(1);
    let raw = backend(move |_, mut respond| {
        let tx = tx.clone();
        async move {
            let mut stream = begin(&mut respond, "abc");
            let reason = poll_fn(|cx| stream.poll_reset(cx)).await.unwrap();
            tx.send(reason).await.unwrap();
        }
    })
    .await;
    let client = client_with(|config| {
        prior_knowledge(config);
        config.between_bytes_timeout = Some(Duration::from_millis(50));
    });
    let mut response = send(&client, &raw.backend()).await.unwrap();
    let end = drain(response.body_mut()).await;
    assert_eq!(end, ("abc".into(), Some(CutKind::TimedOut)));
    assert_eq!(within(resets.recv()).await, Some(Reason::CANCEL));
    drop(response);
}

/// A stream beyond the peer's limit would wait for another stream's end without a word.
#[tokio::test]
async fn more_streams_than_allowed_take_another_connection() {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(2);
    let raw = configured(builder, |_, mut respond| async move {
        let mut stream = begin(&mut respond, "abc");
        let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
    })
    .await;
    let client = client();
    let mut responses = Vec::new();
    for _ in 0..6 {
        responses.push(send(&client, &raw.backend()).await.unwrap());
    }
    assert_eq!(raw.connections(), 3);
}

#[tokio::test]
async fn a_refused_stream_may_be_retried() {
    let raw = backend(|_, mut respond| async move {
        respond.send_reset(Reason::REFUSED_STREAM);
    })
    .await;
    let error = send(&client(), &raw.backend()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{}", chain(&error));
    assert!(error.request_sent() && error.is_retry_safe());
}

#[tokio::test]
async fn a_reset_before_the_head_may_not() {
    let raw = backend(|_, mut respond| async move {
        respond.send_reset(Reason::INTERNAL_ERROR);
    })
    .await;
    let error = send(&client(), &raw.backend()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{}", chain(&error));
    assert!(error.request_sent() && !error.is_retry_safe());
}

#[tokio::test]
async fn a_request_body_that_fails() {
    let raw = backend(|mut request, respond| async move {
        while request
            .body_mut()
            .data()
            .await
            .is_some_and(|data| data.is_ok())
        {}
        drop(respond);
    })
    .await;
    let request = Request::post("/x").body(Failing).unwrap();
    let error = within(client().send(&raw.backend(), request))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RequestBody, "{}", chain(&error));
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let raw = backend(|_, mut respond| async move {
        let mut response = Response::new(());
        for number in 0..101 {
            let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static("y"));
        }
        respond.send_response(response, true).unwrap();
    })
    .await;
    let error = send(&client(), &raw.backend()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadResponse, "{}", chain(&error));
}

/// What only HTTP/1.1 has is dropped on the way, not sent as a protocol error.
#[tokio::test]
async fn an_upgrade_does_not_pass() {
    let raw = backend(|request, mut respond| async move {
        assert!(!request.headers().contains_key(UPGRADE));
        respond.send_response(Response::new(()), true).unwrap();
    })
    .await;
    let request = Request::get("/x")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "echo")
        .body(Empty::new())
        .unwrap();
    let mut response = within(client().send(&raw.backend(), request))
        .await
        .unwrap();
    assert_eq!(drain(response.body_mut()).await, (String::new(), None));
}

#[tokio::test]
async fn a_peer_that_speaks_http_1_only() {
    let raw = Raw::answering("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let error = send(&client(), &raw.backend()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadResponse, "{}", chain(&error));
}
