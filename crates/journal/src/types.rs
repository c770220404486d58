//! The small words of the journal: sequence, epoch, kind, view, terminal.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;

/// The place of an entry in its log: 1, 2, 3 …; [`Seq::ZERO`] is the place before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(u64);

impl Seq {
    /// The start: before every entry.
    pub const ZERO: Self = Self(0);
    /// The first entry, always of kind `open`.
    pub const FIRST: Self = Self(1);

    /// The sequence of this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place right after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub(crate) const fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names the writer of a log: each has a higher one than the writer that it replaced, and whoever was replaced is fenced off.
///
/// It is the one before and a random step. An adoption may be lost with the end of the log, and leaves no trace then; a
/// count would give its number, and with it the cursors of what it had written, to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of the replica that created the log. It is not written in cursors.
    pub const FIRST: Self = Self(1);

    /// The greatest that is read from outside. Every one has a higher one, and with steps of at most 2^32 no log comes
    /// here within two thousand million takeovers.
    pub const LAST: Self = Self(i64::MAX as u64);

    /// The epoch of this number; `None` for 0 and for what is above [`LAST`](Self::LAST), which no writer ever has.
    pub const fn new(number: u64) -> Option<Self> {
        if number == 0 || number > Self::LAST.0 {
            None
        } else {
            Some(Self(number))
        }
    }

    /// The bare number, at least 1.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// An epoch for whoever replaces the writer of this one: 1 to 2^32 above it, as `random` says.
    #[must_use]
    pub const fn above(self, random: u32) -> Self {
        Self(self.0 + 1 + random as u64)
    }

    /// An epoch that nobody ever had, for whoever replaces the writer of this one: two choices are the same once in four
    /// thousand million times.
    ///
    /// # Panics
    /// When the operating system has no random bits to give. Going on with an epoch that another one may have had would
    /// be worse than not going on.
    #[must_use]
    pub fn fresh(self) -> Self {
        self.above(getrandom::u32().expect("the operating system gives random bits"))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The first entry of every log.
    Open = 0,
    /// One complete event of the upstream answer.
    Event = 1,
    /// The producer moved to another backend.
    Migration = 2,
    /// Something a control reader should know.
    Warning = 3,
    /// Terminal: the answer is whole.
    Done = 4,
    /// Terminal: the answer failed.
    Error = 5,
    /// Terminal: somebody called stop.
    Stopped = 6,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Open,
        Self::Event,
        Self::Migration,
        Self::Warning,
        Self::Done,
        Self::Error,
        Self::Stopped,
    ];

    /// The lowercase word used in journals, logs and control events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Event => "event",
            Self::Migration => "migration",
            Self::Warning => "warning",
            Self::Done => "done",
            Self::Error => "error",
            Self::Stopped => "stopped",
        }
    }

    /// Whether it ends its log.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Error | Self::Stopped)
    }

    /// Whether only a control reader is shown it: everything but an event.
    pub const fn is_control(self) -> bool {
        !matches!(self, Self::Event)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownKind)
    }
}

/// A word that names no [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown entry kind")]
pub struct UnknownKind;

/// What one reader is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Events carry their `id:` line.
    pub ids: bool,
    /// Control entries (`open`, `migration`, `warning`) are shown. The terminal is told to every reader.
    pub control: bool,
}

impl View {
    /// Whether an entry of this kind is shown. Terminals are told in their own way.
    pub(crate) fn shows(self, kind: Kind) -> bool {
        self.control || !kind.is_control()
    }
}

/// How a generation ended. Opaque to the journal apart from `kind` and `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// `done`, `error` or `stopped`.
    pub kind: Kind,
    /// A stable word for the reason, where there is one.
    pub code: Option<String>,
    /// Its place: the last of the log.
    pub seq: Seq,
    /// When it was staged.
    pub time: SystemTime,
    /// The control form: the block's lines, without `id:` line and blank line.
    pub lines: Bytes,
    /// What a reader of the plain answer is shown instead: whole blocks without ids, perhaps none.
    pub ending: Bytes,
    /// Where in `ending` an `id:` line goes, if anywhere.
    pub id_at: Option<usize>,
}

/// What the writer knows of a terminal before it has its place; see
/// [`Window::stage_terminal`](crate::Window::stage_terminal).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalParts {
    /// `done`, `error` or `stopped`.
    pub kind: Kind,
    /// A stable word for the reason, where there is one.
    pub code: Option<String>,
    /// The control form: the block's lines, each ended by LF, without `id:` line and blank line.
    pub lines: Vec<u8>,
    /// What a reader of the plain answer is shown: whole blocks without ids, perhaps none.
    pub ending: Vec<u8>,
    /// Where in `ending` an `id:` line goes, if anywhere.
    pub id_at: Option<usize>,
}

/// Why a window was closed without a terminal: its readers are to come back elsewhere or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// This process is going away.
    Shutdown,
    /// The owner failed.
    Failed,
    /// Another replica owns the generation now.
    Fenced,
    /// The journal lost part of it beyond healing.
    Incomplete,
}

impl Closed {
    /// The lowercase word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shutdown => "shutdown",
            Self::Failed => "failed",
            Self::Fenced => "fenced",
            Self::Incomplete => "incomplete",
        }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_always_above_the_one_it_replaces() {
        for epoch in [Epoch::FIRST, Epoch::LAST] {
            assert_eq!(epoch.above(0).get(), epoch.get() + 1);
            assert_eq!(epoch.above(u32::MAX).get(), epoch.get() + (1 << 32));
            assert!(epoch.fresh() > epoch);
        }
        assert_eq!(Epoch::new(0), None);
        assert_eq!(Epoch::new(Epoch::LAST.get()), Some(Epoch::LAST));
        assert_eq!(Epoch::new(Epoch::LAST.get() + 1), None);
    }

    #[test]
    fn two_epochs_for_one_place_are_not_the_same() {
        let mut epochs: Vec<Epoch> = (0..100).map(|_| Epoch::FIRST.fresh()).collect();
        epochs.sort_unstable();
        epochs.dedup();
        // By chance alone, two are once in about a million runs.
        assert!(epochs.len() >= 99, "{epochs:?}");
    }

    #[test]
    fn kinds_read_back() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("Open".parse::<Kind>(), Err(UnknownKind));
    }

    #[test]
    fn only_three_kinds_are_final_and_only_one_is_plain() {
        let terminal: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| kind.is_terminal())
            .collect();
        assert_eq!(terminal, [Kind::Done, Kind::Error, Kind::Stopped]);
        let plain: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| !kind.is_control())
            .collect();
        assert_eq!(plain, [Kind::Event]);
    }
}
