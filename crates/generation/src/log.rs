//! Where a running generation's entries go: into the journal, or nowhere.

use std::sync::Arc;
use std::task::{Context, Poll};

use streamweld_journal::{Seq, Window};

use crate::committer::{Committer, Progress};
use crate::handle::Handle;

/// A log that is journaled, or one that only its attached readers ever see.
pub(crate) enum Log<'a> {
    /// Entries are shown once the journal holds them.
    Journal(Committer<'a>),
    /// The journal never opened: entries are shown as they come, and the ring alone bounds them.
    Nowhere {
        window: &'a Arc<Window>,
        ending: bool,
    },
    /// The journal has given the suffix up: attached readers see it to its end.
    GivenUp { ending: bool },
}

impl<'a> Log<'a> {
    pub(crate) fn nowhere(window: &'a Arc<Window>) -> Self {
        Self::Nowhere {
            window,
            ending: false,
        }
    }

    pub(crate) fn given_up() -> Self {
        Self::GivenUp { ending: false }
    }

    /// Moves on as far as it goes without waiting. Pending when nothing is left to tell.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Progress> {
        match self {
            Self::Journal(committer) if committer.is_quiet() => Poll::Pending,
            Self::Journal(committer) => committer.poll(cx),
            Self::Nowhere { ending: true, .. } | Self::GivenUp { ending: true } => {
                Poll::Ready(Progress::Finished)
            }
            Self::Nowhere { .. } | Self::GivenUp { .. } => Poll::Pending,
        }
    }

    /// Whether another replica has it now. Nothing has to be appended for that to be known.
    pub(crate) fn is_lost(&mut self, handle: &Handle) -> bool {
        match self {
            Self::Journal(committer) if handle.is_taken_over() => {
                committer.taken_over();
                true
            }
            // What only those who are attached see is nobody else's.
            Self::Journal(_) | Self::Nowhere { .. } | Self::GivenUp { .. } => false,
        }
    }

    /// So much waits for the journal that the backend is to be read no further for now. Polling says when that is over.
    pub(crate) fn is_behind(&self) -> bool {
        match self {
            Self::Journal(committer) => committer.is_behind(),
            Self::Nowhere { .. } | Self::GivenUp { .. } => false,
        }
    }

    /// Everything through `received` is staged.
    pub(crate) fn staged(&mut self, received: Seq) {
        match self {
            Self::Journal(committer) => committer.staged(received),
            Self::Nowhere { window, .. } => window.commit(received),
            Self::GivenUp { .. } => {}
        }
    }

    /// Ready once everything that is staged is committed (`None`), or never will be.
    pub(crate) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<Option<Progress>> {
        match self.poll(cx) {
            Poll::Ready(progress) => Poll::Ready(Some(progress)),
            Poll::Pending => match self {
                Self::Journal(committer) if !committer.is_quiet() => Poll::Pending,
                Self::Journal(_) | Self::Nowhere { .. } | Self::GivenUp { .. } => Poll::Ready(None),
            },
        }
    }

    /// The terminal is staged; nothing comes after it.
    pub(crate) fn ending(&mut self, received: Seq) {
        self.staged(received);
        match self {
            Self::Journal(committer) => committer.ending(),
            Self::Nowhere { ending, .. } | Self::GivenUp { ending } => *ending = true,
        }
    }
}
