//! A source as a body, for what passes through untouched.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{Read, Source};
use crate::{BoxError, CutKind};

/// A [`Source`] as an [`http_body::Body`].
#[derive(Debug)]
pub struct SourceBody {
    source: Source,
}

impl SourceBody {
    pub(super) fn new(source: Source) -> Self {
        Self { source }
    }
}

impl Body for SourceBody {
    type Data = Bytes;
    type Error = BodyCut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        Poll::Ready(match ready!(self.source.poll_read(cx)) {
            Read::Data(data) => Some(Ok(Frame::data(data))),
            Read::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            Read::End => None,
            Read::Cut(kind, source) => Some(Err(BodyCut { kind, source })),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }
}

/// A body that broke off, as an error.
#[derive(Debug)]
pub struct BodyCut {
    kind: CutKind,
    source: BoxError,
}

impl BodyCut {
    /// What cut it.
    pub fn kind(&self) -> CutKind {
        self.kind
    }
}

impl fmt::Display for BodyCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the response body broke off ({})", self.kind.as_str())
    }
}

impl Error for BodyCut {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
