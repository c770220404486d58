//! What a window's lock guards: the marks, the end, and the rules that move them.
//!
//! Methods that make something visible return a [`Wake`]: it wakes readers when dropped, which the
//! caller does after the lock is released.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::beside::Beside;
use super::blocks::Blocks;
use super::copies::Copies;
use super::meter::{Charge, Meter};
use super::waiters::{Ticket, Waiters, Wake};
use super::{Digest, Marks, Window, WindowConfig};
use crate::segment::Part;
use crate::types::{Closed, Epoch, Kind, Seq, Terminal, View};

pub(crate) struct State {
    began: SystemTime,
    max_bytes: usize,
    epoch: Epoch,
    blocks: Blocks,
    committed: Seq,
    exposed: bool,
    /// Nothing more will be committed: the ring turns over what is received as well.
    given_up: bool,
    /// False once it was given up, for good: of what is beside entries a part is worse than nothing.
    keeps_beside: bool,
    /// Entries were given up: their sequences must not come back with other content.
    abandoned: bool,
    closed: Option<Closed>,
    /// Staged; it counts once `committed` has reached it.
    terminal: Option<Arc<Terminal>>,
    beside: Beside,
    label: Bytes,
    waiters: Waiters,
    pub(super) copies: Copies,
    charge: Charge,
}

impl State {
    pub(super) fn new(epoch: Epoch, now: SystemTime, config: WindowConfig) -> Self {
        Self {
            // Whole milliseconds, so that a time counted from here reads as the time itself does.
            began: now - fraction(now),
            max_bytes: config.max_bytes,
            epoch,
            blocks: Blocks::new(epoch, config),
            committed: Seq::ZERO,
            exposed: false,
            given_up: false,
            keeps_beside: true,
            abandoned: false,
            closed: None,
            terminal: None,
            beside: Beside::default(),
            label: Bytes::new(),
            waiters: Waiters::default(),
            copies: Copies::default(),
            charge: Charge::default(),
        }
    }

    // --- the writer

    /// Appends one entry, written by `write` with its id line and blank line.
    pub(super) fn push(
        &mut self,
        kind: Kind,
        millis: u32,
        write: impl FnOnce(Seq, Epoch, &mut Vec<u8>),
    ) -> Seq {
        assert!(self.terminal.is_none(), "nothing follows a terminal");
        assert!(
            !self.abandoned || kind.is_terminal(),
            "only a terminal follows an abandoned suffix"
        );
        let (seq, epoch) = (self.received().next(), self.epoch);
        // If not even `open` could be committed, the terminal of what was abandoned is all there is.
        let opens = self.abandoned || (seq == Seq::FIRST) == (kind == Kind::Open);
        assert!(opens, "the first entry, and no other, is `open`");
        self.blocks.push(kind, millis, |out| write(seq, epoch, out));
        seq
    }

    /// Keeps bytes beside the last entry.
    pub(super) fn put_beside(&mut self, bytes: &[u8]) {
        if self.keeps_beside {
            self.beside.put(self.received(), bytes);
        }
    }

    pub(super) fn beside(&self, after: Seq, through: Seq) -> Vec<u8> {
        self.beside.of(after, through)
    }

    pub(super) fn set_terminal(&mut self, terminal: Terminal) {
        self.terminal = Some(Arc::new(terminal));
        // Nothing follows, so what the last block has to spare is given back now: what a finished
        // generation holds is final before a backend is asked to finish it.
        self.blocks.seal();
    }

    pub(super) fn commit(&mut self, through: Seq) -> Wake {
        assert!(
            through <= self.received(),
            "only what is staged can be committed"
        );
        if through <= self.committed {
            return Wake::default();
        }
        self.committed = through;
        if self.terminal().is_some() {
            self.beside.clear();
        }
        self.drop_oldest();
        self.settle();
        self.wake()
    }

    pub(super) fn expose(&mut self, on: bool) -> Wake {
        let shows_more = on && !self.exposed && self.received() > self.committed;
        self.exposed = on;
        if shows_more {
            self.wake()
        } else {
            Wake::default()
        }
    }

    /// Exposes what is there, and wakes also those who have seen some of it.
    pub(super) fn show_all(&mut self) -> Wake {
        self.exposed = true;
        self.wake()
    }

    pub(super) fn give_up(&mut self) -> Wake {
        self.given_up = true;
        self.keeps_beside = false;
        self.beside.clear();
        self.turn();
        self.expose(true)
    }

    /// Lets the ring turn over what was just staged, where nothing waits to be committed.
    pub(super) fn turn(&mut self) {
        if self.given_up {
            self.drop_oldest();
            self.settle();
        }
    }

    pub(super) fn abandon(&mut self) {
        self.given_up = false;
        if self.received() == self.committed {
            return;
        }
        self.abandoned = true;
        self.terminal
            .take_if(|terminal| terminal.seq > self.committed);
        self.blocks.truncate(self.committed);
        self.beside.truncate(self.committed);
        // The sequences may come back with other bytes.
        self.copies.forget();
        self.settle();
    }

    pub(super) fn close(&mut self, why: Closed) -> Wake {
        if self.closed.is_some() {
            return Wake::default();
        }
        self.closed = Some(why);
        self.wake()
    }

    pub(super) fn begin_after(&mut self, after: Seq) {
        assert_eq!(
            self.received(),
            Seq::ZERO,
            "a window that holds something has begun"
        );
        self.blocks.begin_at(after.next());
        self.committed = after;
    }

    pub(super) fn begin_epoch(&mut self, epoch: Epoch) {
        assert!(epoch >= self.epoch, "epochs only grow");
        assert_eq!(
            self.received(),
            self.committed,
            "a new writer begins with what stands"
        );
        if epoch > self.epoch {
            self.epoch = epoch;
            self.blocks.begin_epoch(epoch);
            self.settle();
        }
    }

    pub(super) fn set_label(&mut self, label: Bytes) {
        self.label = label;
        self.settle();
    }

    pub(super) fn charge_to(&mut self, meter: Option<Arc<Meter>>) {
        self.charge = Charge::new(meter);
        self.settle();
    }

    /// Brings the meter up to date.
    pub(super) fn settle(&mut self) {
        let held = self.held();
        self.charge.settle(held);
    }

    // --- readers

    /// Everybody who waits, to be woken.
    pub(super) fn wake(&mut self) -> Wake {
        self.copies.expect(self.waiters.len());
        self.waiters.take()
    }

    pub(super) fn wait(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) -> Option<Waker> {
        self.waiters.register(ticket, waker)
    }

    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        self.waiters.cancel(ticket)
    }

    pub(super) fn locate(&self, seq: Seq) -> Option<(Part<'_>, Option<&Bytes>)> {
        self.blocks.locate(seq)
    }

    // --- facts

    pub(super) fn epoch_of(&self, seq: Seq) -> Option<Epoch> {
        self.blocks.locate(seq).map(|(part, _)| part.epoch)
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn received(&self) -> Seq {
        self.blocks.last()
    }

    pub(super) fn committed(&self) -> Seq {
        self.committed
    }

    pub(super) fn exposed(&self) -> bool {
        self.exposed
    }

    pub(super) fn closed(&self) -> Option<Closed> {
        self.closed
    }

    pub(super) fn earliest(&self) -> Seq {
        self.blocks.first()
    }

    pub(super) fn marks(&self) -> Marks {
        Marks {
            epoch: self.epoch,
            earliest: self.earliest(),
            committed: self.committed,
            received: self.received(),
            terminal: self.terminal.as_ref().map(|terminal| terminal.seq),
        }
    }

    /// The last entry that may be seen at all.
    pub(super) fn visible(&self) -> Seq {
        if self.exposed {
            self.received()
        } else {
            self.committed
        }
    }

    pub(super) fn terminal_through(&self, visible: Seq) -> Option<&Arc<Terminal>> {
        self.terminal
            .as_ref()
            .filter(|terminal| terminal.seq <= visible)
    }

    /// Whether a terminal is staged or committed.
    pub(super) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether a terminal is here that has this sequence, staged or committed.
    pub(super) fn ends_at(&self, seq: Seq) -> bool {
        self.terminal.as_ref().is_some_and(|it| it.seq == seq)
    }

    pub(super) fn terminal(&self) -> Option<&Arc<Terminal>> {
        self.terminal_through(self.committed)
    }

    pub(super) fn label(&self) -> Bytes {
        self.label.clone()
    }

    pub(super) fn millis(&self, now: SystemTime) -> u32 {
        let since = now.duration_since(self.began).unwrap_or_default();
        u32::try_from(since.as_millis()).unwrap_or(u32::MAX)
    }

    pub(super) fn time(&self, millis: u32) -> SystemTime {
        self.began + Duration::from_millis(millis.into())
    }

    pub(super) fn time_of(&self, seq: Seq) -> Option<SystemTime> {
        let (part, _) = self.locate(seq)?;
        Some(self.time(part.slot(seq).millis))
    }

    pub(super) fn first_since(&self, time: SystemTime) -> Seq {
        let (mut first, mut behind) = (self.earliest().get(), self.committed().next().get());
        while first < behind {
            let middle = first + (behind - first) / 2;
            let is_before = self.time_of(Seq::new(middle)).is_some_and(|at| at < time);
            if is_before {
                first = middle + 1;
            } else {
                behind = middle;
            }
        }
        Seq::new(first)
    }

    pub(super) fn digest(&self, seq: Seq) -> Option<Digest> {
        let (part, _) = self.locate(seq)?;
        Some(Digest::of(&part.bytes[part.range(seq)]))
    }

    pub(super) fn has_more_to_show(&self, after: Seq, view: View) -> bool {
        let terminal = self.terminal();
        if terminal.is_some_and(|it| it.seq > after && (view.control || !it.ending.is_empty())) {
            return true;
        }
        let last = terminal.map_or(self.committed, |it| it.seq.prev());
        if after >= last {
            return false;
        }
        if after.next() < self.earliest() {
            return true;
        }
        (after.get() + 1..=last.get()).any(|seq| {
            let (part, _) = self
                .locate(Seq::new(seq))
                .expect("between earliest and committed");
            view.shows(part.slot(Seq::new(seq)).kind())
        })
    }

    pub(super) fn held(&self) -> usize {
        self.blocks.held() + self.held_besides()
    }

    /// The slow, obvious count, as a check of the running one.
    #[cfg(test)]
    pub(super) fn recount(&self) -> usize {
        self.blocks.recount() + self.held_besides()
    }

    /// The ring. The last entry that readers see stays, however large: an entry is never gone before a
    /// reader could see it. What waits to be committed stays as well, unless it waits in vain.
    fn drop_oldest(&mut self) {
        let keep = if self.given_up {
            self.received()
        } else {
            self.committed
        };
        while self.held() > self.max_bytes && self.blocks.drop_before(keep) {
            self.beside.drop_before(self.blocks.first());
        }
    }

    fn held_besides(&self) -> usize {
        let terminal = self.terminal.as_ref().map_or(0, |it| {
            let code = it.code.as_ref().map_or(0, String::capacity);
            ARC_COUNTS + size_of::<Terminal>() + code + it.lines.len() + it.ending.len()
        });
        ARC_COUNTS + size_of::<Window>() + self.beside.held() + self.label.len() + terminal
    }
}

/// What a time has beyond its whole milliseconds.
fn fraction(time: SystemTime) -> Duration {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(u64::from(since.subsec_nanos() % 1_000_000))
}

const ARC_COUNTS: usize = 2 * size_of::<usize>();
