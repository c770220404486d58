//! What a session says of itself: at its beginning, while nothing comes, and at its end (protocol.md 6.9).

use serde::{Serialize, Serializer};

use super::bounds::Bound;
use crate::state::TerminalState;

/// What becomes of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything from its start on is there.
    Continue,
    /// What it should have started with is not retained.
    Gap,
    /// It is over, and nothing of it is left to be given.
    Complete,
    /// Its retention has ended.
    Expired,
}

impl Verdict {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Gap => "gap",
            Self::Complete => "complete",
            Self::Expired => "expired",
        }
    }
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    EndOfStream,
    Count,
    Bytes,
    Until,
    Idle,
    /// There is no more for now, and it was not to wait.
    CaughtUp,
    /// One answer is full.
    Page,
    MaxReplay,
    MaxAge,
    ServerShutdown,
    SlowReader,
    /// The journal lost a part, or cannot be read.
    Error(&'static str),
}

impl Reason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::EndOfStream => "end_of_stream",
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Until => "until",
            Self::Idle => "idle",
            Self::CaughtUp => "caught_up",
            Self::Page => "page",
            Self::MaxReplay => "max_replay",
            Self::MaxAge => "max_age",
            Self::ServerShutdown => "server_shutdown",
            Self::SlowReader => "slow_reader",
            Self::Error(_) => "error",
        }
    }

    pub(super) fn code(self) -> Option<&'static str> {
        match self {
            Self::Error(code) => Some(code),
            _ => None,
        }
    }

    /// It was given all that it asked for, so whoever comes back with its bounds is given nothing.
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Self::Count | Self::Bytes | Self::Until)
    }

    /// The rest is there for whoever comes back.
    pub(super) fn is_cut(self) -> bool {
        matches!(self, Self::MaxAge | Self::ServerShutdown | Self::SlowReader)
    }
}

impl From<Bound> for Reason {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::Count => Self::Count,
            Bound::Bytes => Self::Bytes,
            Bound::Until => Self::Until,
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How it begins.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Opening {
    pub(super) stream_id: String,
    pub(super) verdict: &'static str,
    /// The first entry that it may be given.
    pub(super) from: u64,
    /// The first entry that is held here.
    pub(super) earliest: u64,
    pub(super) last: u64,
    pub(super) last_time: Option<String>,
    pub(super) request_id: String,
    pub(super) max_age_ms: Option<u64>,
}

/// Where the generation stands.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Standing {
    pub(super) last: u64,
    pub(super) last_time: Option<String>,
}

/// The last entry of history: what follows is live.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Live {
    pub(super) through: u64,
}

/// There is more history than was to be replayed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ReplayLimit {
    pub(super) max_replay: u64,
}

/// How it ends.
#[derive(Serialize)]
pub(super) struct Closing<'a> {
    pub(super) reason: Reason,
    pub(super) code: Option<&'static str>,
    pub(super) request_id: &'a str,
    /// Where to go on, beyond what the session was bound to.
    pub(super) next: Option<String>,
    pub(super) last: u64,
    pub(super) last_time: Option<String>,
    pub(super) terminal: Option<TerminalState>,
}
