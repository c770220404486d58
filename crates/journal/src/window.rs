//! The wire-ready bytes of one generation: one writer, any number of readers.
//!
//! Everything is behind one short lock. Two marks move forward: `received`, what the writer staged,
//! and `committed`, what a backend has confirmed. Readers see up to `committed`, and up to `received`
//! while the window is exposed.
//!
//! Costs: staging an entry copies its lines once and allocates nothing beyond the block it lies in.
//! Committing costs the readers that wait, never the history. A reader of sealed bytes shares them; at
//! the live tail it gets a copy, which readers at the same place share among each other. A window
//! without entries has no block.
//!
//! Retention inside a generation is a ring of blocks: when more is held than [`WindowConfig`] allows,
//! whole committed blocks go, oldest first, but never the last committed entry. A reader that is
//! passed by reads on in pages where the journal has what has gone (see [`Earlier`]), and is told where
//! it has not. It is never skipped.

mod batch;
mod beside;
mod blocks;
mod copies;
mod digest;
mod listing;
mod meter;
mod mirror;
mod next;
mod staging;
mod state;
mod waiters;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;

use crate::earlier::Earlier;
use crate::id::StreamId;
use crate::idline::Prefix;
use crate::reader::Step;
use crate::types::{Closed, Epoch, Seq, Terminal, TerminalParts, View};

use state::State;
pub(crate) use waiters::Ticket;

pub use batch::{Batch, Entry, EntryBytes};
pub use digest::Digest;
pub use listing::{Listed, Listing};
pub use meter::Meter;
pub use mirror::{MirrorError, Mirrored};
pub use staging::Staging;

/// How much one generation may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Above this, the oldest committed blocks go. A smaller ring saves memory on very long answers and
    /// makes their early part unreadable sooner. The default of 32 MiB is far beyond any chat answer.
    pub max_bytes: usize,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            max_bytes: 32 << 20,
        }
    }
}

/// The log of one generation as it is read. See the module.
pub struct Window {
    id: StreamId,
    prefix: Prefix,
    state: Mutex<State>,
    /// Beside the lock: it is set once, and asked for by readers that are behind only.
    earlier: OnceLock<Arc<dyn Earlier>>,
}

/// What stands in a window, read under one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The epoch that new entries are written under.
    pub epoch: Epoch,
    /// The first entry retained; one behind `committed` if there is none.
    pub earliest: Seq,
    /// The last entry that readers see under its sequence.
    pub committed: Seq,
    /// The last entry staged.
    pub received: Seq,
    /// Where the terminal is, if one is staged or committed.
    pub terminal: Option<Seq>,
}

impl Window {
    /// An empty window. Times of entries are counted from `now`.
    pub fn new(id: StreamId, epoch: Epoch, now: SystemTime, config: WindowConfig) -> Arc<Self> {
        Arc::new(Self {
            id,
            prefix: Prefix::new(id),
            state: Mutex::new(State::new(epoch, now, config)),
            earlier: OnceLock::new(),
        })
    }

    /// Readers that stand before this window's beginning are given what stands there by `earlier`. The first one stays.
    pub fn set_earlier(&self, earlier: Arc<dyn Earlier>) {
        // Two of the same log say the same.
        let _ = self.earlier.set(earlier);
    }

    /// What [`set_earlier`](Self::set_earlier) was given.
    pub fn earlier(&self) -> Option<&Arc<dyn Earlier>> {
        self.earlier.get()
    }

    /// An empty window begins behind `after`: entries up to there stand elsewhere, and are as good as committed here.
    ///
    /// # Panics
    /// When it has begun already.
    pub fn begin_after(&self, after: Seq) {
        self.lock().begin_after(after);
    }

    /// Begins to stage entries that came at `now`. Holds the window's lock until it is dropped, so
    /// that everything one upstream read brought is staged together.
    pub fn stage(&self, now: SystemTime) -> Staging<'_> {
        Staging::new(&self.prefix, self.lock(), now)
    }

    /// Stages the terminal: the last entry, after which nothing may be staged. Trims what is held.
    ///
    /// # Panics
    /// When a terminal is already staged, nothing is, or the kind is not final.
    pub fn stage_terminal(&self, now: SystemTime, terminal: TerminalParts) -> Seq {
        let mut staging = self.stage(now);
        staging.terminal(now, terminal)
    }

    /// Appends entries that another process wrote, and shows them. What stands already is skipped, so that overlapping
    /// ranges may be given in any order that leaves no gap. Returns the last entry that stands.
    ///
    /// # Errors
    /// Nothing was changed; see [`MirrorError`].
    pub fn mirror(&self, new: &Mirrored<'_>) -> Result<Seq, MirrorError> {
        // Order matters: the lock is released before the readers are woken.
        let _wake;
        let mut state = self.lock();
        let last = mirror::mirror(&self.prefix, &mut state, new)?;
        _wake = state.commit(last);
        Ok(last)
    }

    /// Appends entries that their writer has shown and that may not stand: they are shown without ids, like what is
    /// exposed by a writer. [`mirror`](Self::mirror) commits them when they come as what stands, or tells that others do.
    /// Returns the last entry that is here.
    ///
    /// # Errors
    /// Nothing was changed; see [`MirrorError`].
    pub fn foresee(&self, new: &Mirrored<'_>) -> Result<Seq, MirrorError> {
        // Order matters: the lock is released before the readers are woken.
        let _wake;
        let mut state = self.lock();
        let last = mirror::mirror(&self.prefix, &mut state, new)?;
        state.turn();
        state.settle();
        _wake = state.show_all();
        Ok(last)
    }

    /// Makes entries visible under their sequence and wakes the readers that wait. Committing the
    /// terminal ends the window. What is already committed stays so.
    ///
    /// # Panics
    /// When `through` is not staged.
    pub fn commit(&self, through: Seq) {
        let _wake = self.lock().commit(through);
    }

    /// Degraded: whether readers may see what is received and not committed, without ids. A terminal
    /// that is staged and cannot be committed is shown as well.
    pub fn expose(&self, on: bool) {
        let _wake = self.lock().expose(on);
    }

    /// Whether readers may see what is received and not committed.
    pub fn is_exposed(&self) -> bool {
        self.lock().exposed()
    }

    /// The log will not be healed: what is received stays visible without ids, and the ring lets go of
    /// it like of anything else, so that a producer can go on for those who are attached.
    pub fn give_up(&self) {
        let _wake = self.lock().give_up();
    }

    /// Gives up what is received and not committed: it could not be healed. If there was anything, only
    /// a terminal may be staged from here on, at `committed + 1`; readers that saw the suffix without
    /// ids are not shown anything else in its place.
    pub fn abandon(&self) {
        self.lock().abandon();
    }

    /// Tells readers that no terminal will come here, once they have seen what there is. The first
    /// reason stays. A terminal that is visible, then or later, wins.
    pub fn close(&self, why: Closed) {
        let _wake = self.lock().close(why);
    }

    /// Entries staged from here on are written under `epoch`, after a change of the writer.
    ///
    /// # Panics
    /// When something is staged and not committed, or the epoch is lower.
    pub fn begin_epoch(&self, epoch: Epoch) {
        self.lock().begin_epoch(epoch);
    }

    /// Whose window this is.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Whether it holds all entries that there ever were.
    pub fn is_whole(&self) -> bool {
        self.earliest() == Seq::FIRST
    }

    /// The epoch that an entry was written under, where it is held.
    pub fn epoch_of(&self, seq: Seq) -> Option<Epoch> {
        self.lock().epoch_of(seq)
    }

    /// The epoch that new entries are written under.
    pub fn epoch(&self) -> Epoch {
        self.lock().epoch()
    }

    /// The last entry staged.
    pub fn received(&self) -> Seq {
        self.lock().received()
    }

    /// The last entry that readers see under its sequence.
    pub fn committed(&self) -> Seq {
        self.lock().committed()
    }

    /// The first entry retained; one behind `committed` if there is none.
    pub fn earliest(&self) -> Seq {
        self.lock().earliest()
    }

    /// All marks under one lock.
    pub fn marks(&self) -> Marks {
        self.lock().marks()
    }

    /// The terminal, once it is committed.
    pub fn terminal(&self) -> Option<Arc<Terminal>> {
        self.lock().terminal().cloned()
    }

    /// Why it was closed, if it was.
    pub fn closed(&self) -> Option<Closed> {
        self.lock().closed()
    }

    /// When an entry that is retained was staged.
    pub fn time_of(&self, seq: Seq) -> Option<SystemTime> {
        self.lock().time_of(seq)
    }

    /// The first entry that is held, committed and no earlier than `time`; one behind the last where there is none. Where
    /// clocks went back there may be several such places: this is one of them.
    pub fn first_since(&self, time: SystemTime) -> Seq {
        self.lock().first_since(time)
    }

    /// When the last committed entry was staged.
    pub fn last_time(&self) -> Option<SystemTime> {
        let state = self.lock();
        state.time_of(state.committed())
    }

    /// Over the bytes of an entry that is retained, to compare with what stands elsewhere.
    pub fn digest(&self, seq: Seq) -> Option<Digest> {
        self.lock().digest(seq)
    }

    /// Everything received after `after`, committed or not: what a remote backend sends.
    pub fn staged(&self, after: Seq) -> Batch {
        let state = self.lock();
        state.batch(after, state.received())
    }

    /// The same up to and with `through`.
    pub fn staged_through(&self, after: Seq, through: Seq) -> Batch {
        self.lock().batch(after, through)
    }

    /// At most `limit` committed entries after `after`, for those who look inside: transcripts.
    pub fn entries(&self, after: Seq, limit: usize) -> Vec<EntryBytes> {
        self.lock().entries(after, limit)
    }

    /// Keeps opaque bytes beside the log; they survive the ring.
    pub fn set_label(&self, label: Bytes) {
        self.lock().set_label(label);
    }

    /// What [`set_label`](Self::set_label) keeps.
    pub fn label(&self) -> Bytes {
        self.lock().label()
    }

    /// Bytes really held: blocks at their capacity, index, what is beside, label, terminal and the window itself. Copies
    /// that readers are just sending, and what readers bring with them, are theirs and not counted.
    pub fn held(&self) -> usize {
        self.lock().held()
    }

    /// Bytes of the entries that are received and not committed.
    pub fn uncommitted(&self) -> usize {
        self.lock().uncommitted()
    }

    /// From here on `meter` follows what this window holds; with `None`, nothing does. What was counted
    /// on an earlier meter is taken back.
    pub fn charge_to(&self, meter: Option<Arc<Meter>>) {
        self.lock().charge_to(meter);
    }

    /// Whether a reader of this view, standing at `after`, would be shown anything that is committed: an
    /// entry, or what the terminal looks like to it.
    pub fn has_more_to_show(&self, after: Seq, view: View) -> bool {
        self.lock().has_more_to_show(after, view)
    }

    /// The next step of a reader of a page: nothing more comes to one, so nobody waits for it.
    pub(crate) fn next_of_page(
        &self,
        cursor: &mut Seq,
        view: View,
        max: usize,
        listing: Option<&mut Listing>,
    ) -> Option<Step> {
        self.lock().next(cursor, view, max, listing)
    }

    pub(crate) fn poll_next(
        &self,
        cx: &Context<'_>,
        cursor: &mut Seq,
        ticket: &mut Option<Ticket>,
        view: View,
        max: usize,
        listing: Option<&mut Listing>,
    ) -> Poll<Step> {
        let mut state = self.lock();
        match state.next(cursor, view, max, listing) {
            Some(step) => Poll::Ready(step),
            None => {
                let replaced = state.wait(ticket, cx.waker());
                drop(state);
                // Foreign code may run when a waker is dropped, so it is not dropped under the lock.
                drop(replaced);
                Poll::Pending
            }
        }
    }

    pub(crate) fn leave(&self, ticket: Ticket) {
        let waker = self.lock().leave(ticket);
        drop(waker);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Foreign code under the lock is only the closure that writes an entry; if that panics, its bytes
        // lie behind the last indexed entry and are overwritten. So a poisoned lock is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("id", &self.id)
            .field("marks", &self.marks())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
