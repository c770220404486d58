//! How much has to have happened before an entry counts as committed, in a journal outside of this process.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

/// What a yes of a backend means for the time after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// The server has it in its memory; when it reaches a disk or a replica is the server's own business.
    #[default]
    Async,
    /// So many replicas of the server have it too.
    Replicated(NonZeroU8),
    /// It is on the disk of the server.
    Fsync,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Async => f.write_str("async"),
            Self::Replicated(replicas) => write!(f, "replicated:{replicas}"),
            Self::Fsync => f.write_str("fsync"),
        }
    }
}

/// A text that names no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a level is async, replicated:N (N replicas, 1 to 255) or fsync")]
pub struct LevelError;

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        match text.split_once(':') {
            None if text == "async" => Ok(Self::Async),
            None if text == "fsync" => Ok(Self::Fsync),
            Some(("replicated", replicas)) if replicas.bytes().all(|c| c.is_ascii_digit()) => {
                replicas
                    .parse()
                    .map(Self::Replicated)
                    .map_err(|_| LevelError)
            }
            _ => Err(LevelError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_written_as_they_are_read() {
        for text in ["async", "replicated:1", "replicated:255", "fsync"] {
            assert_eq!(
                text.parse::<Level>().map(|it| it.to_string()),
                Ok(text.into())
            );
        }
    }

    #[test]
    fn what_names_no_level_is_refused() {
        for text in [
            "",
            "Async",
            "sync",
            "replicated",
            "replicated:",
            "replicated:0",
            "replicated:256",
            "replicated:+1",
            "replicated:1:1",
            "fsync:1",
        ] {
            assert_eq!(text.parse::<Level>(), Err(LevelError), "{text}");
        }
    }
}
