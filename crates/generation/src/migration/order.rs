//! An operator's wish that a generation go on elsewhere, and what became of it.

use std::time::Duration;

use streamweld_dialect::Method;
use tokio::sync::oneshot;

use super::gates::{Gate, Verdict};

/// What is wished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Only to know what the gates say now.
    DryRun,
    /// Another backend goes on, if every gate passes.
    Move,
    /// The same, because its backend is drained.
    Drain,
    /// Another replica goes on, because this one leaves.
    HandOver,
    /// Its backend fails its probes: if nothing has come for this long either, another goes on, if every gate passes.
    Unhealthy(Duration),
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// What the gates say, in answer to [`Order::DryRun`].
    Gates(Judged),
    /// Another backend goes on with it.
    Moved {
        /// The one that was left.
        from: String,
        /// The one that goes on.
        to: String,
        /// How that was told where the answer was; none where nothing had been said yet.
        method: Option<Method>,
    },
    /// It stays, and goes on where it is.
    Stays {
        /// What the gates said.
        judged: Judged,
        /// In one sentence.
        reason: String,
    },
    /// It was over first, or never became a generation.
    Over,
}

/// All verdicts, and what they are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What every gate says, in the order of [`Gate::ALL`].
    pub verdicts: Vec<Verdict>,
    /// The backend that would go on, where there is one.
    pub target: Option<String>,
    /// How it would be told where the answer is.
    pub method: Option<Method>,
}

impl Judged {
    /// Whether every gate passes.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.verdicts.iter().all(Verdict::is_open)
    }

    /// Whether nothing refuses but what a look at the backend's tokens may open.
    pub(crate) fn only_seam(&self) -> bool {
        let mut refusing = self.refusing();
        !self.is_open()
            && refusing.all(|gate| matches!(gate, Gate::Seam | Gate::Template | Gate::Tokens))
    }

    /// The gates that refuse.
    pub fn refusing(&self) -> impl Iterator<Item = Gate> {
        let refusing = self.verdicts.iter().filter(|verdict| !verdict.is_open());
        refusing.map(|verdict| verdict.gate)
    }
}

/// A wish on its way to the producer. Whoever asked is told [`Report::Over`] when it is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) order: Order,
    tell: oneshot::Sender<Report>,
}

impl Asked {
    pub(crate) fn new(order: Order) -> (Self, oneshot::Receiver<Report>) {
        let (tell, told) = oneshot::channel();
        (Self { order, tell }, told)
    }

    /// The caller may have gone meanwhile; then nobody needs to be told.
    pub(crate) fn tell(self, report: Report) {
        drop(self.tell.send(report));
    }
}
