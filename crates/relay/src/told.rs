//! What the owner tells of one generation, as it comes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use http_body::Body;
use hyper::body::Incoming;
use streamweld_journal_redis::relay::{Telling, Told};

use crate::connection::Connection;
use crate::counters::{Counters, Failure, Now};
use crate::wire::{Frame, decode};

/// The body of an answer. The connection is held for as long.
pub(crate) struct Answered {
    body: Incoming,
    buf: BytesMut,
    counters: Counters,
    _connection: Arc<Connection>,
    _now: Now,
}

impl Answered {
    pub(crate) fn new(body: Incoming, connection: Arc<Connection>, counters: Counters) -> Self {
        Self {
            body,
            buf: BytesMut::new(),
            _now: counters.followed(),
            counters,
            _connection: connection,
        }
    }

    /// The next frame. `None`: there is no more.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            match decode(&mut self.buf) {
                Ok(Some(frame)) => return Poll::Ready(Some(frame)),
                Ok(None) => {}
                Err(_) => return self.failed(Failure::BadAnswer),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.buf.extend_from_slice(bytes);
                    }
                }
                Some(Err(_)) => return self.failed(Failure::Cut),
                None => return Poll::Ready(None),
            }
        }
    }

    fn failed(&self, failure: Failure) -> Poll<Option<Frame>> {
        self.counters.failed(failure);
        Poll::Ready(None)
    }
}

impl Telling for Answered {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        loop {
            match ready!(self.poll_frame(cx)) {
                Some(Frame::Told(told)) => return Poll::Ready(Some(told)),
                Some(Frame::About(_)) => {}
                None => return Poll::Ready(None),
            }
        }
    }
}
