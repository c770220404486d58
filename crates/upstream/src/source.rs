//! The seam: reading a response body.
//!
//! A [`Source`] gives pieces of the body as they come and then says, once and for good, how the
//! body ended: [`Read::End`] when the framing was complete, [`Read::Cut`] when it was not. It owns
//! what it reads from. Dropping it before the end closes the HTTP/1.1 connection, or resets the
//! HTTP/2 stream; at the end the connection goes back for reuse.
//!
//! It names no HTTP implementation, so that another one can stand behind it. hyper's, which does
//! today, hands over one piece per wake-up of its connection task and holds at most one piece
//! ready. Pieces are slices of hyper's read buffer and keep it alive: whoever keeps data copies it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use crate::connection::Connection;
use crate::head::Framing;
use crate::pool::Pool;
use crate::{BoxError, CutKind};

mod body;
pub use body::{BodyCut, SourceBody};

/// One step of reading a body.
#[derive(Debug)]
pub enum Read {
    /// The next bytes, never empty.
    Data(Bytes),
    /// Trailers; only [`End`](Self::End) comes after them.
    Trailers(HeaderMap),
    /// The body is complete as far as its framing can tell. Stays so on further reads.
    End,
    /// The body broke off. The error chain is for the log. Further reads give the same kind.
    Cut(CutKind, BoxError),
}

/// A response body, read piece by piece.
pub struct Source {
    state: State,
    framing: Framing,
    silence: Option<Box<Silence>>,
}

/// Reading -> Ended, or Reading -> Cut.
enum State {
    /// The body goes before its connection does, so that its stream can still be reset.
    Reading(Incoming, Lease),
    Ended,
    Cut(CutKind),
}

/// The connection in use, and where it goes afterwards.
pub(crate) struct Lease {
    pub(crate) connection: Connection,
    pub(crate) pool: Arc<Pool>,
    pub(crate) origin: Arc<str>,
}

/// Measures how long the backend has been silent.
struct Silence {
    limit: Duration,
    waiting: bool,
    timer: Pin<Box<Sleep>>,
}

impl Source {
    pub(crate) fn new(
        body: Incoming,
        framing: Framing,
        lease: Lease,
        between_bytes: Option<Duration>,
    ) -> Self {
        Self {
            state: State::Reading(body, lease),
            framing,
            silence: between_bytes.map(|limit| Box::new(Silence::new(limit))),
        }
    }

    /// The body of a response that has none, because its connection left HTTP.
    pub(crate) fn upgraded() -> Self {
        Self {
            state: State::Ended,
            framing: Framing::Explicit,
            silence: None,
        }
    }

    /// The next step.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn read(&mut self) -> Read {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    /// The next step if it is there already. Lets a caller that has just read gather what else is
    /// ready into one batch; it never waits, and never counts as silence.
    ///
    /// The next [`read`](Self::read) or [`poll_read`](Self::poll_read) must be polled before the
    /// caller sleeps: this call leaves nobody to be woken.
    pub fn try_read_ready(&mut self) -> Option<Read> {
        match self.poll_step(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        }
    }

    /// [`read`](Self::read), for a hand-written future.
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        if let Poll::Ready(read) = self.poll_step(cx) {
            return Poll::Ready(read);
        }
        let Some(silence) = &mut self.silence else {
            return Poll::Pending;
        };
        ready!(silence.poll_exceeded(cx));
        Poll::Ready(self.cut(CutKind::TimedOut, SilenceExceeded.into()))
    }

    /// Whether only the end of the connection ends this body, so that [`Read::End`] may be a cut
    /// that nobody can tell from an end.
    pub fn is_close_delimited(&self) -> bool {
        self.framing == Framing::UntilClose
    }

    /// How many bytes are still to come, as far as is known. A cut body knows nothing.
    pub fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Reading(body, _) => body.size_hint(),
            State::Ended => SizeHint::with_exact(0),
            State::Cut(_) => SizeHint::default(),
        }
    }

    /// Whether the end is known to be all that is left to read.
    fn is_at_end(&self) -> bool {
        match &self.state {
            State::Reading(body, _) => body.is_end_stream(),
            State::Ended => true,
            State::Cut(_) => false,
        }
    }

    /// This source as an [`http_body::Body`], to be passed through: data, trailers and size hint
    /// are kept, and a cut is an error.
    pub fn into_body(self) -> SourceBody {
        SourceBody::new(self)
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let frame = loop {
            let body = match &mut self.state {
                State::Reading(body, _) => body,
                State::Ended => return Poll::Ready(Read::End),
                State::Cut(kind) => return Poll::Ready(Read::Cut(*kind, AlreadyCut.into())),
            };
            match ready!(Pin::new(body).poll_frame(cx)) {
                None => return Poll::Ready(self.end()),
                Some(Err(error)) => {
                    let error = BoxError::from(error);
                    return Poll::Ready(self.cut(CutKind::of(&error), error));
                }
                Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                Some(Ok(frame)) => break frame,
            }
        };
        if let Some(silence) = &mut self.silence {
            silence.waiting = false;
        }
        Poll::Ready(match frame.into_data() {
            Ok(data) => Read::Data(data),
            Err(frame) => Read::Trailers(frame.into_trailers().unwrap_or_default()),
        })
    }

    fn end(&mut self) -> Read {
        if self.is_unfinished_http2() {
            return self.cut(CutKind::Reset, ClosedStream.into());
        }
        self.silence = None;
        if let State::Reading(_, lease) = std::mem::replace(&mut self.state, State::Ended) {
            lease.put_back();
        }
        Read::End
    }

    fn cut(&mut self, kind: CutKind, error: BoxError) -> Read {
        // Drops what was read from: the connection closes, or the stream is reset.
        self.state = State::Cut(kind);
        self.silence = None;
        Read::Cut(kind, error)
    }

    /// hyper calls the body of a stream ended when RST_STREAM or GOAWAY came with NO_ERROR, be it
    /// complete or not. Only END_STREAM is an end.
    fn is_unfinished_http2(&self) -> bool {
        match &self.state {
            State::Reading(body, lease) => {
                matches!(lease.connection, Connection::Http2(_)) && !body.is_end_stream()
            }
            State::Ended | State::Cut(_) => false,
        }
    }
}

impl Drop for Source {
    /// A caller that knows the length may stop without reading the end. That must not cost the
    /// connection.
    fn drop(&mut self) {
        if self.is_at_end() {
            self.end();
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Reading(..) => "reading",
            State::Ended => "ended",
            State::Cut(kind) => kind.as_str(),
        };
        f.debug_struct("Source")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

impl Lease {
    fn put_back(self) {
        if let Connection::Http1(connection) = self.connection {
            self.pool.put_back(&self.origin, connection);
        }
    }
}

impl Silence {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            waiting: false,
            timer: Box::pin(tokio::time::sleep(limit)),
        }
    }

    /// Counts from the first time that nothing was there, so that a caller which comes back late
    /// does not find the backend to blame.
    fn poll_exceeded(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.waiting {
            self.waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        self.timer.as_mut().poll(cx)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("silence for longer than the time allowed between bytes")]
struct SilenceExceeded;

#[derive(Debug, thiserror::Error)]
#[error("the body had broken off before")]
struct AlreadyCut;

#[derive(Debug, thiserror::Error)]
#[error("the stream was closed without error, but before its end")]
struct ClosedStream;
