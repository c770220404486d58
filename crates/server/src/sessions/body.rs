//! A session as the body of a response: the plan over its reader, into its form.
//!
//! ```text
//! Reading ──bound, idle, end──> Last ──> Done                 a clean end
//!   │ ▲──fenced──> Elsewhere      └────> Leaving ──> Heard ──> Abort
//! ```
//!
//! History is what was committed when it began, up to a sequence that does not move; then comes the marker, then what
//! is live, from the next sequence on. There is no queue: the connection asks for the next piece when it has room. What
//! is not committed is not given, so every entry has its place.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use streamweld_generation::{Alarm, Attached, timestamp};
use streamweld_journal::{Closed, Cursor, Left, Listed, Listing, Seq, Step, Terminal};
use tokio::time::Instant;

use super::bounds::Bounds;
use super::forms::{Encoder, MAX_BATCH, MAX_ENTRIES, Told};
use super::plan::{Follow, Form};
use super::told::{Closing, Live, Opening, Reason, ReplayLimit, Standing};
use crate::body::{Abort, Chunk, Outstanding};
use crate::io::Breaker;
use crate::state::TerminalState;
use crate::stream_body::{IS_READ, Later, Manner, ReadOn, shown_end};
use crate::traced::Resume;

/// What a session begins with.
pub(super) struct Begin {
    pub(super) attached: Attached,
    pub(super) read_on: Option<ReadOn>,
    pub(super) manner: Manner,
    pub(super) breaker: Breaker,
    /// Sees how it ends, where that is traced.
    pub(super) traced: Option<Arc<Resume>>,
    pub(super) encoder: Encoder,
    pub(super) form: Form,
    pub(super) is_told: bool,
    pub(super) opening: Opening,
    /// Where it starts, if that can be said.
    pub(super) place: Option<Cursor>,
    /// The last entry of history.
    pub(super) history: Seq,
    pub(super) follow: Follow,
    pub(super) bounds: Bounds,
    /// No entry can come any more that is older than its bound.
    pub(super) until: Option<Instant>,
    /// How long it may last.
    pub(super) max_age: Option<Duration>,
    pub(super) wait: Option<Duration>,
    pub(super) max_replay: Option<u64>,
}

/// One response that reads a generation as a session.
pub(crate) struct SessionBody {
    begin: Begin,
    /// Whether history is over. It does not begin anew.
    is_live: bool,
    replayed: u64,
    /// Entries and bytes that were given in all.
    given: (usize, usize),
    listing: Listing,
    /// The run that is given from, and from which of its entries on.
    run: Option<(Bytes, usize)>,
    /// Since when there is nothing to give.
    idle: Option<Instant>,
    written: Instant,
    beat: Alarm,
    until: Option<Alarm>,
    too_old: Option<Alarm>,
    outstanding: Outstanding,
    phase: Phase,
}

enum Phase {
    Reading,
    /// Another replica has the generation, and it is looked for there.
    Elsewhere(Later),
    /// Everything was written, and what follows it is decided.
    Last {
        is_clean: bool,
    },
    Leaving,
    Heard,
    Abort,
    Done,
}

impl SessionBody {
    pub(super) fn new(begin: Begin) -> Self {
        let now = Instant::now();
        begin.breaker.carries_a_reader();
        let mut body = Self {
            is_live: false,
            replayed: 0,
            given: (0, 0),
            listing: Listing::default(),
            run: None,
            idle: None,
            written: now,
            beat: Alarm::new(now + begin.manner.heartbeat),
            until: begin.until.map(Alarm::new),
            too_old: begin.max_age.map(|age| Alarm::new(now + age)),
            outstanding: Outstanding::default(),
            phase: Phase::Reading,
            begin,
        };
        if body.begin.is_told {
            body.begin.encoder.tell(Told::Session, &body.begin.opening);
            body.begin.encoder.end_event(None, None);
        }
        body
    }

    /// Nothing more is taken from this, and its connection must not end as if it were whole.
    pub(crate) fn break_off(&self) {
        self.begin.breaker.arm();
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        loop {
            match &mut self.phase {
                Phase::Reading => match ready!(self.poll_reading(cx)) {
                    Some(piece) => return self.hand_over(piece),
                    None => continue,
                },
                Phase::Elsewhere(found) => match ready!(found.as_mut().poll(cx)) {
                    Some(attached) => {
                        self.begin.attached = attached;
                        self.phase = Phase::Reading;
                    }
                    None => self.close(Reason::ServerShutdown, None),
                },
                &mut Phase::Last { is_clean } => {
                    match self.begin.traced.take() {
                        Some(traced) if is_clean => traced.is_whole(),
                        Some(traced) => traced.is_broken_off(),
                        None => {}
                    }
                    self.phase = if is_clean {
                        Phase::Done
                    } else {
                        Phase::Leaving
                    };
                    if !self.begin.encoder.is_empty() {
                        let piece = self.begin.encoder.take();
                        return self.hand_over(piece);
                    }
                }
                Phase::Leaving => {
                    ready!(self.outstanding.poll_none(cx));
                    self.beat.reset(Instant::now() + IS_READ);
                    self.phase = Phase::Heard;
                }
                Phase::Heard => {
                    ready!(self.beat.poll(cx));
                    self.phase = Phase::Abort;
                }
                Phase::Abort => {
                    self.phase = Phase::Done;
                    self.begin.breaker.arm();
                    return Poll::Ready(Some(Err(Abort("the session was cut off"))));
                }
                Phase::Done => return Poll::Ready(None),
            }
        }
    }

    /// The next piece. `None`: the phase is another one.
    fn poll_reading(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(reason) = self.give() {
                self.close(reason, None);
                return Poll::Ready(None);
            }
            if let Some(too_old) = &mut self.too_old {
                if too_old.poll(cx).is_ready() {
                    self.close(Reason::MaxAge, None);
                    return Poll::Ready(None);
                }
            }
            if self.run.is_some() {
                // There is more than there is room for.
                return Poll::Ready(Some(self.begin.encoder.take()));
            }
            match self
                .begin
                .attached
                .poll_listed(cx, MAX_RUN, &mut self.listing)
            {
                Poll::Ready(Step::Run { bytes, .. }) => self.run = Some((bytes, 0)),
                Poll::Ready(Step::End { terminal, .. }) => {
                    self.end(&terminal);
                    return Poll::Ready(None);
                }
                Poll::Ready(Step::Overtaken { .. }) => {
                    // Where the journal keeps everything, nobody is too slow: the journal has lost it.
                    let reason = match self.begin.attached.window().earlier() {
                        None => Reason::SlowReader,
                        Some(_) => Reason::Error("cursor_expired"),
                    };
                    self.close(reason, None);
                    return Poll::Ready(None);
                }
                Poll::Ready(Step::Closed(Closed::Fenced)) if self.reads_on() => {
                    return Poll::Ready(None);
                }
                Poll::Ready(Step::Closed(why)) => {
                    let reason = match why {
                        Closed::Shutdown | Closed::Fenced => Reason::ServerShutdown,
                        Closed::Failed => Reason::Error("internal_error"),
                        Closed::Incomplete => Reason::Error("journal_incomplete"),
                    };
                    self.close(reason, None);
                    return Poll::Ready(None);
                }
                Poll::Pending => return self.poll_waiting(cx),
            }
        }
    }

    /// There is nothing more to give for now.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (reader, window) = (self.begin.attached.reader(), self.begin.attached.window());
        // Else a page of the log is under way.
        let is_caught_up = reader.cursor() >= window.committed();
        if is_caught_up {
            if let Some(reason) = self.reach(None) {
                self.close(reason, None);
                return Poll::Ready(None);
            }
            if self.begin.form == Form::Json && self.given.0 > 0 {
                self.close(Reason::CaughtUp, None);
                return Poll::Ready(None);
            }
        }
        if !self.begin.encoder.is_empty() {
            return Poll::Ready(Some(self.begin.encoder.take()));
        }
        if self
            .until
            .as_mut()
            .is_some_and(|until| until.poll(cx).is_ready())
            && is_caught_up
        {
            self.close(Reason::Until, None);
            return Poll::Ready(None);
        }
        let now = Instant::now();
        let mut due = self.written + self.begin.manner.heartbeat;
        if let (true, Some(wait)) = (is_caught_up, self.begin.wait) {
            let over = *self.idle.get_or_insert(now) + wait;
            if now >= over {
                self.close(Reason::Idle, None);
                return Poll::Ready(None);
            }
            due = due.min(over);
        }
        if now >= self.written + self.begin.manner.heartbeat {
            self.beat_once();
            return Poll::Ready(Some(self.begin.encoder.take()));
        }
        self.beat.reset(due);
        ready!(self.beat.poll(cx));
        // It was due in the meantime: look again.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Gives entries of the run while there is room. Says why no more are given, if that is so.
    fn give(&mut self) -> Option<Reason> {
        while let Some((bytes, index)) = self.run.take() {
            let entry = self.listing.entry(index)?;
            let length = entry.lines.len();
            if let Some(reason) = self.reach(Some(entry.seq)) {
                return Some(reason);
            }
            if let Some(bound) = self.begin.bounds.spent() {
                return Some(bound.into());
            }
            if let Some(reason) = self.replay_limit() {
                return Some(reason);
            }
            if self.is_full(length) {
                return Some(Reason::Page);
            }
            if !self.begin.encoder.has_room(length) {
                self.run = Some((bytes, index));
                return None;
            }
            if let Err(bound) = self.begin.bounds.take(entry.time, length) {
                return Some(bound.into());
            }
            self.put(&bytes, &entry);
            if let Some(bound) = self.begin.bounds.spent() {
                return Some(bound.into());
            }
            self.run = Some((bytes, index + 1));
        }
        None
    }

    fn put(&mut self, run: &[u8], entry: &Listed) {
        let cursor = Cursor {
            stream: self.begin.attached.window().id(),
            seq: entry.seq,
            epoch: entry.epoch,
        };
        let left = self.begin.bounds.left;
        self.begin.encoder.entry(run, entry, cursor, left);
        self.begin.place = Some(cursor);
        self.given.0 += 1;
        self.given.1 += entry.lines.len();
        self.replayed += u64::from(!self.is_live);
        self.idle = None;
    }

    /// Passes the end of history, if the next entry (`None`: one that is to come) lies behind it. Says whether that is
    /// how far it goes.
    fn reach(&mut self, next: Option<Seq>) -> Option<Reason> {
        // Where it goes on elsewhere, history may be there later than here.
        let behind = next.unwrap_or_else(|| self.begin.attached.reader().cursor().next());
        if self.is_live || behind <= self.begin.history {
            return None;
        }
        if self.begin.follow == Follow::History {
            return Some(Reason::CaughtUp);
        }
        self.is_live = true;
        if self.begin.is_told {
            let through = self.begin.history.get();
            self.tell(Told::Live, &Live { through });
        }
        None
    }

    /// Whether there is history left that was not to be replayed. The entry that shows it is not given.
    fn replay_limit(&mut self) -> Option<Reason> {
        let max_replay = self.begin.max_replay?;
        if self.is_live || self.replayed < max_replay {
            return None;
        }
        self.tell(Told::ReplayLimit, &ReplayLimit { max_replay });
        Some(Reason::MaxReplay)
    }

    /// Whether one answer has no room for an entry of this length.
    fn is_full(&self, length: usize) -> bool {
        let (entries, bytes) = self.given;
        self.begin.form == Form::Json
            && entries > 0
            && (entries >= MAX_ENTRIES || bytes + length > MAX_BATCH)
    }

    /// The generation has ended.
    fn end(&mut self, terminal: &Arc<Terminal>) {
        if let Some(reason) = self.reach(Some(terminal.seq)) {
            return self.close(reason, None);
        }
        self.close(Reason::EndOfStream, Some(terminal));
    }

    /// Writes how it ends, and decides what follows that.
    fn close(&mut self, reason: Reason, terminal: Option<&Arc<Terminal>>) {
        let window = Arc::clone(self.begin.attached.window());
        let mut is_clean = match reason {
            Reason::Error(_) => false,
            reason => self.begin.is_told || !reason.is_cut(),
        };
        if let Some(terminal) = terminal {
            let cursor = Cursor {
                stream: window.id(),
                seq: terminal.seq,
                epoch: window.epoch(),
            };
            self.begin.place = Some(cursor);
            if self.begin.form == Form::Events {
                let id = format!("{cursor}{}", self.begin.bounds.left);
                let (blocks, ends) = shown_end(&self.begin.manner, terminal, Some(&id));
                self.begin.encoder.blocks(&blocks);
                is_clean = ends || self.begin.is_told;
            }
        }
        let nothing =
            (self.begin.place.filter(|_| reason.is_bound())).map(|it| (it, Left::NOTHING));
        // Behind the end there is nothing to come back for.
        let ended = self.begin.place.filter(|_| terminal.is_some());
        let id = ended.map(|it| (it, self.begin.bounds.left)).or(nothing);
        if self.begin.is_told {
            let standing = self.standing();
            let closing = Closing {
                reason,
                code: reason.code(),
                request_id: &self.begin.opening.request_id,
                next: self.begin.place.map(|place| place.to_string()),
                last: standing.last,
                last_time: standing.last_time,
                terminal: terminal.and_then(|_| TerminalState::of(&window)),
            };
            self.begin.encoder.tell(Told::Closing, &closing);
            let retry = reason.is_cut().then_some(RETRY);
            self.begin.encoder.end_event(retry, id);
        } else if nothing.is_some() {
            // No event, but what an `EventSource` comes back with.
            self.begin.encoder.end_event(None, nothing);
        } else if !is_clean && self.begin.encoder.is_empty() {
            // The head has to be seen leaving.
            self.begin.encoder.heartbeat();
        }
        self.phase = Phase::Last { is_clean };
    }

    fn beat_once(&mut self) {
        if self.begin.is_told {
            let standing = self.standing();
            self.tell(Told::Ping, &standing);
        } else {
            self.begin.encoder.heartbeat();
        }
    }

    fn tell(&mut self, what: Told, value: &impl serde::Serialize) {
        self.begin.encoder.tell(what, value);
        self.begin.encoder.end_event(None, None);
    }

    fn standing(&self) -> Standing {
        let window = self.begin.attached.window();
        Standing {
            last: window.committed().get(),
            last_time: window.last_time().map(timestamp),
        }
    }

    /// Whether its generation is looked for where it is now.
    fn reads_on(&mut self) -> bool {
        let reader = self.begin.attached.reader();
        let (Some(read_on), Some(place)) = (&self.begin.read_on, reader.place()) else {
            return false;
        };
        self.phase = Phase::Elsewhere(read_on(place, reader.view()));
        true
    }

    fn hand_over(&mut self, piece: Bytes) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        self.written = Instant::now();
        Poll::Ready(Some(Ok(Frame::data(self.outstanding.chunk(piece)))))
    }
}

/// What is read at once: what is handed over at once.
const MAX_RUN: usize = 256 << 10;
/// When to come back, in milliseconds, where the rest is elsewhere or has to be asked for anew.
const RETRY: u32 = 1000;
