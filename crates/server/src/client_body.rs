//! The body of a request as its client sends it, and what becomes of the part that nobody reads (protocol.md 4.6).
//!
//! Many clients write all of their request before they read. If an answer is there earlier and the rest of the body
//! is left on the socket, such a client is stuck behind it, or has its connection reset under the answer. So a body
//! that is dropped before its end is read on beside the answer, by whatever path it was dropped: that is why this is
//! a type and not a call at each refusal.
//!
//! What is read on is not kept, and is bounded in bytes and in time. A client that asked before it sends its body
//! (`Expect: 100-continue`) is stuck behind nothing; reading would only tell it to go on. But whether it sends its body
//! behind an answer that came without a `100` is its own decision, so nobody can tell where its next request begins:
//! over HTTP/1 such a connection is closed behind the answer, which says so (RFC 9110, 10.1.1).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{EXPECT, HeaderMap};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::config::EdgeConfig;
use crate::patience::{Answered, Patience};

/// A request body that is read on when it is dropped early.
pub(crate) struct ClientBody {
    /// `None` once it has ended, or broken off.
    body: Option<Incoming>,
    /// The client sends nothing before the body is read for the first time.
    asked: Asked,
    patience: Patience,
}

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientBodyError {
    /// The client's side broke.
    #[error("the request body broke off")]
    Broke(#[source] hyper::Error),
    /// The client has sent nothing for too long, or took too long for all of it.
    #[error("the request body came too slowly")]
    TooSlow,
}

/// What is known of a client beside its body: whether it asked before it sends that, and whether it has its answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    told: Option<Arc<AtomicBool>>,
    answered: Answered,
}

impl Asked {
    fn of(headers: &HeaderMap, answered: Answered) -> Self {
        Self {
            told: headers.contains_key(EXPECT).then(Arc::default),
            answered,
        }
    }

    /// Its answer begins.
    pub(crate) fn is_answered(&self) {
        self.answered.begins();
    }

    /// Whether it still waits for its answer: the body has not been read for the first time.
    pub(crate) fn is_waiting(&self) -> bool {
        self.told
            .as_ref()
            .is_some_and(|told| !told.load(Ordering::Acquire))
    }

    /// Reading the body tells the client to send it.
    fn tell(&self) {
        if let Some(told) = &self.told {
            told.store(true, Ordering::Release);
        }
    }
}

/// How much of a body that nobody needs is read. More than the APIs behind this proxy take in one request.
const REST: u64 = 64 << 20;
/// And for how long. Enough for such a body on an ordinary line, and an end for one that never ends.
const REST_TIME: Duration = Duration::from_secs(60);

impl ClientBody {
    /// A request with its body under this care.
    pub(crate) fn of(request: Request<Incoming>, edge: &EdgeConfig) -> (Request<Self>, Asked) {
        let patience = Patience::new(edge.body_timeout, edge.body_time);
        let asked = Asked::of(request.headers(), patience.answered());
        let request = request.map(|body| Self {
            body: Some(body),
            asked: asked.clone(),
            patience,
        });
        (request, asked)
    }
}

impl Drop for ClientBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        if self.asked.is_waiting() || body.is_end_stream() {
            return;
        }
        // It ends with the connection, or at its bounds. Without a runtime there is no connection any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(read_rest(body));
        }
    }
}

async fn read_rest<B: Body<Data = Bytes>>(body: B) {
    let mut body = pin!(body);
    let mut room = REST;
    let rest = async {
        while let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            match room.checked_sub(length) {
                Some(left) => room = left,
                None => break,
            }
        }
    };
    // Either way it is over: who has not sent all of it by now has had the time to read its answer.
    let _ = timeout(REST_TIME, rest).await;
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = ClientBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientBodyError>>> {
        self.asked.tell();
        let Self { body, patience, .. } = &mut *self;
        let Some(frame) = body.as_mut().map(|body| Pin::new(body).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = frame else {
            ready!(patience.poll_over(cx));
            // What may still come of it is nobody's any more.
            *body = None;
            return Poll::Ready(Some(Err(ClientBodyError::TooSlow)));
        };
        patience.goes_on();
        if !matches!(frame, Some(Ok(_))) {
            *body = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(ClientBodyError::Broke)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::Instant;

    use super::*;

    /// A body without an end: pieces of this many bytes, or silence.
    struct Endless<'a> {
        piece: usize,
        given: &'a mut u64,
    }

    impl Body for Endless<'_> {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let piece = self.piece;
            if piece == 0 {
                return Poll::Pending;
            }
            *self.given += piece as u64;
            Poll::Ready(Some(Ok(Frame::data(vec![0; piece].into()))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_an_end_is_read_up_to_a_bound_in_bytes() {
        let mut given = 0;
        let begun = Instant::now();
        read_rest(Endless {
            piece: 1 << 16,
            given: &mut given,
        })
        .await;
        assert_eq!(given, REST + (1 << 16));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_go_on_is_waited_for_up_to_a_bound_in_time() {
        let mut given = 0;
        let begun = Instant::now();
        read_rest(Endless {
            piece: 0,
            given: &mut given,
        })
        .await;
        // The clock of tests goes in whole milliseconds.
        assert!(begun.elapsed() - REST_TIME <= Duration::from_millis(1));
    }
}
