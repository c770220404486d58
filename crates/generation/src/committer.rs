//! From staged to committed: the one place that talks to the journal for a running generation.
//!
//! One append is in flight at a time; while it is, the next batch gathers in the window. An outcome is *yes*, *no*
//! or *unknown*. Unknown is resolved by reading back what stands and comparing it with what was sent, never by
//! guessing. When the journal fails, readers are shown the suffix without ids until it is healed by appending it
//! from where the journal really stands; past the bounds it is given up, and the log is never presented as whole.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use streamweld_journal::rules::{ReadBack, read_back};
use streamweld_journal::{
    Call, Closed, Journal, Open, OpenRefusal, Outcome, Refusal, Seq, Tail, Unreachable, Window,
};
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::counters::{AppendLabels, Counters};
use crate::happening::Happening;
use crate::steady::steady_now;

/// How much of a suffix that the journal cannot take is kept for healing.
#[derive(Clone, Debug)]
pub struct HealBounds {
    /// How long a head waits for its log.
    pub open: Duration,
    /// How long appends may fail before readers are shown what is not committed.
    pub patience: Duration,
    /// Bytes of one generation's suffix.
    pub per_generation: usize,
    /// Bytes of all suffixes together.
    pub total: usize,
    /// How long a suffix may wait.
    pub longest: Duration,
    /// Bytes of all suffixes now.
    in_use: Arc<AtomicUsize>,
}

impl Default for HealBounds {
    fn default() -> Self {
        Self {
            open: Duration::from_millis(250),
            patience: Duration::from_secs(2),
            per_generation: 16 << 20,
            total: 256 << 20,
            longest: Duration::from_secs(600),
            in_use: Arc::default(),
        }
    }
}

/// How often a journal that says no, or nothing, is asked again.
const RETRY_EVERY: Duration = Duration::from_millis(250);

/// Whoever notices by so much too late that patience is over has not run meanwhile, and does not know what the journal did.
/// A busy machine is late by less.
const LATE: Duration = Duration::from_millis(250);

/// How much may wait for a journal that answers. A generation has one append under way, so this and its round trip are
/// what it can write: 5 MiB a second with a journal that is 50 ms away, where a model says some 10 KiB.
const AHEAD: usize = 256 << 10;

/// What [`Committer::poll`] has to tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The log is open.
    Opened,
    /// The log will not open: the generation is degraded.
    Refused,
    /// The terminal is committed.
    Finished,
    /// The log is somebody else's now, or was ended by somebody else.
    Lost,
    /// The suffix was given up: the log is incomplete for good.
    GivenUp,
}

/// Drives one generation's log.
pub(crate) struct Committer<'a> {
    journal: &'a dyn Journal,
    window: &'a Arc<Window>,
    bounds: &'a HealBounds,
    counters: &'a Counters,
    op: Op<'a>,
    /// The last sequence that is staged.
    received: Seq,
    /// The last sequence that the journal is known to hold.
    stands: Seq,
    /// Everything from the terminal on is staged.
    ending: bool,
    /// Since when something has waited for a yes.
    waiting: Option<Instant>,
    /// When the journal is to be asked again, and how.
    again: Option<(Instant, Again)>,
    /// Wakes the task when something is due although nobody answers.
    alarm: Option<Alarm>,
    exposed: bool,
    over: bool,
    /// An append came to nothing since the last one that stands.
    missed: bool,
    /// Bytes of this suffix that are counted in the total.
    counted: usize,
}

enum Op<'a> {
    Idle,
    Opening(Call<'a, Outcome<OpenRefusal>>),
    Appending {
        through: Seq,
        outcome: Call<'a, Outcome<Refusal>>,
    },
    ReadingBack {
        sent: Seq,
        tail: Call<'a, Result<Tail, Unreachable>>,
    },
}

#[derive(Clone, Copy)]
enum Again {
    Append,
    ReadBack { sent: Seq },
}

impl<'a> Committer<'a> {
    pub(crate) fn new(
        journal: &'a dyn Journal,
        window: &'a Arc<Window>,
        bounds: &'a HealBounds,
        counters: &'a Counters,
    ) -> Self {
        Self {
            journal,
            window,
            bounds,
            counters,
            op: Op::Idle,
            received: Seq::ZERO,
            stands: Seq::ZERO,
            ending: false,
            waiting: None,
            again: None,
            alarm: None,
            exposed: false,
            over: false,
            missed: false,
            counted: 0,
        }
    }

    /// Creates the log. Its entry `open` is staged.
    pub(crate) fn open(&mut self, owner: &'a Open) {
        self.received = Seq::FIRST;
        self.op = Op::Opening(self.journal.open(self.window, owner, SystemTime::now()));
    }

    /// The log stands already: everything before the window was written by others.
    pub(crate) fn inherit(&mut self) {
        self.stands = self.window.committed();
        self.received = self.stands;
    }

    /// Everything through `received` is staged.
    pub(crate) fn staged(&mut self, received: Seq) {
        self.received = received;
    }

    /// The terminal is staged; nothing comes after it.
    pub(crate) fn ending(&mut self) {
        self.ending = true;
    }

    /// The log is another replica's: whatever is in flight will be refused.
    pub(crate) fn taken_over(&mut self) {
        self.op = Op::Idle;
        if !self.over {
            self.count("fenced");
            self.lost();
        }
    }

    /// Nothing is in flight and nothing waits: polling again is only worth it after more was staged.
    pub(crate) fn is_quiet(&self) -> bool {
        self.over
            || (matches!(self.op, Op::Idle) && self.again.is_none() && self.received == self.stands)
    }

    /// More waits for an answer than it is worth to read on for. It ends with that answer, or when readers are shown
    /// the suffix; either wakes the task that polls.
    pub(crate) fn is_behind(&self) -> bool {
        !self.is_quiet() && !self.exposed && self.window.uncommitted() > AHEAD
    }

    /// When there is something to do even if nobody answers.
    fn deadline(&self) -> Option<Instant> {
        let again = self.again.map(|(at, _)| at);
        let patience = self.waiting.map(|since| {
            since
                + if self.exposed {
                    self.bounds.longest
                } else {
                    self.bounds.patience
                }
        });
        [again, patience].into_iter().flatten().min()
    }

    /// Moves the log forward as far as it goes without waiting. When pending, the task is woken for whatever is next,
    /// be it an answer or a time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Progress> {
        if self.over {
            return Poll::Pending;
        }
        loop {
            loop {
                if let Some(progress) = self.poll_op(cx) {
                    return Poll::Ready(progress);
                }
                if !matches!(self.op, Op::Idle) || !self.start() {
                    break;
                }
            }
            // Only now, so that a journal that answers at once costs no look at the clock.
            if self.waiting.is_none() && self.stands != Seq::ZERO && self.received != self.stands {
                self.waiting = Some(Instant::now());
            }
            if self.mind_bounds() {
                return Poll::Ready(Progress::GivenUp);
            }
            let Some(deadline) = self.deadline() else {
                return Poll::Pending;
            };
            let alarm = self.alarm.get_or_insert_with(|| Alarm::new(deadline));
            // Put off only when it rings: nearly every append is answered long before.
            if alarm.deadline() > deadline || alarm.is_elapsed() {
                alarm.reset(deadline);
            }
            ready!(alarm.poll(cx));
        }
    }

    /// Polls what is in flight. `None` when it is pending or was handled; the caller then looks for more to do.
    fn poll_op(&mut self, cx: &mut Context<'_>) -> Option<Progress> {
        match &mut self.op {
            Op::Idle => None,
            Op::Opening(outcome) => {
                let Poll::Ready(outcome) = Pin::new(outcome).poll(cx) else {
                    return None;
                };
                self.op = Op::Idle;
                Some(match outcome {
                    Outcome::Yes => {
                        self.stands = Seq::FIRST;
                        self.window.commit(Seq::FIRST);
                        Progress::Opened
                    }
                    // An open whose outcome is unknown is not worth waiting for: nothing has been shown yet.
                    Outcome::No(_) | Outcome::Unknown => {
                        self.over = true;
                        Progress::Refused
                    }
                })
            }
            Op::Appending { through, outcome } => {
                let through = *through;
                let Poll::Ready(outcome) = Pin::new(outcome).poll(cx) else {
                    return None;
                };
                self.op = Op::Idle;
                match outcome {
                    Outcome::Yes => self.stands_at(through),
                    Outcome::No(refusal) => self.refused(refusal, through),
                    Outcome::Unknown => {
                        self.count("unknown");
                        self.again = Some((Instant::now(), Again::ReadBack { sent: through }));
                        None
                    }
                }
            }
            Op::ReadingBack { sent, tail } => {
                let sent = *sent;
                let Poll::Ready(tail) = Pin::new(tail).poll(cx) else {
                    return None;
                };
                self.op = Op::Idle;
                match tail {
                    Ok(tail) => self.read_back(&tail, sent),
                    Err(Unreachable) => {
                        self.again = Some((Instant::now() + RETRY_EVERY, Again::ReadBack { sent }));
                        None
                    }
                }
            }
        }
    }

    /// Starts the next operation if there is something to do and it is time for it.
    fn start(&mut self) -> bool {
        if self.over || self.stands == Seq::ZERO {
            return false;
        }
        match self.again {
            Some((at, _)) if at > Instant::now() => return false,
            Some((_, Again::ReadBack { sent })) => {
                self.again = None;
                self.op = Op::ReadingBack {
                    sent,
                    tail: self.journal.tail(self.window.id()),
                };
                return true;
            }
            Some((_, Again::Append)) => self.again = None,
            None => {}
        }
        let through = self.received;
        if through == self.stands {
            return false;
        }
        let outcome = if self.ending {
            self.journal.finish(self.window, self.stands, steady_now())
        } else {
            self.journal.append(self.window, self.stands, through)
        };
        self.op = Op::Appending { through, outcome };
        true
    }

    /// The journal holds everything through `through`.
    fn stands_at(&mut self, through: Seq) -> Option<Progress> {
        // A read-back that finds nothing new is no success: patience runs on.
        let progress = through > self.stands;
        self.stands = through;
        self.window.commit(through);
        if progress {
            self.missed = false;
        }
        if through == self.received {
            self.waiting = None;
            self.uncount();
            if self.exposed {
                self.exposed = false;
                self.window.expose(false);
                self.counters.healed.inc();
                self.tell(&Happening::Healed);
                tracing::info!(stream_id = %self.window.id(), "the journal has caught up");
            }
            if self.ending {
                self.over = true;
                return Some(Progress::Finished);
            }
        } else if progress {
            self.waiting = None;
        } else if self.missed {
            // It reads but does not write: asked again at once, it would be asked without end.
            self.again = Some((Instant::now() + RETRY_EVERY, Again::Append));
        } else {
            self.missed = true;
        }
        None
    }

    fn refused(&mut self, refusal: Refusal, sent: Seq) -> Option<Progress> {
        match refusal {
            Refusal::Full => {
                self.count("full");
                // Nothing can be let go: whoever is attached need not wait to find out. Whether it is a cap of this
                // process or of the journal's server, the journal says.
                self.expose("the journal is full");
                self.again = Some((Instant::now() + RETRY_EVERY, Again::Append));
                None
            }
            Refusal::Unready => {
                self.count("unready");
                self.again = Some((Instant::now() + RETRY_EVERY, Again::Append));
                None
            }
            Refusal::Unexpected { .. } => {
                self.count("unexpected");
                self.again = Some((Instant::now(), Again::ReadBack { sent }));
                None
            }
            Refusal::Vanished => {
                self.count("vanished");
                Some(self.give_up("the log has vanished"))
            }
            Refusal::Fenced { .. } => {
                self.count("fenced");
                Some(self.lost())
            }
            Refusal::Ended => {
                self.count("ended");
                Some(self.lost())
            }
        }
    }

    /// Compares what stands with what was sent.
    fn read_back(&mut self, tail: &Tail, sent: Seq) -> Option<Progress> {
        let window = self.window;
        let back = read_back(tail, window.epoch(), sent, window.earliest(), |seq| {
            window.digest(seq)
        });
        let last = match back {
            ReadBack::Stands(last) => last,
            ReadBack::Vanished => {
                self.count("vanished");
                return Some(self.give_up("the log has vanished"));
            }
            ReadBack::Fenced => {
                self.count("fenced");
                return Some(self.lost());
            }
            ReadBack::Changed => return Some(self.lost()),
            ReadBack::TooShort => {
                return Some(self.give_up("the journal has lost more than is still held"));
            }
        };
        if last < self.stands {
            tracing::warn!(stream_id = %self.window.id(), "the journal has lost a suffix; appending it again");
        }
        self.stands_at(last)
    }

    /// Shows the suffix when patience is over. True when the bounds of healing are passed.
    fn mind_bounds(&mut self) -> bool {
        let Some(since) = self.waiting else {
            return false;
        };
        let waited = Instant::now().duration_since(since);
        if !self.exposed && waited >= self.bounds.patience + LATE {
            // The alarm rings when patience is over: that it was not heard then was not the journal's fault. The process
            // may have stood still for so long that another replica has the log, which the next answer says.
            self.waiting = Some(Instant::now());
        } else if !self.exposed && waited >= self.bounds.patience {
            self.expose("the journal does not answer");
        }
        if !self.exposed {
            return false;
        }
        let pending = self.window.uncommitted();
        self.bounds.in_use.fetch_add(pending, Ordering::Relaxed);
        let total = self
            .bounds
            .in_use
            .fetch_sub(self.counted, Ordering::Relaxed)
            - self.counted;
        self.counted = pending;
        if waited >= self.bounds.longest
            || pending > self.bounds.per_generation
            || total > self.bounds.total
        {
            self.give_up("the journal was away for longer than its suffix can be kept");
            return true;
        }
        false
    }

    fn tell(&self, what: &Happening<'_>) {
        self.counters.onlookers.tell(self.window.id(), what);
    }

    fn expose(&mut self, why: &'static str) {
        if !self.exposed {
            self.exposed = true;
            self.window.expose(true);
            self.counters.unsequenced.inc();
            self.tell(&Happening::Degraded);
            tracing::warn!(stream_id = %self.window.id(), why, "readers are shown events without ids");
        }
    }

    fn give_up(&mut self, why: &'static str) -> Progress {
        self.expose(why);
        self.over = true;
        self.uncount();
        self.op = Op::Idle;
        self.window.give_up();
        tracing::error!(stream_id = %self.window.id(), why, "the log is incomplete");
        Progress::GivenUp
    }

    fn lost(&mut self) -> Progress {
        self.over = true;
        self.uncount();
        self.window.close(Closed::Fenced);
        tracing::warn!(stream_id = %self.window.id(), "the log has another writer");
        Progress::Lost
    }

    fn uncount(&mut self) {
        self.bounds
            .in_use
            .fetch_sub(self.counted, Ordering::Relaxed);
        self.counted = 0;
    }

    fn count(&self, reason: &'static str) {
        self.counters
            .append_failures
            .get_or_create(&AppendLabels { reason })
            .inc();
    }
}

impl Drop for Committer<'_> {
    fn drop(&mut self) {
        self.uncount();
    }
}
