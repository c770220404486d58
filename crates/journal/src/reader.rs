//! A reader: one downstream response, standing at one cursor.
//!
//! It is given runs of what became visible after its cursor and has no queue and no task of its own, so
//! a slow one costs the writer nothing. It promises every entry that its view shows once and in order.
//! When retention has passed its cursor it is told; it never skips.
//!
//! One that stands before the beginning of its window reads pages of the log, one after the other, until
//! it has come as far as the window (see [`Earlier`](crate::Earlier)). It holds one page at most, and asks for the
//! next when it is polled and has read that.
//!
//! Entries that were shown without ids, from an exposed window, are not shown again by the same reader
//! once they are committed.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::contract::Call;
use crate::cursor::Cursor;
use crate::earlier::Page;
use crate::types::{Closed, Epoch, Seq, Terminal, View};
use crate::window::{Listing, Ticket, Window};

/// Reads one window from one place on. See the module.
pub struct Reader {
    window: Arc<Window>,
    cursor: Seq,
    view: View,
    ticket: Option<Ticket>,
    /// While it has not come as far as the window's beginning.
    behind: Option<Behind>,
}

/// None -> Asked -> Given -> None, until the window holds what comes next.
enum Behind {
    /// The next page is under way.
    Asked(Call<'static, Page>),
    /// This is read first.
    Given(Arc<Window>),
}

/// What a reader needs next is not there any more; see [`Step::Overtaken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the next entries are gone, the first one left is {earliest}")]
pub struct Gone {
    /// The first entry that is still there.
    pub earliest: Seq,
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
    /// Entries after the cursor are gone, here and in the journal. Nothing was skipped: the reader stays where it was.
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
            behind: None,
        }
    }

    /// The place up to which everything was given or is hidden from its view. `None` where some of that was shown without
    /// ids, and does not stand in the journal.
    pub fn place(&self) -> Option<Cursor> {
        let (seq, window) = (self.cursor, &self.window);
        (seq <= window.committed()).then(|| Cursor {
            stream: window.id(),
            seq,
            epoch: window.epoch_of(seq).unwrap_or(Epoch::FIRST),
        })
    }

    /// Waits until what it needs next is at hand, which takes time only where that stands in the journal alone.
    ///
    /// # Errors
    /// It is gone.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn prepare(&mut self) -> Result<(), Gone> {
        poll_fn(|cx| {
            if self.behind.is_none() {
                let earliest = self.window.earliest();
                if self.cursor.next() >= earliest {
                    return Poll::Ready(Ok(()));
                }
                if !self.ask() {
                    return Poll::Ready(Err(Gone { earliest }));
                }
            }
            self.poll_page(cx)
        })
        .await
    }

    /// The next step: a run of at most `max` bytes (but at least one entry), or how it ended.
    ///
    /// The bound is on bytes as stored. [`Step::End`], [`Step::Overtaken`] and [`Step::Closed`] are
    /// given again when polled again. When pending, the waker of `cx` is woken once something changes;
    /// a reader polled again keeps its one place in the queue.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Step> {
        self.poll_step(cx, max, None)
    }

    /// The same for one that looks at each entry: with a [`Step::Run`] comes where its entries lie. What is not committed
    /// is waited for, also while the window is exposed, so that every entry has its place.
    pub fn poll_listed(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        listing: &mut Listing,
    ) -> Poll<Step> {
        self.poll_step(cx, max, Some(listing))
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        mut listing: Option<&mut Listing>,
    ) -> Poll<Step> {
        loop {
            if self.behind.is_some() {
                if let Some(step) = ready!(self.poll_behind(cx, max, listing.as_deref_mut())) {
                    return Poll::Ready(step);
                }
            }
            let (cursor, ticket) = (&mut self.cursor, &mut self.ticket);
            let listed = listing.as_deref_mut();
            let step = self
                .window
                .poll_next(cx, cursor, ticket, self.view, max, listed);
            if !matches!(step, Poll::Ready(Step::Overtaken { .. })) || !self.ask() {
                return step;
            }
        }
    }

    /// Asks for the next page. False where there is nobody to ask, or nothing that is committed to ask for.
    fn ask(&mut self) -> bool {
        let through = self.window.committed();
        let Some(earlier) = self.window.earlier().filter(|_| self.cursor < through) else {
            return false;
        };
        let page = Arc::clone(earlier).page(self.cursor, through);
        self.behind = Some(Behind::Asked(page));
        true
    }

    /// Waits for a page that is under way.
    fn poll_page(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let Some(Behind::Asked(call)) = &mut self.behind else {
            return Poll::Ready(Ok(()));
        };
        let earliest = match ready!(Pin::new(call).poll(cx)) {
            // Otherwise it would be asked for again and again.
            Page::Here(page) if page.earliest() <= self.cursor.next() => {
                if page.committed() > self.cursor {
                    self.behind = Some(Behind::Given(page));
                    return Poll::Ready(Ok(()));
                }
                None
            }
            Page::Here(page) => Some(page.earliest()),
            Page::Gone { earliest } => earliest,
        };
        self.behind = None;
        let earliest = earliest.unwrap_or_else(|| self.window.earliest());
        Poll::Ready(Err(Gone { earliest }))
    }

    /// The next step from a page. `None`: it is read, and the window is looked at again.
    fn poll_behind(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        listing: Option<&mut Listing>,
    ) -> Poll<Option<Step>> {
        if let Err(Gone { earliest }) = ready!(self.poll_page(cx)) {
            return Poll::Ready(Some(Step::Overtaken { earliest }));
        }
        let step = match &self.behind {
            Some(Behind::Given(page)) => {
                page.next_of_page(&mut self.cursor, self.view, max, listing)
            }
            Some(Behind::Asked(_)) | None => None,
        };
        // An end is told by the window, which has every last entry.
        let run = step.filter(|step| matches!(step, Step::Run { .. }));
        if run.is_none() {
            self.behind = None;
        }
        Poll::Ready(run)
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
        let more = |window: &Window, after| window.has_more_to_show(after, self.view);
        match &self.behind {
            Some(Behind::Given(page)) => {
                more(page, self.cursor) || more(&self.window, self.cursor.max(page.committed()))
            }
            Some(Behind::Asked(_)) | None => more(&self.window, self.cursor),
        }
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
