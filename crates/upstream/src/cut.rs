//! How a response body ended without its end.

use std::error::Error;
use std::io;

use crate::BoxError;

/// What cut a body short, in words that stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CutKind {
    /// The connection or the stream was reset.
    Reset,
    /// The connection ended before the body did.
    Incomplete,
    /// The framing is broken: a bad chunk size, an HTTP/2 protocol error.
    BadFraming,
    /// Silence: the time between bytes was exceeded, or the kernel found the peer gone.
    TimedOut,
    /// Anything else; the chain says what.
    Other,
}

impl CutKind {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Incomplete => "incomplete",
            Self::BadFraming => "bad_framing",
            Self::TimedOut => "timed_out",
            Self::Other => "other",
        }
    }

    /// What the error of an HTTP/2 body that could not be read on means.
    pub(crate) fn of(error: &BoxError) -> Self {
        if let Some(error) = find::<h2::Error>(&**error) {
            return Self::of_http2(error);
        }
        if let Some(error) = find::<io::Error>(&**error) {
            return Self::of_io(error);
        }
        Self::Other
    }

    fn of_http2(error: &h2::Error) -> Self {
        match error.get_io() {
            Some(error) => Self::of_io(error),
            // Made here, because the peer broke the protocol.
            None if error.is_library() => Self::BadFraming,
            // RST_STREAM or GOAWAY.
            None if error.is_remote() => Self::Reset,
            None => Self::Other,
        }
    }

    pub(crate) fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind::*;
        match error.kind() {
            ConnectionReset | ConnectionAborted => Self::Reset,
            // What h2 makes of an end of the connection.
            UnexpectedEof | BrokenPipe => Self::Incomplete,
            TimedOut => Self::TimedOut,
            InvalidData | InvalidInput => Self::BadFraming,
            _ => Self::Other,
        }
    }
}

/// The first error of type `E` in the chain of `error`.
pub(crate) fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
