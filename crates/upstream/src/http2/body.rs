//! A response body of one stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;

use super::Http2;
use crate::source::Read;
use crate::{BoxError, CutKind};

/// A response body, and its share in the connection. Dropping it before the end resets the stream.
pub(crate) struct Body {
    /// Goes first, so that the stream can still be reset.
    incoming: Incoming,
    _stream: Http2,
}

impl Body {
    pub(super) fn new(incoming: Incoming, stream: Http2) -> Self {
        Self {
            incoming,
            _stream: stream,
        }
    }

    /// The next step. Not to be called after an end or a cut.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        loop {
            let frame = match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                // hyper calls the body of a stream ended when RST_STREAM or GOAWAY came with
                // NO_ERROR, be it complete or not. Only END_STREAM is an end.
                None if self.is_at_end() => return Poll::Ready(Read::End),
                None => return Poll::Ready(Read::Cut(CutKind::Reset, ClosedStream.into())),
                Some(Err(error)) => {
                    let error = BoxError::from(error);
                    return Poll::Ready(Read::Cut(CutKind::of(&error), error));
                }
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Poll::Ready(Read::Data(data)),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return Poll::Ready(Read::Trailers(trailers));
                }
            }
        }
    }

    /// Whether the end is known to be all that is left to read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// How many bytes are still to come, as far as is known.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the stream was closed without error, but before its end")]
struct ClosedStream;
