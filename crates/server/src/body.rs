//! The body of a response, whichever way it came to be.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use streamweld_upstream::SourceBody;

use crate::app::Peer;
use crate::compressed::Compressed;
use crate::io::Breaker;
use crate::sessions::SessionBody;
use crate::stream_body::StreamBody;

/// A response body.
pub(crate) enum Body {
    /// Nothing.
    Empty,
    /// All of it at once.
    Full(Option<Bytes>),
    /// The backend's own, passed through.
    Pass(Box<Passing>),
    /// A reader of a generation.
    Stream(Pin<Box<StreamBody>>),
    /// A session that reads one.
    Session(Box<SessionBody>),
    /// One of these in a content coding.
    Compressed(Box<Compressed>),
}

impl Body {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Some(bytes.into()))
    }

    pub(crate) fn pass(body: SourceBody, peer: &Peer) -> Self {
        Self::Pass(Box::new(Passing {
            body,
            request_id: Arc::clone(&peer.request_id),
            breaker: peer.breaker.clone(),
            outstanding: Outstanding::default(),
            cut: false,
        }))
    }

    pub(crate) fn stream(body: StreamBody) -> Self {
        Self::Stream(Box::pin(body))
    }
}

/// Why a body was broken off on purpose: the connection (HTTP/1) or stream (HTTP/2) must end without its proper end,
/// so that no client takes a part for the whole.
#[derive(Debug, thiserror::Error)]
#[error("the response was broken off: {0}")]
pub(crate) struct Abort(pub(crate) &'static str);

impl HttpBody for Body {
    type Data = Chunk;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(
                bytes
                    .take()
                    .map(|bytes| Ok(Frame::data(Chunk::from(bytes)))),
            ),
            Self::Pass(passing) => passing.poll_frame(cx),
            Self::Stream(body) => body.as_mut().poll_frame(cx),
            Self::Session(body) => body.poll_frame(cx),
            Self::Compressed(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::Full(None) => true,
            Self::Full(Some(_)) | Self::Stream(_) | Self::Session(_) | Self::Compressed(_) => false,
            Self::Pass(passing) => !passing.cut && passing.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Pass(passing) => passing.body.size_hint(),
            Self::Stream(_) | Self::Session(_) | Self::Compressed(_) => SizeHint::default(),
        }
    }
}

/// A backend's body on its way through.
pub(crate) struct Passing {
    body: SourceBody,
    request_id: Arc<str>,
    breaker: Breaker,
    outstanding: Outstanding,
    cut: bool,
}

impl Passing {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        if !self.cut {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(frame)) => {
                    return Poll::Ready(Some(Ok(
                        frame.map_data(|data| self.outstanding.chunk(data))
                    )));
                }
                Some(Err(cut)) => {
                    let request_id = &*self.request_id;
                    tracing::debug!(
                        request_id,
                        kind = cut.kind().as_str(),
                        "the backend's body broke off"
                    );
                    self.cut = true;
                }
            }
        }
        // What came before the break has come: the client gets it, as it would without a proxy.
        ready!(self.outstanding.poll_none(cx));
        self.breaker.arm();
        Poll::Ready(Some(Err(Abort("the backend's body broke off"))))
    }
}

/// A piece of a body that can tell when it has left.
///
/// The HTTP implementation drops a piece once it has been handed on (HTTP/1: written to the socket; HTTP/2: encoded
/// behind everything that is sent before it). An abort waits for that, since a body that fails at once would take
/// what it has just yielded with it.
pub(crate) struct Chunk {
    bytes: Bytes,
    _leaving: Option<Leaving>,
}

impl Chunk {
    /// Other bytes in its place: when they have left, it has.
    pub(crate) fn with(self, bytes: Bytes) -> Self {
        Self { bytes, ..self }
    }
}

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            _leaving: None,
        }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

/// Counts the pieces of one body that were yielded and have not left.
#[derive(Debug, Default)]
pub(crate) struct Outstanding(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    pieces: AtomicUsize,
    /// Somebody waits for the last one to leave.
    awaited: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Outstanding {
    /// A piece that counts until it has left.
    pub(crate) fn chunk(&self, bytes: Bytes) -> Chunk {
        self.0.pieces.fetch_add(1, Ordering::Relaxed);
        Chunk {
            bytes,
            _leaving: Some(Leaving(Arc::clone(&self.0))),
        }
    }

    /// Ready once everything has left.
    pub(crate) fn poll_none(&self, cx: &mut Context<'_>) -> Poll<()> {
        let count = &*self.0;
        if count.pieces.load(Ordering::SeqCst) == 0 {
            return Poll::Ready(());
        }
        let before = count.waker().replace(cx.waker().clone());
        drop(before);
        count.awaited.store(true, Ordering::SeqCst);
        // The last one may have left before it could see that.
        if count.pieces.load(Ordering::SeqCst) == 0 {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Count {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Leaving(Arc<Count>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let last = self.0.pieces.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.awaited.load(Ordering::SeqCst) {
            let waker = self.0.waker().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}
