//! A response body as it comes from the socket.
//!
//! One read gives one piece, without the framing in between, where it was read to. After a read that
//! did not fill the buffer the runtime knows that the socket is empty, and the next one waits without
//! asking.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::SizeHint;

use super::buffer;
use super::connection::Connection;
use super::payload::Payload;
use super::sending::{SendError, Sending};
use crate::head::Framing;
use crate::source::{Piece, Read};
use crate::{BoxError, CutKind};

/// A response body, and the connection it comes from. Dropping it closes the connection.
pub(crate) struct Body {
    connection: Connection,
    payload: Payload,
    /// Payload that came with the head.
    first: Bytes,
    sending: Sending,
    /// Both sides would keep the connection.
    keep: bool,
}

impl Body {
    /// A body whose first bytes are `rest`.
    pub(super) fn new(
        connection: Connection,
        framing: Framing,
        mut rest: Vec<u8>,
        sending: Sending,
        keep: bool,
    ) -> Self {
        let mut payload = Payload::new(framing);
        let first = payload.take(&mut rest);
        Self {
            connection,
            payload,
            first: Bytes::from(rest).slice(first),
            sending,
            keep,
        }
    }

    /// The next step. Not to be called after an end or a cut.
    pub(crate) fn poll_take<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(Piece<'_>) -> T,
    ) -> Poll<Read<T>> {
        Poll::Ready(match ready!(self.poll_step(cx, take)) {
            Ok(read) => read,
            Err((kind, error)) => Read::Cut(kind, error),
        })
    }

    fn poll_step<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(Piece<'_>) -> T,
    ) -> Poll<Result<Read<T>, (CutKind, BoxError)>> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            return Poll::Ready(Ok(Read::Data(take(Piece::Owned(first)))));
        }
        let mut take = Some(take);
        loop {
            if let Some(trailers) = self.payload.take_trailers() {
                return Poll::Ready(Ok(Read::Trailers(trailers)));
            }
            if self.payload.is_done() {
                return Poll::Ready(Ok(Read::End));
            }
            if let Some(error) = self.payload.failed() {
                return Poll::Ready(Err((CutKind::BadFraming, error.into())));
            }
            if let Err(error) = self.sending.drive(cx, &mut self.connection.io) {
                return Poll::Ready(Err(match error {
                    // The backend waits for the rest, and what it says until then may be no answer.
                    SendError::Body(error) => (CutKind::Other, error),
                    SendError::Io(error) => (CutKind::of_io(&error), error.into()),
                }));
            }
            let payload = &mut self.payload;
            let read = buffer::poll_read(&mut self.connection.io, cx, |read| {
                let taken = payload.take(read);
                // Framing alone is no piece, and the end of the connection is none either.
                let take = take.take_if(|_| !taken.is_empty());
                let made = take.map(|take| take(Piece::Borrowed(&read[taken])));
                (read.is_empty(), made)
            });
            match ready!(read) {
                Ok((_, Some(made))) => return Poll::Ready(Ok(Read::Data(made))),
                Ok((true, None)) if !self.payload.close() => {
                    return Poll::Ready(Err((CutKind::Incomplete, EndedEarly.into())));
                }
                Ok((_, None)) => {}
                Err(error) => return Poll::Ready(Err((CutKind::of_io(&error), error.into()))),
            }
        }
    }

    /// Whether the end is known to be all that is left to read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.first.is_empty() && self.payload.is_done() && !self.payload.has_trailers()
    }

    pub(crate) fn is_close_delimited(&self) -> bool {
        self.payload.is_close_delimited()
    }

    /// How many bytes are still to come, as far as is known.
    pub(crate) fn size_hint(&self) -> SizeHint {
        let first = self.first.len() as u64;
        let rest = self.payload.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint.set_lower(rest.lower() + first);
        hint
    }

    /// The connection, if the next response can start behind this one.
    pub(crate) fn into_connection(self) -> Option<Connection> {
        let reusable = self.keep && self.sending.is_whole() && self.payload.leaves_connection();
        reusable.then_some(self.connection)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the connection ended before the response body did")]
struct EndedEarly;
