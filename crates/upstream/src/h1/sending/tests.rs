//! Writes that take little, and writes that fail.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use http_body::{Body, Frame, SizeHint};
use tokio::io::AsyncWrite;

use super::{SendError, Sending};
use crate::BoxError;
use crate::request_body::RequestBody;

/// Takes at most `step` bytes at a time and `room` in all, then fails.
struct Narrow {
    taken: Vec<u8>,
    writes: usize,
    step: usize,
    room: usize,
}

impl Narrow {
    fn new(step: usize, room: usize) -> Self {
        Self {
            taken: Vec::new(),
            writes: 0,
            step,
            room,
        }
    }
}

impl AsyncWrite for Narrow {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.room == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let length = all.len().min(self.step).min(self.room);
        self.taken.extend_from_slice(&all[..length]);
        self.writes += 1;
        self.room -= length;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Frames in reverse, and how long those that are left are together, if that is known.
struct Frames(Vec<Frame<Bytes>>, Option<u64>);

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self(frames, left) = self.get_mut();
        let frame = frames.pop();
        if let (Some(data), Some(left)) = (frame.as_ref().and_then(Frame::data_ref), left) {
            *left -= data.len() as u64;
        }
        Poll::Ready(frame.map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        self.1.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

fn trailers() -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    Frame::trailers(trailers)
}

fn bodies() -> [(Frames, &'static str); 3] {
    let data = |data: &'static str| Frame::data(Bytes::from_static(data.as_bytes()));
    [
        (
            Frames(vec![data("de"), data("abc")], Some(5)),
            "content-length: 5\r\n\r\nabcde",
        ),
        (
            Frames(vec![trailers(), data("de"), data("abc")], None),
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
        (
            Frames(vec![trailers()], None),
            "transfer-encoding: chunked\r\n\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
    ]
}

fn sending(body: RequestBody) -> Sending {
    let (parts, ()) = Request::post("/x").body(()).unwrap().into_parts();
    Sending::new(&parts, body)
}

fn drive(sending: &mut Sending, io: &mut Narrow) -> Result<(), SendError> {
    sending.drive(&mut Context::from_waker(Waker::noop()), io)
}

#[test]
fn the_bytes_are_the_same_however_few_are_taken_at_once() {
    for step in [1, 2, 7, usize::MAX] {
        for (body, expected) in bodies() {
            let mut io = Narrow::new(step, usize::MAX);
            let mut sending = sending(RequestBody::new(body).0);
            assert!(drive(&mut sending, &mut io).is_ok() && sending.is_whole());
            let taken = String::from_utf8(io.taken).unwrap();
            assert_eq!(taken, format!("POST /x HTTP/1.1\r\n{expected}"));
        }
    }
}

#[test]
fn a_small_request_is_one_write() {
    let full = http_body_util::Full::new(Bytes::from_static(b"abc"));
    let bodies = [
        RequestBody::new(full).0,
        RequestBody::new(http_body_util::Empty::new()).0,
    ];
    for body in bodies {
        let mut io = Narrow::new(usize::MAX, usize::MAX);
        assert!(drive(&mut sending(body), &mut io).is_ok());
        assert_eq!(io.writes, 1);
    }
}

/// A connection that takes nothing gives the request back as it was, as often as it happens.
#[test]
fn a_request_of_which_nothing_was_written_can_be_sent_again() {
    for (body, expected) in bodies() {
        let mut body = RequestBody::new(body).0;
        for _ in 0..2 {
            let mut sending = sending(body);
            let failed = drive(&mut sending, &mut Narrow::new(1, 0));
            assert!(matches!(failed, Err(SendError::Io(_))));
            body = sending.into_body().unwrap();
        }
        let mut io = Narrow::new(usize::MAX, usize::MAX);
        assert!(drive(&mut sending(body), &mut io).is_ok());
        let taken = String::from_utf8(io.taken).unwrap();
        assert_eq!(taken, format!("POST /x HTTP/1.1\r\n{expected}"));
    }
}

#[test]
fn a_request_that_was_begun_is_not_given_back() {
    for (body, _) in bodies() {
        let mut sending = sending(RequestBody::new(body).0);
        // What was written may be answered, so that this is no error yet.
        assert!(drive(&mut sending, &mut Narrow::new(1, 1)).is_ok());
        assert!(sending.has_begun() && !sending.is_whole());
        assert!(sending.into_body().is_none());
    }
}
