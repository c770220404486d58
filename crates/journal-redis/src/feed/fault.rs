//! How a connection ends.

use std::io;

use thiserror::Error;

use super::registry::Unexpected;
use super::resp::Malformed;
use crate::link::ConnectError;

/// Why a connection ended. It says nothing about where the server is, nor what it said beyond a code.
#[derive(Debug, Error)]
pub(super) enum Fault {
    #[error("it cannot be made: {0}")]
    Connect(io::ErrorKind),
    #[error("{0}")]
    NoServer(ConnectError),
    #[error("it was not made in time")]
    ConnectTimeout,
    #[error("the server closed it")]
    Closed,
    #[error("it failed: {0}")]
    Failed(io::ErrorKind),
    #[error("the server did not answer in time")]
    Silent,
    #[error("the server refused with {0}")]
    Refused(Code),
    #[error("the server sent {0}")]
    Malformed(#[from] Malformed),
    #[error("the server said what was not asked")]
    Unexpected,
    #[error("another one was asked for")]
    Renewal,
    #[error("it leads to the wrong server")]
    Moved,
}

impl Fault {
    /// Why a connection could not be made.
    pub(super) fn unmade(error: &io::Error) -> Self {
        let source = error.get_ref();
        match source.and_then(|source| source.downcast_ref::<ConnectError>()) {
            Some(known) => Self::NoServer(known.clone()),
            None => Self::Connect(error.kind()),
        }
    }
}

impl From<Unexpected> for Fault {
    fn from(_: Unexpected) -> Self {
        Self::Unexpected
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.kind())
    }
}

/// The first word of an error of Redis, such as `NOAUTH`. What follows may name a user or an address.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub(super) struct Code(String);

impl Code {
    pub(super) fn of(error: &[u8]) -> Self {
        let length = error
            .iter()
            .take(MAX_CODE)
            .take_while(|byte| byte.is_ascii_uppercase())
            .count();
        Self(String::from_utf8_lossy(&error[..length]).into_owned())
    }

    pub(super) fn is(&self, code: &str) -> bool {
        self.0 == code
    }

    /// A node does not have the slot of a channel, or nobody has it for the moment.
    pub(super) fn is_of_slot(&self) -> bool {
        matches!(
            self.0.as_str(),
            "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN"
        )
    }
}

/// Longer than any code that Redis has.
const MAX_CODE: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_by_its_first_word() {
        let code = |error: &str| Code::of(error.as_bytes()).0;
        assert_eq!(code("NOAUTH Authentication required."), "NOAUTH");
        assert_eq!(code("MOVED 1234 10.0.0.1:6379"), "MOVED");
        assert_eq!(code("secret@host"), "");
        assert_eq!(code(&"A".repeat(100)).len(), MAX_CODE);
    }
}
