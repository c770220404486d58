//! A reader of a generation as the server holds it: a cursor, and the fact that somebody is there.

use std::sync::Arc;
use std::task::{Context, Poll};

use streamweld_journal::{Follow, Listing, Reader, Seq, Step, View, Window};

use crate::handle::Handle;

/// One downstream response, standing at one cursor.
///
/// While it lives, its generation has a reader; when it is dropped the orphan policy may begin. It has no
/// queue and no task: its socket asks for the next run of bytes when it has room.
#[derive(Debug)]
pub struct Attached {
    reader: Reader,
    presence: Option<Presence>,
    /// Held, not used: while it lives, the window follows.
    _follow: Option<Follow>,
}

/// Somebody waits for, or reads, this generation.
#[derive(Debug)]
pub struct Presence {
    handle: Arc<Handle>,
    marked: bool,
}

impl Presence {
    /// Counts one reader more.
    #[must_use]
    pub fn new(handle: Arc<Handle>) -> Self {
        handle.reader_came();
        Self {
            handle,
            marked: false,
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.handle.reader_left();
    }
}

impl Attached {
    /// A reader of a running generation, after `after`.
    #[must_use]
    pub fn live(presence: Presence, after: Seq, view: View) -> Self {
        let reader = Reader::new(Arc::clone(presence.handle.window()), after, view);
        Self::running(presence, reader)
    }

    /// The same, of a reader that is there already.
    #[must_use]
    pub fn running(presence: Presence, reader: Reader) -> Self {
        Self {
            reader,
            presence: Some(presence),
            _follow: None,
        }
    }

    /// A reader of a generation without a producer here: it has ended, or another replica writes it.
    #[must_use]
    pub fn elsewhere(reader: Reader, follow: Option<Follow>) -> Self {
        Self {
            reader,
            presence: None,
            _follow: follow,
        }
    }

    /// The next run of whole blocks, at most `max` bytes but at least one entry.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Step> {
        let step = self.reader.poll_next(cx, max);
        self.mark(&step);
        step
    }

    /// The same with where the entries of the run lie; see [`Reader::poll_listed`].
    pub fn poll_listed(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        listing: &mut Listing,
    ) -> Poll<Step> {
        let step = self.reader.poll_listed(cx, max, listing);
        self.mark(&step);
        step
    }

    fn mark(&mut self, step: &Poll<Step>) {
        if let (Poll::Ready(Step::Run { .. }), Some(presence)) = (step, &mut self.presence) {
            if !presence.marked {
                presence.marked = true;
                presence.handle.mark_served();
            }
        }
    }

    /// The reader itself.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The window that is read.
    #[must_use]
    pub fn window(&self) -> &Arc<Window> {
        self.reader.window()
    }
}
