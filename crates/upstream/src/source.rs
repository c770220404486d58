//! The seam: reading a response body.
//!
//! A [`Source`] gives pieces of the body as they come and then says, once and for good, how the
//! body ended: [`Read::End`] when the framing was complete, [`Read::Cut`] when it was not. It owns
//! what it reads from. Dropping it before the end closes the HTTP/1.1 connection, or resets the
//! HTTP/2 stream; at the end the connection goes back for reuse.
//!
//! Two HTTP implementations stand behind it, and nobody above knows which. Over HTTP/1.1 (`h1`) a
//! piece is what one read of the socket brought: it lies in a buffer that all connections of a
//! thread share, and whoever keeps it copies it. Over HTTP/2 hyper hands over one piece per wake-up
//! of its connection task, a slice of its read buffer that keeps it alive: whoever keeps data for
//! long copies it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::SizeHint;
use tokio::time::{Instant, Sleep};

use crate::connection::Answer;
use crate::fleet::Permit;
use crate::pool::Pool;
use crate::upgrade::Upgraded;
use crate::{BoxError, CutKind, h1, http2};

mod body;
pub use body::{BodyCut, SourceBody};

/// One step of reading a body.
#[derive(Debug)]
pub enum Read<T = Bytes> {
    /// The next bytes, never empty, or what was made of them.
    Data(T),
    /// Trailers; only [`End`](Self::End) comes after them.
    Trailers(HeaderMap),
    /// The body is complete as far as its framing can tell. Stays so on further reads.
    End,
    /// The body broke off. The error chain is for the log. Further reads give the same kind.
    Cut(CutKind, BoxError),
}

/// The next bytes of a body, while they lie where they were read to.
#[derive(Debug)]
pub enum Piece<'a> {
    /// In a buffer that the next read uses again.
    Borrowed(&'a [u8]),
    /// In memory of their own.
    Owned(Bytes),
}

impl Piece<'_> {
    /// The bytes to keep: copied once, if they have no memory of their own.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Self::Owned(bytes) => bytes,
        }
    }
}

impl std::ops::Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A response body, read piece by piece.
pub struct Source {
    state: State,
    close_delimited: bool,
    silence: Option<Box<Silence>>,
    /// The place at its backend is taken until this is dropped.
    permit: Option<Permit>,
}

/// Http1 or Http2 -> Ended, or -> Cut. Upgraded -> Ended when it is taken over.
enum State {
    Http1(h1::Body, Home),
    Http2(http2::Body),
    /// The connection left HTTP, so there is no body to read.
    Upgraded(Box<Upgraded>),
    Ended,
    Cut(CutKind),
}

/// Where a connection goes after use.
pub(crate) struct Home {
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
    pub(crate) fn new(answer: Answer, home: Home, between_bytes: Option<Duration>) -> Self {
        let close_delimited = matches!(&answer, Answer::Http1(body) if body.is_close_delimited());
        let state = match answer {
            Answer::Http1(body) => State::Http1(body, home),
            Answer::Http2(body) => State::Http2(body),
            Answer::Upgraded(upgraded) => State::Upgraded(upgraded),
        };
        Self {
            state,
            close_delimited,
            silence: between_bytes.map(|limit| Box::new(Silence::new(limit))),
            permit: None,
        }
    }

    /// The same, holding the place that was taken for it.
    pub(crate) fn holding(mut self, permit: Permit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// The connection, if it left HTTP and nobody has taken it yet.
    pub(crate) fn take_upgraded(&mut self) -> Option<Upgraded> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Upgraded(upgraded) => Some(*upgraded),
            state => {
                self.state = state;
                None
            }
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
        let cx = &mut Context::from_waker(Waker::noop());
        match self.poll_step(cx, |piece| piece.into_bytes()) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        }
    }

    /// [`read`](Self::read), for a hand-written future.
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        self.poll_take(cx, |piece| piece.into_bytes())
    }

    /// [`poll_read`](Self::poll_read) for a caller that does not keep the bytes: `take` is given them where they lie.
    pub fn poll_take<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(Piece<'_>) -> T,
    ) -> Poll<Read<T>> {
        if let Poll::Ready(read) = self.poll_step(cx, take) {
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
        self.close_delimited
    }

    /// How many bytes are still to come, as far as is known. A cut body knows nothing.
    pub fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Http1(body, _) => body.size_hint(),
            State::Http2(body) => body.size_hint(),
            State::Upgraded(_) | State::Ended => SizeHint::with_exact(0),
            State::Cut(_) => SizeHint::default(),
        }
    }

    /// Whether the end is known to be all that is left to read.
    fn is_at_end(&self) -> bool {
        match &self.state {
            State::Http1(body, _) => body.is_at_end(),
            State::Http2(body) => body.is_at_end(),
            State::Upgraded(_) | State::Ended => true,
            State::Cut(_) => false,
        }
    }

    /// This source as an [`http_body::Body`], to be passed through: data, trailers and size hint
    /// are kept, and a cut is an error.
    pub fn into_body(self) -> SourceBody {
        SourceBody::new(self)
    }

    fn poll_step<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(Piece<'_>) -> T,
    ) -> Poll<Read<T>> {
        let read = match &mut self.state {
            State::Http1(body, _) => ready!(body.poll_take(cx, take)),
            State::Http2(body) => match ready!(body.poll_read(cx)) {
                Read::Data(data) => Read::Data(take(Piece::Owned(data))),
                Read::Trailers(trailers) => Read::Trailers(trailers),
                Read::End => Read::End,
                Read::Cut(kind, error) => Read::Cut(kind, error),
            },
            State::Upgraded(_) | State::Ended => return Poll::Ready(Read::End),
            State::Cut(kind) => return Poll::Ready(Read::Cut(*kind, AlreadyCut.into())),
        };
        Poll::Ready(match read {
            Read::Data(_) | Read::Trailers(_) => {
                if let Some(silence) = &mut self.silence {
                    silence.waiting = false;
                }
                read
            }
            Read::End => {
                self.end();
                Read::End
            }
            Read::Cut(kind, error) => self.cut(kind, error),
        })
    }

    /// The body has ended properly: its connection goes back, where it can.
    fn end(&mut self) {
        self.silence = None;
        if let State::Http1(body, home) = std::mem::replace(&mut self.state, State::Ended) {
            if let Some(connection) = body.into_connection() {
                home.pool.put_back(&home.origin, connection);
            }
        }
    }

    fn cut<T>(&mut self, kind: CutKind, error: BoxError) -> Read<T> {
        // Drops what was read from: the connection closes, or the stream is reset.
        self.state = State::Cut(kind);
        self.silence = None;
        Read::Cut(kind, error)
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
            State::Http1(..) | State::Http2(..) => "reading",
            State::Upgraded(_) => "upgraded",
            State::Ended => "ended",
            State::Cut(kind) => kind.as_str(),
        };
        f.debug_struct("Source")
            .field("state", &state)
            .finish_non_exhaustive()
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
