//! What a request looks like on the wire over HTTP/1.1, and what becomes of it when it is not wanted
//! whole.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Empty, Full};
use streamweld_upstream::{BoxError, CutKind, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::raw::{Endless, Raw, chain, client, drain, read_head, within};

/// A body of these frames, which may say how long it is.
struct Frames {
    frames: Vec<Frame<Bytes>>,
    length: Option<u64>,
}

impl Frames {
    fn new(frames: impl IntoIterator<Item = Frame<Bytes>>, length: Option<u64>) -> Self {
        let mut frames: Vec<_> = frames.into_iter().collect();
        frames.reverse();
        Self { frames, length }
    }

    fn data(pieces: &[&'static str], length: Option<u64>) -> Self {
        Self::new(
            pieces.iter().map(|&piece| Frame::data(piece.into())),
            length,
        )
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.frames.pop().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// A backend that gives on all it reads until `end`, then answers.
async fn recorder(end: &'static str) -> (Raw, mpsc::Receiver<String>) {
    let (tx, rx) = mpsc::channel(1);
    let raw = Raw::start(move |mut stream, _| {
        let tx = tx.clone();
        async move {
            let mut seen = Vec::new();
            while !seen.ends_with(end.as_bytes()) {
                seen.push(stream.read_u8().await.unwrap());
            }
            tx.send(String::from_utf8(seen).unwrap()).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            while stream.read_u8().await.is_ok() {}
        }
    })
    .await;
    (raw, rx)
}

async fn check<B>(request: Request<B>, end: &'static str, expected: &str)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (raw, mut seen) = recorder(end).await;
    within(client().send(&raw.backend(), request))
        .await
        .unwrap();
    let seen = within(seen.recv()).await.unwrap();
    let host = format!("host: 127.0.0.1:{}\r\n", raw.port);
    assert_eq!(seen.replacen(&host, "", 1), expected);
}

fn post<B>(body: B) -> Request<B> {
    Request::post("/x").header("x-a", "1").body(body).unwrap()
}

#[tokio::test]
async fn a_body_of_known_length() {
    let head = "POST /x HTTP/1.1\r\nx-a: 1\r\ncontent-length: 3\r\n\r\n";
    let expected = format!("{head}abc");
    check(post(Full::<Bytes>::from("abc")), "abc", &expected).await;
    let body = Frames::data(&["a", "", "bc"], Some(3));
    check(post(body), "abc", &expected).await;
}

#[tokio::test]
async fn a_body_of_unknown_length() {
    let head = "POST /x HTTP/1.1\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    let body = Frames::data(&["a", "", "0123456789abcdef"], None);
    let expected = format!("{head}1\r\na\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
    check(post(body), "0\r\n\r\n", &expected).await;
    let none = Frames::data(&[], None);
    check(post(none), "0\r\n\r\n", &format!("{head}0\r\n\r\n")).await;
}

/// Those that would make another request of it are left out.
#[tokio::test]
async fn trailers() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    trailers.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
    let head = "POST /x HTTP/1.1\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    let frames = [Frame::data("a".into()), Frame::trailers(trailers.clone())];
    let expected = format!("{head}1\r\na\r\n0\r\nx-sum: 7\r\n\r\n");
    check(post(Frames::new(frames, None)), "7\r\n\r\n", &expected).await;
    let body = Frames::new([Frame::trailers(trailers)], None);
    check(
        post(body),
        "7\r\n\r\n",
        &format!("{head}0\r\nx-sum: 7\r\n\r\n"),
    )
    .await;
}

#[tokio::test]
async fn no_body() {
    let request = |method: Method| {
        let request = Request::builder().method(method).uri("/x");
        request.body(Empty::new()).unwrap()
    };
    for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
        let expected = format!("{method} /x HTTP/1.1\r\n\r\n");
        check(request(method), "\r\n\r\n", &expected).await;
    }
    let expected = "POST /x HTTP/1.1\r\ncontent-length: 0\r\n\r\n";
    check(request(Method::POST), "\r\n\r\n", expected).await;
}

/// What its success would mean is not HTTP any more.
#[tokio::test]
async fn connect_is_not_sent() {
    let raw = Raw::answering("HTTP/1.1 200 OK\r\n\r\n").await;
    let request = Request::connect("/x").body(Empty::new()).unwrap();
    let error = within(client().send(&raw.backend(), request)).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Send, "{}", chain(&error));
    assert!(!error.request_sent());
}

/// Given framing is not believed.
#[tokio::test]
async fn the_body_decides_its_framing() {
    let mut request = Request::get("/x").body(Full::<Bytes>::from("abc")).unwrap();
    let headers = request.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("5"));
    headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("gzip"));
    check(
        request,
        "abc",
        "GET /x HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc",
    )
    .await;
}

#[tokio::test]
async fn a_body_of_another_length_than_it_said() {
    for pieces in [&["ab"][..], &["ab", "cd"]] {
        let (raw, _seen) = recorder("never").await;
        let body = Frames::data(pieces, Some(3));
        let sent = within(client().send(&raw.backend(), post(body))).await;
        let error = sent.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestBody, "{}", chain(&error));
    }
}

/// The request asks for the end of its connection, though the response does not.
#[tokio::test]
async fn a_request_that_closes() {
    let raw = Raw::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let client = client();
    for _ in 0..2 {
        let request = Request::get("/x").header(CONNECTION, "close");
        let request = request.body(Empty::new()).unwrap();
        let mut response = within(client.send(&raw.backend(), request)).await.unwrap();
        drain(response.body_mut()).await;
    }
    assert_eq!(raw.connections(), 2);
}

/// The backend refuses after the head, and reads nothing more. Its answer is whole all the same, and
/// its connection, where the rest of the request would have to go, is not used again.
#[tokio::test]
async fn an_early_answer_is_an_answer() {
    let raw = Raw::answering("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nabc").await;
    let client = client();
    for _ in 0..2 {
        let request = Request::post("/x").body(Endless).unwrap();
        let mut response = within(client.send(&raw.backend(), request)).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
    }
    assert_eq!(raw.connections(), 2);
}

/// The request goes on while its response is read.
#[tokio::test]
async fn an_answer_may_need_the_rest_of_the_request() {
    let raw = Raw::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).await.unwrap();
        let mut piece = [0; 4096];
        let mut left = LARGE;
        while left > 0 {
            left -= stream.read(&mut piece).await.unwrap();
        }
        stream.write_all(b"3\r\nabc\r\n0\r\n\r\n").await.unwrap();
    })
    .await;
    let body = Full::<Bytes>::from(vec![b'x'; LARGE]);
    let mut response = within(client().send(&raw.backend(), post(body)))
        .await
        .unwrap();
    assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
}

/// A request body that breaks off when its response has begun leaves the backend waiting.
#[tokio::test]
async fn a_request_body_that_fails_late_cuts_the_response() {
    let raw =
        Raw::answering("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").await;
    let (tx, rx) = mpsc::channel(1);
    let request = Request::post("/x").body(FailsWhenTold(rx)).unwrap();
    let mut response = within(client().send(&raw.backend(), request))
        .await
        .unwrap();
    tx.send(()).await.unwrap();
    let end = drain(response.body_mut()).await;
    assert_eq!(end, ("a".into(), Some(CutKind::Other)));
}

struct FailsWhenTold(mpsc::Receiver<()>);

impl Body for FailsWhenTold {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let told = self.0.poll_recv(cx);
        told.map(|_| Some(Err("the client went away".into())))
    }
}

const LARGE: usize = 8 * 1024 * 1024;
