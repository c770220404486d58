//! The body of a response, whichever way it came to be.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use streamweld_upstream::SourceBody;

use crate::io::Breaker;
use crate::stream_body::StreamBody;

/// A response body.
pub(crate) enum Body {
    /// Nothing.
    Empty,
    /// All of it at once.
    Full(Option<Bytes>),
    /// The backend's own, passed through.
    Pass(Box<SourceBody>, Breaker),
    /// A reader of a generation.
    Stream(Pin<Box<StreamBody>>),
}

impl Body {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Some(bytes.into()))
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
            Self::Pass(body, breaker) => Pin::new(&mut **body).poll_frame(cx).map(|frame| {
                frame.map(|frame| match frame {
                    Ok(frame) => Ok(frame.map_data(Chunk::from)),
                    Err(cut) => {
                        tracing::debug!(kind = cut.kind().as_str(), "the backend's body broke off");
                        breaker.arm();
                        Err(Abort("the backend's body broke off"))
                    }
                })
            }),
            Self::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::Full(None) => true,
            Self::Full(Some(_)) | Self::Stream(_) => false,
            Self::Pass(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Pass(body, _) => body.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// A piece of a body that can tell when it has left.
///
/// The HTTP implementation drops a piece once it has been handed on (HTTP/1: written to the socket; HTTP/2: encoded
/// behind everything that is sent before it). An abort waits for that, since a body that fails at once would take
/// what it has just yielded with it.
pub(crate) struct Chunk {
    bytes: Bytes,
    _on_drop: Option<SentGuard>,
}

impl Chunk {
    /// A piece whose leaving can be waited for.
    pub(crate) fn tracked(bytes: Bytes) -> (Self, Sent) {
        let state = Arc::new(Mutex::new(SentState::default()));
        (
            Self {
                bytes,
                _on_drop: Some(SentGuard(Arc::clone(&state))),
            },
            Sent(state),
        )
    }
}

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Self {
        Self {
            bytes,
            _on_drop: None,
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

#[derive(Debug, Default)]
struct SentState {
    sent: bool,
    waker: Option<Waker>,
}

struct SentGuard(Arc<Mutex<SentState>>);

impl Drop for SentGuard {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.sent = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The other end of [`Chunk::tracked`].
#[derive(Debug)]
pub(crate) struct Sent(Arc<Mutex<SentState>>);

impl Sent {
    /// Ready once the piece has left.
    pub(crate) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.sent {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
