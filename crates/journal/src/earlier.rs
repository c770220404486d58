//! What stands before a window: entries that it has let go, or never held, and that its journal still has.
//!
//! In memory the window is the log, so nothing stands before it. A window of a journal that keeps everything is the
//! newest part of the log: it may begin anywhere, and a reader that stands before its beginning is given the log page by
//! page until it has come as far. A page is a small window of its own, so reading is the same code, whichever it reads.
//!
//! A reader asks for a page only when it has been asked for bytes and the page before is read, so a slow one costs the
//! journal no more than it takes, and holds one page at most.

use std::sync::Arc;

use crate::contract::Call;
use crate::types::Seq;
use crate::window::Window;

/// The source of what stands before one window; see [`Window::set_earlier`].
pub trait Earlier: Send + Sync {
    /// Reads what stands behind `after`, which lies before `through`: as much as makes a page, and nothing that begins
    /// behind `through`, which is committed.
    ///
    /// While the journal is out of reach this waits, up to a bound of the backend's.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    fn page(self: Arc<Self>, after: Seq, through: Seq) -> Call<'static, Page>;
}

/// What stands behind a place.
#[derive(Clone, Debug)]
pub enum Page {
    /// A window that nobody writes any more. It holds the entry behind that place, and perhaps some before it.
    Here(Arc<Window>),
    /// The entry behind that place is not there any more.
    Gone {
        /// The first one behind it that is, as far as that is known.
        earliest: Option<Seq>,
    },
}
