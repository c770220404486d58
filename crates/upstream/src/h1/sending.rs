//! A request on its way out.
//!
//! The head waits for what the body has ready, so that a small request is one write. A frame of the
//! body is asked for only when the one before has been written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http::request::Parts;
use http_body::{Body, Frame};
use tokio::io::AsyncWrite;

use super::request::{self, Framing};
use crate::BoxError;
use crate::request_body::RequestBody;

/// The request's side of an exchange. Going -> Whole, or Going -> Broken.
pub(crate) enum Sending {
    Going(Box<Writer>),
    /// All of the request was written.
    Whole,
    /// The connection takes no more. What the backend has answered may still be read: one that
    /// does not want a request answers and closes.
    Broken,
}

/// A request that is being written.
pub(crate) struct Writer {
    queue: Queue,
    body: RequestBody,
    framing: Framing,
    /// Nothing comes behind what is in the queue.
    ended: bool,
    begun: bool,
}

/// Why a request could not be written on.
pub(crate) enum SendError {
    /// The body failed.
    Body(BoxError),
    /// The connection did.
    Io(io::Error),
}

/// What is to be written next: a head or a chunk size, a piece of the body, and what ends it.
struct Queue {
    before: BytesMut,
    data: Bytes,
    after: Bytes,
}

impl Sending {
    pub(crate) fn new(parts: &Parts, body: RequestBody) -> Self {
        Self::Going(Box::new(Writer::new(parts, body)))
    }

    /// Writes what can be written now. An error of the connection is given only while nothing was
    /// written at all.
    pub(crate) fn drive(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), SendError> {
        let Self::Going(writer) = self else {
            return Ok(());
        };
        match writer.poll(cx, io) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => *self = Self::Whole,
            Poll::Ready(Err(SendError::Io(_))) if writer.begun => *self = Self::Broken,
            Poll::Ready(Err(error)) => return Err(error),
        }
        Ok(())
    }

    /// Whether any byte was written.
    pub(crate) fn has_begun(&self) -> bool {
        match self {
            Self::Going(writer) => writer.begun,
            Self::Whole | Self::Broken => true,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// The body as it was, if nothing was written.
    pub(crate) fn into_body(self) -> Option<RequestBody> {
        match self {
            Self::Going(writer) if !writer.begun => Some(writer.into_body()),
            _ => None,
        }
    }
}

impl Writer {
    fn new(parts: &Parts, body: RequestBody) -> Self {
        let framing = Framing::of(&body);
        Self {
            queue: Queue {
                before: request::head(parts, framing),
                data: Bytes::new(),
                after: Bytes::new(),
            },
            body,
            framing,
            ended: framing == Framing::Empty,
            begun: false,
        }
    }

    fn into_body(mut self) -> RequestBody {
        if !self.queue.data.is_empty() {
            self.body.unread(Frame::data(self.queue.data));
        }
        self.body
    }

    /// Ready once all has been written.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<Result<(), SendError>> {
        loop {
            if !self.ended && self.queue.has_room(self.begun) {
                match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(frame) => self.enqueue(frame.transpose())?,
                    Poll::Pending if self.queue.is_empty() => {
                        ready!(Pin::new(io).poll_flush(cx)).map_err(SendError::Io)?;
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
            }
            ready!(self.poll_write(cx, io)).map_err(SendError::Io)?;
            if self.ended {
                return Pin::new(io).poll_flush(cx).map_err(SendError::Io);
            }
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while !self.queue.is_empty() {
            let written = ready!(Pin::new(&mut *io).poll_write_vectored(cx, &self.queue.slices()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.begun = true;
            self.queue.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn enqueue(&mut self, frame: Result<Option<Frame<Bytes>>, BoxError>) -> Result<(), SendError> {
        let Some(frame) = frame.map_err(SendError::Body)? else {
            return self.end(&HeaderMap::new());
        };
        match frame.into_data() {
            Ok(data) if data.is_empty() => Ok(()),
            Ok(data) => self.enqueue_data(data),
            // Without the head in the queue there would be no way to give these back.
            Err(trailers) if !self.begun => {
                self.body.unread(trailers);
                Ok(())
            }
            Err(trailers) => self.end(&trailers.into_trailers().unwrap_or_default()),
        }
    }

    fn enqueue_data(&mut self, data: Bytes) -> Result<(), SendError> {
        match &mut self.framing {
            Framing::Empty => return Err(wrong_length()),
            Framing::Length(left) => {
                let length = data.len() as u64;
                *left = left.checked_sub(length).ok_or_else(wrong_length)?;
                self.ended = *left == 0;
            }
            Framing::Chunked => {
                request::put_chunk_size(&mut self.queue.before, data.len());
                self.ended = self.body.is_end_stream();
                self.queue.after = Bytes::from_static(if self.ended {
                    request::CHUNK_END_AND_LAST
                } else {
                    request::CHUNK_END
                });
            }
        }
        self.queue.data = data;
        Ok(())
    }

    fn end(&mut self, trailers: &HeaderMap) -> Result<(), SendError> {
        match self.framing {
            Framing::Length(1..) => return Err(wrong_length()),
            Framing::Length(0) | Framing::Empty => {}
            Framing::Chunked => self.queue.after = request::last_chunk(trailers),
        }
        self.ended = true;
        Ok(())
    }
}

impl Queue {
    /// Whether a frame of the body may be put in: when all is written, or beside the head.
    fn has_room(&self, begun: bool) -> bool {
        self.data.is_empty() && self.after.is_empty() && (!begun || self.before.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.data.is_empty() && self.after.is_empty()
    }

    fn slices(&self) -> [IoSlice<'_>; 3] {
        [&self.before[..], &self.data, &self.after].map(IoSlice::new)
    }

    fn advance(&mut self, written: usize) {
        let mut left = written;
        for part in [
            &mut self.before as &mut dyn Buf,
            &mut self.data,
            &mut self.after,
        ] {
            let here = left.min(part.remaining());
            part.advance(here);
            left -= here;
        }
    }
}

fn wrong_length() -> SendError {
    SendError::Body(WrongLength.into())
}

#[derive(Debug, thiserror::Error)]
#[error("the request body is not as long as it said")]
struct WrongLength;

#[cfg(test)]
mod tests;
