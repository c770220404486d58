//! A backend's body as a producer reads it: decoded, and judged by its framing only.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use http::response::Parts;
use streamweld_dialect::FailureClass;
use streamweld_generation::{ByteSource, Read};
use streamweld_upstream::{Coding, Decoder, Read as Raw, Source};

use crate::traced::Attempt;

/// The body of one attempt.
pub(crate) struct AttemptSource {
    /// What was looked at already comes first.
    ahead: Vec<u8>,
    source: Source,
    decoder: Option<Box<Decoder>>,
    /// Sees how it ends, where that is traced.
    attempt: Option<Arc<Attempt>>,
}

impl AttemptSource {
    /// The body of a response whose head is looked at no more.
    pub(crate) fn of(response: Response<Source>, coding: Option<Coding>) -> Self {
        let (mut parts, source) = response.into_parts();
        Self::new(&mut parts, source, coding)
    }

    /// The body of a response with this head.
    pub(crate) fn new(head: &mut Parts, source: Source, coding: Option<Coding>) -> Self {
        Self {
            ahead: Vec::new(),
            source,
            decoder: coding.map(|coding| Box::new(Decoder::new(coding))),
            attempt: head.extensions.remove(),
        }
    }
}

impl ByteSource for AttemptSource {
    fn behind(self, ahead: Vec<u8>) -> Self {
        Self { ahead, ..self }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, take: &mut impl FnMut(&[u8])) -> Poll<Read> {
        if !self.ahead.is_empty() {
            take(&std::mem::take(&mut self.ahead));
            return Poll::Ready(Read::Data);
        }
        loop {
            let decoder = &mut self.decoder;
            let read = self.source.poll_take(cx, |piece| match decoder {
                None => {
                    take(&piece);
                    Ok(true)
                }
                Some(decoder) => decoder.push(piece.into_bytes()).map(|data| {
                    if !data.is_empty() {
                        take(&data);
                    }
                    !data.is_empty()
                }),
            });
            match ready!(read) {
                Raw::Data(Ok(true)) => return Poll::Ready(Read::Data),
                // The decoder keeps it until there is more.
                Raw::Data(Ok(false)) => {}
                Raw::Data(Err(error)) => return Poll::Ready(undecodable(&error)),
                // Trailers of an event stream mean nothing to anybody who reads events.
                Raw::Trailers(_) => {}
                Raw::End => {
                    if let Some(attempt) = self.attempt.take() {
                        attempt.is_whole();
                    }
                    return Poll::Ready(
                        match self.decoder.take().map(|decoder| decoder.finish()) {
                            Some(Err(error)) => undecodable(&error),
                            Some(Ok(())) | None => Read::End,
                        },
                    );
                }
                Raw::Cut(kind, error) => {
                    if let Some(attempt) = self.attempt.take() {
                        attempt.is_cut(kind.as_str());
                    }
                    return Poll::Ready(Read::Cut(format!("{}: {error}", kind.as_str())));
                }
            }
        }
    }
}

fn undecodable(error: &streamweld_upstream::DecodeError) -> Read {
    Read::Unusable(FailureClass::EncodingError, error.to_string())
}
