//! The rules of a generation's life, without tasks, sockets or clocks.
//!
//! The producer tells what happened and when; the machine says what is to be done. It alone decides which
//! of the possible ends a generation gets, and it decides once: whatever comes later is ignored. That is
//! what makes a stop that races with the end of an answer harmless.

use std::time::{Duration, Instant};

use streamweld_dialect::{
    BodyEnd, Dialect, Done, Failure, FailureClass, Judge, Mark, Verdict, is_beginning,
};
use streamweld_sse::Event;

use crate::migration::gates::Gate;
use crate::orphan::OrphanPolicy;

/// How a generation ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The dialect's own success.
    Done(Done),
    /// The attempt failed, and no other may take over.
    Failed(Failure),
    /// The attempt failed, and gates refuse another.
    Refused(Refused),
    /// Somebody called stop.
    Stopped(By),
    /// No reader was left, and the orphan policy says that this ends it.
    OrphanCancelled,
    /// It ran for as long as a generation may.
    TooLong,
    /// The process ends before it did.
    Shutdown,
    /// The journal lost a part that could not be healed.
    Incomplete,
    /// The replica that wrote it is gone; another one has ended it.
    OwnerLost,
    /// A fault of our own.
    Internal,
}

/// Why an answer that was cut could not go on elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Why it could not go on where it was.
    pub loss: Loss,
    /// The gates that refuse, each with what it saw.
    pub gates: Vec<(Gate, String)>,
}

/// Why an answer cannot go on where it was.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Its attempt has failed.
    Attempt(Failure),
    /// The replica that ran it is gone, and its attempt with it.
    Owner,
}

impl From<Loss> for End {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Attempt(failure) => Self::Failed(failure),
            Loss::Owner => Self::OwnerLost,
        }
    }
}

/// Who called stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A caller with the credential of the generation.
    Client,
    /// An operator.
    Admin,
}

impl By {
    /// The word in the terminal's payload.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Admin => "admin",
        }
    }
}

/// Something that happened outside the backend's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// This many readers are attached now.
    Readers(usize),
    /// The whole request has been seen, and it goes on when its client is lost.
    OutlivesClient,
    /// The whole request has been seen, and it asks for this many choices.
    Choices(usize),
    /// The backend's head is here and begins an event stream. A generation that is not durable has no id,
    /// so nobody can come back to it.
    Head {
        /// The journal has opened.
        durable: bool,
    },
    /// Somebody called stop.
    Stop(By),
    /// The grace time of a shutdown is over.
    Shutdown,
    /// Time went by: a deadline may have passed.
    Tick,
}

/// What to do with one event of the backend.
#[derive(Clone, Debug, PartialEq)]
pub enum OnEvent {
    /// Stage it as it came.
    Stage,
    /// Stage it ahead of the next one that is staged, or of the end if that is `done`.
    Hold,
    /// It is none of the journal's business.
    Skip,
    /// Stage it, then end.
    StageAndEnd(End),
    /// Do not stage it; stage `salvage` (lines of an event) if there is any, then end. A failed attempt is the end unless
    /// another goes on ([`Lifecycle::resume`]).
    End {
        /// What the frame of failure still carried for the reader.
        salvage: Option<Vec<u8>>,
        /// The end.
        end: End,
    },
}

/// The times that bound a generation.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Longest life, from dispatch. Raising it lets a backend that never ends hold its memory longer.
    pub max_duration: Duration,
    /// How long a settled answer waits for its sentinel before it counts as whole. Five seconds is far
    /// beyond any gap seen between a finish reason and the sentinel, and short for a client that hangs.
    pub settle_grace: Duration,
    /// After how long without an event that says something an attempt has stalled, from its head on. `None`: never.
    pub first_token: Option<Duration>,
    /// The same behind the first of them, from one event to the next.
    pub between_tokens: Option<Duration>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            max_duration: Duration::from_secs(3600),
            settle_grace: Duration::from_secs(5),
            first_token: None,
            between_tokens: None,
        }
    }
}

/// The life of one generation.
#[derive(Debug)]
pub struct Lifecycle {
    state: State,
    judge: Judge,
    policy: OrphanPolicy,
    times: Times,
    begun: Instant,
    readers: usize,
    /// Since when there has been no reader.
    orphaned: Option<Instant>,
    dialect: Dialect,
    /// An event has said something.
    said: bool,
}

/// ```text
///   Dispatching ──Head──> Streaming ──event, body end, tick──> Ended
///        │                  │    ▲                               ▲
///        │        it failed │    │ another attempt               │
///        │                  ▼    │                               │
///        │                  Failed ────────── no other ──────────┤
///        └────────────────────┴── stop, orphan, age, shutdown ───┘
/// ```
#[derive(Debug)]
enum State {
    /// A request is under way; there is no head yet.
    Dispatching {
        /// Its client's leaving makes an orphan of it.
        outlives: bool,
    },
    /// The backend's event stream runs.
    Streaming {
        durable: bool,
        /// When the last event came, while the judge calls the answer settled.
        settled: Option<Instant>,
        /// When the last event came, or the head.
        heard: Instant,
    },
    /// The attempt has failed, and nobody has said whether that is the end.
    Failed {
        durable: bool,
    },
    Ended,
}

impl Lifecycle {
    /// A candidate that has just been dispatched, with its first reader waiting.
    #[must_use]
    pub fn new(dialect: Dialect, policy: OrphanPolicy, times: Times, now: Instant) -> Self {
        Self {
            state: State::Dispatching { outlives: false },
            judge: Judge::new(dialect),
            policy,
            times,
            begun: now,
            readers: 1,
            orphaned: None,
            dialect,
            said: false,
        }
    }

    /// Something happened. An end is given once, by the first call that finds one.
    pub fn on(&mut self, signal: Signal, now: Instant) -> Option<End> {
        if self.is_ended() {
            return None;
        }
        match (signal, &mut self.state) {
            (Signal::Readers(count), _) => {
                self.readers = count;
                self.orphaned = if count > 0 {
                    None
                } else {
                    self.orphaned.or(Some(now))
                };
            }
            (Signal::OutlivesClient, State::Dispatching { outlives }) => *outlives = true,
            (Signal::Choices(choices), state) => {
                self.judge.expect(choices);
                // A backend may answer before it has the whole request.
                if let State::Streaming { settled, .. } = state {
                    *settled = settled.filter(|_| self.judge.is_settled());
                }
            }
            (Signal::Head { durable }, State::Dispatching { .. }) => {
                self.state = State::Streaming {
                    durable,
                    settled: None,
                    heard: now,
                };
            }
            (Signal::Stop(by), _) => return self.end(End::Stopped(by)),
            (Signal::Shutdown, _) => return self.end(End::Shutdown),
            // A head comes once, and what is known of the request matters only before it.
            (
                Signal::OutlivesClient | Signal::Head { .. },
                State::Streaming { .. } | State::Failed { .. } | State::Ended,
            )
            | (Signal::Tick, _) => {}
        }
        let due = self.due(now)?;
        Some(self.ends(due))
    }

    /// The whole request has been seen, and this is the id of its call, as JSON.
    pub fn answers(&mut self, call: &str) {
        self.judge.answers(call);
    }

    /// Judges one event of the backend.
    pub fn event(&mut self, event: &Event<'_>, now: Instant) -> OnEvent {
        let State::Streaming {
            durable,
            settled,
            heard,
        } = &mut self.state
        else {
            return OnEvent::Skip;
        };
        *heard = now;
        let mark = self.judge.event(event);
        // What tells a failure says nothing but what is salvaged of it.
        self.said |= match &mark {
            Mark::Event | Mark::Hold | Mark::End(_) => !is_beginning(self.dialect, event),
            Mark::Failed { salvage, .. } => salvage.is_some(),
            Mark::Skip => false,
        };
        match mark {
            Mark::Event => {
                // Unsettled again where another choice or block begins: that one may take its time.
                *settled = self.judge.is_settled().then_some(now);
                OnEvent::Stage
            }
            Mark::Hold => {
                *settled = self.judge.is_settled().then_some(now);
                OnEvent::Hold
            }
            Mark::Skip => OnEvent::Skip,
            Mark::End(done) => {
                self.state = State::Ended;
                OnEvent::StageAndEnd(End::Done(done))
            }
            Mark::Failed { failure, salvage } => {
                self.state = State::Failed { durable: *durable };
                OnEvent::End {
                    salvage,
                    end: End::Failed(failure),
                }
            }
        }
    }

    /// The backend's body is over. `tail` is what was left of a block that never got its blank line.
    pub fn body_ended(&mut self, how: BodyEnd, tail: Option<&Event<'_>>) -> Option<End> {
        if self.is_ended() {
            return None;
        }
        if let State::Failed { .. } = self.state {
            return None;
        }
        let end = match self.judge.end(how, tail) {
            Verdict::Done(done) => End::Done(done),
            Verdict::Failed(failure) => End::Failed(failure),
        };
        Some(self.ends(end))
    }

    /// Another attempt goes on with what has failed, or takes the place of one that has not.
    pub fn resume(&mut self, now: Instant) {
        let (State::Failed { durable } | State::Streaming { durable, .. }) = self.state else {
            return;
        };
        self.judge.resume();
        self.state = State::Streaming {
            durable,
            settled: None,
            heard: now,
        };
    }

    /// Nobody goes on with what has failed.
    pub fn give_up(&mut self, end: End) -> Option<End> {
        if self.is_ended() {
            return None;
        }
        self.end(end)
    }

    /// Whether an attempt that has not come to its end has sent nothing for so long.
    #[must_use]
    pub fn is_silent(&self, silent: Duration, now: Instant) -> bool {
        match &self.state {
            State::Streaming {
                settled: None,
                heard,
                ..
            } => now.saturating_duration_since(*heard) >= silent,
            _ => false,
        }
    }

    /// Whether an event has said something, rather than only begun an answer.
    #[must_use]
    pub fn has_said(&self) -> bool {
        self.said
    }

    /// Whether a body that is over now would leave the answer cut short, with nothing that says why.
    #[must_use]
    pub fn is_cut_short(&self, how: BodyEnd, tail: Option<&Event<'_>>) -> bool {
        let cut_short = |failure: &Failure| failure.class == FailureClass::Truncated;
        !self.is_ended()
            && matches!(&self.judge.end(how, tail), Verdict::Failed(failure) if cut_short(failure))
    }

    /// The body cannot be read on: an event is too large, is not UTF-8, or does not decode.
    pub fn unusable(&mut self, class: FailureClass, message: String) -> Option<End> {
        if self.is_ended() {
            return None;
        }
        Some(self.ends(End::Failed(Failure {
            class,
            frame: None,
            message: Some(message),
            code: None,
        })))
    }

    /// A fault of our own ends it.
    pub fn internal(&mut self) -> Option<End> {
        if self.is_ended() {
            None
        } else {
            self.end(End::Internal)
        }
    }

    /// When [`Signal::Tick`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let age = self.begun + self.times.max_duration;
        match &self.state {
            State::Ended => None,
            State::Dispatching { .. } | State::Failed { .. } => {
                Some(self.orphan_deadline().map_or(age, |at| at.min(age)))
            }
            State::Streaming { settled, heard, .. } => {
                let silence = settled.map(|last| last + self.times.settle_grace);
                let stall = self.stall(*heard).filter(|_| settled.is_none());
                [Some(age), self.orphan_deadline(), silence, stall]
                    .into_iter()
                    .flatten()
                    .min()
            }
        }
    }

    /// The end has been decided.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// A failed attempt may yet be followed by another; everything else is an end.
    fn ends(&mut self, end: End) -> End {
        self.state = match (&end, &self.state) {
            (End::Failed(_), State::Streaming { durable, .. }) => {
                State::Failed { durable: *durable }
            }
            _ => State::Ended,
        };
        end
    }

    /// When an attempt that was last heard at `heard` has stalled.
    fn stall(&self, heard: Instant) -> Option<Instant> {
        let limit = if self.said {
            self.times.between_tokens
        } else {
            self.times.first_token
        };
        limit.and_then(|limit| heard.checked_add(limit))
    }

    fn end(&mut self, end: End) -> Option<End> {
        self.state = State::Ended;
        Some(end)
    }

    fn due(&mut self, now: Instant) -> Option<End> {
        // A settled answer is whole: its end is success even where another deadline passed meanwhile.
        if let State::Streaming {
            settled: Some(last),
            ..
        } = &self.state
        {
            if now >= *last + self.times.settle_grace {
                return match self.judge.end(BodyEnd::Silence, None) {
                    Verdict::Done(done) => Some(End::Done(done)),
                    Verdict::Failed(failure) => Some(End::Failed(failure)),
                };
            }
        }
        if self.orphan_deadline().is_some_and(|at| now >= at) {
            return Some(End::OrphanCancelled);
        }
        if now >= self.begun + self.times.max_duration {
            return Some(End::TooLong);
        }
        let State::Streaming {
            settled: None,
            heard,
            ..
        } = &self.state
        else {
            return None;
        };
        let stalled = self.stall(*heard).is_some_and(|at| now >= at);
        stalled.then(|| {
            End::Failed(Failure {
                class: FailureClass::Stalled,
                frame: None,
                message: Some("it sent nothing for as long as is allowed".to_owned()),
                code: None,
            })
        })
    }

    fn orphan_deadline(&self) -> Option<Instant> {
        let since = self.orphaned?;
        match (&self.state, self.policy) {
            (State::Ended, _) => None,
            // Nobody knows yet that this would stream: it belongs to its client.
            (State::Dispatching { outlives: false }, _) => Some(since),
            // It has no id, so nobody could ever come back.
            (State::Streaming { durable: false, .. } | State::Failed { durable: false }, _) => {
                Some(since)
            }
            (_, OrphanPolicy::Continue) => None,
            (_, OrphanPolicy::Cancel) => Some(since),
            // A client chooses it, and may choose a time that no clock reaches.
            (_, OrphanPolicy::CancelAfter(after)) => since.checked_add(after),
        }
    }
}

#[cfg(test)]
mod tests;
