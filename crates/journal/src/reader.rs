//! A reader: one downstream response, standing at one cursor.
//!
//! It is given runs of what became visible after its cursor and has no queue and no task of its own, so
//! a slow one costs the writer nothing. It promises every entry that its view shows once and in order.
//! When retention has passed its cursor it is told; it never skips.
//!
//! Entries that were shown without ids, from an exposed window, are not shown again by the same reader
//! once they are committed.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::types::{Closed, Seq, Terminal, View};
use crate::window::{Ticket, Window};

/// Reads one window from one place on. See the module.
pub struct Reader {
    window: Arc<Window>,
    cursor: Seq,
    view: View,
    ticket: Option<Ticket>,
}

/// What a reader is given.
#[derive(Clone, Debug)]
pub enum Step {
    /// Whole blocks, side by side.
    Run {
        /// Their bytes, in one piece.
        bytes: Bytes,
        /// Everything up to here was given or is hidden from this view: the new cursor.
        through: Seq,
        /// Whether they are committed. If not, they have no id lines.
        sequenced: bool,
    },
    /// Everything before the terminal was given; this is how it ended.
    End {
        /// The terminal.
        terminal: Arc<Terminal>,
        /// Whether it is committed. If not, its sequence must not be shown.
        sequenced: bool,
    },
    /// Entries after the cursor are gone. Nothing was skipped: the reader stays where it was.
    Overtaken {
        /// The first entry that is still there.
        earliest: Seq,
    },
    /// Everything there is was given and no more will come here.
    Closed(Closed),
}

impl Reader {
    /// A reader of what comes after `after`.
    pub fn new(window: Arc<Window>, after: Seq, view: View) -> Self {
        Self {
            window,
            cursor: after,
            view,
            ticket: None,
        }
    }

    /// The next step: a run of at most `max` bytes (but at least one entry), or how it ended.
    ///
    /// The bound is on bytes as stored. [`Step::End`], [`Step::Overtaken`] and [`Step::Closed`] are
    /// given again when polled again. When pending, the waker of `cx` is woken once something changes;
    /// a reader polled again keeps its one place in the queue.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Step> {
        self.window
            .poll_next(cx, &mut self.cursor, &mut self.ticket, self.view, max)
    }

    /// [`poll_next`](Self::poll_next) as a future.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self, max: usize) -> Step {
        poll_fn(|cx| self.poll_next(cx, max)).await
    }

    /// Where it stands: the last entry given, or hidden from it.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// What it is shown.
    pub fn view(&self) -> View {
        self.view
    }

    /// What it reads.
    pub fn window(&self) -> &Arc<Window> {
        &self.window
    }

    /// Whether anything committed that it would be shown lies after its cursor; see
    /// [`Window::has_more_to_show`].
    pub fn has_more_to_show(&self) -> bool {
        self.window.has_more_to_show(self.cursor, self.view)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.window.leave(ticket);
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("stream", &self.window.id())
            .field("cursor", &self.cursor)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}
