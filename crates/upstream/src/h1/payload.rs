//! A response body as bytes: what of a read is payload, and whether it was the last. Pure.

use std::ops::Range;

use http::HeaderMap;
use http_body::SizeHint;

use super::chunked::{BadChunk, Chunked};
use crate::head::Framing;

/// Takes the framing off one body.
#[derive(Debug)]
pub(crate) struct Payload {
    framing: Reader,
    /// The first error. It is told only when the payload before it has been given.
    failed: Option<BadChunk>,
    excess: bool,
}

#[derive(Debug)]
enum Reader {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Closed,
}

impl Payload {
    pub(crate) fn new(framing: Framing) -> Self {
        let framing = match framing {
            Framing::Empty => Reader::Length(0),
            Framing::Length(length) => Reader::Length(length),
            Framing::Chunked => Reader::Chunked(Chunked::new()),
            Framing::UntilClose => Reader::UntilClose,
        };
        Self {
            framing,
            failed: None,
            excess: false,
        }
    }

    /// Takes all of one read. Moves its payload together and says where it is now.
    pub(crate) fn take(&mut self, read: &mut [u8]) -> Range<usize> {
        match &mut self.framing {
            Reader::UntilClose => 0..read.len(),
            Reader::Closed => 0..0,
            Reader::Length(left) => {
                let length = usize::try_from(*left).map_or(read.len(), |left| left.min(read.len()));
                *left -= length as u64;
                self.excess |= length < read.len();
                0..length
            }
            Reader::Chunked(chunked) => {
                let mut payload: Option<Range<usize>> = None;
                let mut at = 0;
                while at < read.len() && !chunked.is_done() {
                    let step = match chunked.step(&read[at..]) {
                        Ok(step) => step,
                        Err(error) => {
                            self.failed = Some(error);
                            break;
                        }
                    };
                    let start = at + step.framing;
                    at = start + step.payload;
                    match &mut payload {
                        _ if step.payload == 0 => {}
                        // The common read holds one chunk, which stays where it is.
                        None => payload = Some(start..at),
                        Some(payload) => {
                            read.copy_within(start..at, payload.end);
                            payload.end += step.payload;
                        }
                    }
                }
                self.excess |= at < read.len();
                payload.unwrap_or_default()
            }
        }
    }

    /// Takes the end of the connection. Whether that is a proper end of the body.
    pub(crate) fn close(&mut self) -> bool {
        if let Reader::UntilClose = self.framing {
            self.framing = Reader::Closed;
        }
        self.is_done()
    }

    /// Whether the body has ended properly.
    pub(crate) fn is_done(&self) -> bool {
        match &self.framing {
            Reader::Length(left) => *left == 0,
            Reader::Chunked(chunked) => chunked.is_done(),
            Reader::UntilClose => false,
            Reader::Closed => true,
        }
    }

    /// Whether the next response can start where this body ended.
    pub(crate) fn leaves_connection(&self) -> bool {
        self.is_done() && !self.excess && !matches!(self.framing, Reader::Closed)
    }

    /// Why there will be no more payload, and no end.
    pub(crate) fn failed(&self) -> Option<BadChunk> {
        self.failed
    }

    pub(crate) fn has_trailers(&self) -> bool {
        matches!(&self.framing, Reader::Chunked(chunked) if chunked.has_trailers())
    }

    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        match &mut self.framing {
            Reader::Chunked(chunked) => chunked.take_trailers(),
            _ => None,
        }
    }

    pub(crate) fn is_close_delimited(&self) -> bool {
        matches!(self.framing, Reader::UntilClose | Reader::Closed)
    }

    /// What is still to be taken.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match &self.framing {
            Reader::Length(left) => SizeHint::with_exact(*left),
            Reader::Closed => SizeHint::with_exact(0),
            // With trailers to come, a length would have them dropped: only a chunked body can carry them on.
            Reader::Chunked(chunked) if chunked.is_done() && !chunked.has_trailers() => {
                SizeHint::with_exact(0)
            }
            Reader::Chunked(_) | Reader::UntilClose => SizeHint::default(),
        }
    }
}
