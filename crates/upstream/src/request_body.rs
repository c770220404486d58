//! The request body as a connection takes it.
//!
//! Connections are pooled, so they all take one body type: whatever the caller has, boxed. The box
//! also remembers that the body failed, because over HTTP/2 that failure does not come back: the
//! stream is reset, and the reset is all that the response future reports.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::BoxError;

/// A boxed request body.
pub(crate) struct RequestBody {
    /// Was taken, and given back.
    front: Option<Frame<Bytes>>,
    inner: UnsyncBoxBody<Bytes, BoxError>,
    failed: Arc<AtomicBool>,
}

/// Tells whether the request body failed, after it was given away.
pub(crate) struct Failed(Arc<AtomicBool>);

impl RequestBody {
    pub(crate) fn new<B>(body: B) -> (Self, Failed)
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let failed = Arc::new(AtomicBool::new(false));
        let body = Self {
            front: None,
            inner: body.map_err(Into::into).boxed_unsync(),
            failed: Arc::clone(&failed),
        };
        (body, Failed(failed))
    }

    /// Gives the last frame back, to be taken again.
    pub(crate) fn unread(&mut self, frame: Frame<Bytes>) {
        self.front = Some(frame);
    }
}

impl Failed {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(frame) = self.front.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if matches!(frame, Some(Err(_))) {
            self.failed.store(true, Ordering::Release);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.front.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.inner.size_hint();
        if let Some(data) = self.front.as_ref().and_then(Frame::data_ref) {
            let length = data.len() as u64;
            if let Some(upper) = hint.upper() {
                hint.set_upper(upper + length);
            }
            hint.set_lower(hint.lower() + length);
        }
        hint
    }
}
