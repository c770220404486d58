//! From a reader to the body of a response: runs of blocks, heartbeats, and the end as its client has to see it.
//!
//! ```text
//! Live ──terminal──> Done              a clean end
//!   │ ▲──fenced──> Elsewhere            the same answer, from whoever writes it now; or Leaving
//!   └──error, overtaken, closed──> Leaving ──> Abort   everything has left, then the break
//!                                     └──form──> Heard ──┘   and was read, if there was something to say
//! ```
//!
//! There is no queue here: the connection asks for the next run when it has room, and gets everything that was
//! committed since, at most 256 KiB.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use streamweld_dialect::{Dialect, as_shown};
use streamweld_generation::{Alarm, Attached, error_form};
use streamweld_journal::{Closed, Cursor, Kind, Step, Terminal, View};
use streamweld_sse::HEARTBEAT;
use tokio::time::Instant;

use crate::body::{Abort, Chunk, Outstanding};
use crate::io::Breaker;
use crate::traced::Resume;

/// What takes the place of a heartbeat where a comment is no option.
const PLAIN_HEARTBEAT: &[u8] = b"\n";
/// The most that is handed over at once, so that a slow connection pins little.
const MAX_RUN: usize = 256 << 10;
/// How long the head gets to leave when the break is all that follows it. It cannot be seen leaving.
const HEAD_LEAVES: Duration = Duration::from_millis(20);

/// How long a client gets to read what it was sent, where nothing says that it did: why its answer breaks off, above all.
/// Several throw away what they have not read yet as soon as the connection is gone, and their applications would be
/// told of that alone.
pub(crate) const IS_READ: Duration = Duration::from_millis(100);

/// How a response shows its generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The client has shown that it resumes, so an error ends cleanly, with an id to come back with.
    pub(crate) resumes: bool,
    /// It sees control events.
    pub(crate) control: bool,
    /// Blocks carry ids.
    pub(crate) ids: bool,
    /// It is a client that reads neither ids nor comments.
    pub(crate) plain: bool,
    /// How its events are understood.
    pub(crate) dialect: Dialect,
    /// How long silence may last.
    pub(crate) heartbeat: Duration,
}

/// Where a reader reads on whose generation another replica has now, from its cursor on. `None`: nowhere.
pub(crate) type ReadOn = Box<dyn Fn(Cursor, View) -> Later + Send>;
pub(crate) type Later = Pin<Box<dyn Future<Output = Option<Attached>> + Send>>;

/// One response that reads a generation.
pub(crate) struct StreamBody {
    attached: Attached,
    read_on: Option<ReadOn>,
    manner: Manner,
    phase: Phase,
    /// When something was last written, as far as is known: what was handed over since counts from the next look.
    written: Instant,
    wrote: bool,
    beat: Alarm,
    outstanding: Outstanding,
    /// Something was handed over, or is about to be: when that has left, the head has.
    begun: bool,
    /// What was handed over is being read, ahead of a form that has to come alone.
    apart: bool,
    /// What was handed over ends with a form.
    told: bool,
    breaker: Breaker,
    /// Sees how it ends, where that is traced.
    traced: Option<Arc<Resume>>,
}

enum Phase {
    Live,
    /// Another replica has the generation, and it is looked for there.
    Elsewhere(Later),
    /// The head is all there is, and has to leave.
    Head(&'static str),
    Leaving(&'static str),
    /// The form has left, and is being read.
    Heard(&'static str),
    Abort(&'static str),
    Done,
}

impl StreamBody {
    pub(crate) fn new(
        attached: Attached,
        read_on: Option<ReadOn>,
        manner: Manner,
        breaker: Breaker,
        traced: Option<Arc<Resume>>,
    ) -> Self {
        let now = Instant::now();
        breaker.carries_a_reader();
        Self {
            attached,
            read_on,
            manner,
            phase: Phase::Live,
            written: now,
            wrote: false,
            beat: Alarm::new(now + manner.heartbeat),
            outstanding: Outstanding::default(),
            begun: false,
            apart: false,
            told: false,
            breaker,
            traced,
        }
    }

    /// Nothing more is taken from this, and its connection must not end as if it were whole.
    pub(crate) fn break_off(&self) {
        self.breaker.arm();
    }

    pub(crate) fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        // Nothing in here is address-sensitive: the timer has a box of its own.
        let this = self.get_mut();
        loop {
            match &mut this.phase {
                Phase::Live => {}
                Phase::Elsewhere(found) => match ready!(found.as_mut().poll(cx)) {
                    Some(attached) => {
                        this.attached = attached;
                        this.phase = Phase::Live;
                    }
                    None => {
                        this.closed(Closed::Fenced);
                        continue;
                    }
                },
                Phase::Head(why) => {
                    // HTTP/1 flushes when there is nothing more to write for now, so there has to be such a moment,
                    // however late this is polled. HTTP/2 has a task of its own for that.
                    this.phase = Phase::Leaving(why);
                    if this.beat.poll(cx).is_ready() {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
                Phase::Leaving(why) => {
                    let why = *why;
                    if this.begun {
                        ready!(this.outstanding.poll_none(cx));
                    } else {
                        ready!(this.beat.poll(cx));
                    }
                    this.phase = if this.told {
                        this.beat.reset(Instant::now() + IS_READ);
                        Phase::Heard(why)
                    } else {
                        Phase::Abort(why)
                    };
                    continue;
                }
                Phase::Heard(why) => {
                    let why = *why;
                    ready!(this.beat.poll(cx));
                    this.phase = Phase::Abort(why);
                    continue;
                }
                Phase::Abort(why) => {
                    let why = *why;
                    this.phase = Phase::Done;
                    if let Some(traced) = this.traced.take() {
                        traced.is_broken_off();
                    }
                    this.breaker.arm();
                    return Poll::Ready(Some(Err(Abort(why))));
                }
                Phase::Done => return Poll::Ready(None),
            }
            match this.attached.poll_next(cx, MAX_RUN) {
                Poll::Ready(Step::Run { bytes, .. }) => {
                    this.wrote = true;
                    return this.hand_over(bytes);
                }
                Poll::Ready(Step::End {
                    terminal,
                    sequenced,
                }) => {
                    if terminal.kind == Kind::Error {
                        ready!(this.poll_alone(cx));
                    }
                    if let Some(form) = this.end(&terminal, sequenced) {
                        return this.hand_over(form);
                    }
                }
                Poll::Ready(Step::Overtaken { .. }) => {
                    this.leave("retention has passed the reader by");
                }
                Poll::Ready(Step::Closed(Closed::Fenced)) if this.reads_on() => {}
                Poll::Ready(Step::Closed(why)) => {
                    ready!(this.poll_alone(cx));
                    if let Some(form) = this.closed(why) {
                        return this.hand_over(form);
                    }
                }
                Poll::Pending => {
                    let now = Instant::now();
                    if std::mem::take(&mut this.wrote) {
                        this.written = now;
                    }
                    ready!(this.beat.poll_at(cx, now));
                    let due = this.written + this.manner.heartbeat;
                    if now >= due {
                        this.written = now;
                        this.beat.reset(now + this.manner.heartbeat);
                        let beat = if this.manner.plain {
                            PLAIN_HEARTBEAT
                        } else {
                            HEARTBEAT
                        };
                        return this.hand_over(Bytes::from_static(beat));
                    }
                    this.beat.reset(due);
                }
            }
        }
    }

    /// Whether its generation is looked for where it is now.
    fn reads_on(&mut self) -> bool {
        let reader = self.attached.reader();
        let (Some(read_on), Some(place)) = (&self.read_on, reader.place()) else {
            return false;
        };
        self.phase = Phase::Elsewhere(read_on(place, reader.view()));
        true
    }

    /// A plain client sees an error only in a piece of its own: waits until what was handed over has left, and was read
    /// as well, or both would be read together.
    fn poll_alone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.manner.plain || !self.begun {
            return Poll::Ready(());
        }
        ready!(self.outstanding.poll_none(cx));
        if !std::mem::replace(&mut self.apart, true) {
            self.beat.reset(Instant::now() + IS_READ);
        }
        self.beat.poll(cx)
    }

    fn hand_over(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Chunk>, Abort>>> {
        self.begun = true;
        Poll::Ready(Some(Ok(Frame::data(self.outstanding.chunk(bytes)))))
    }

    /// Breaks off, once everything that was handed over has left.
    fn leave(&mut self, why: &'static str) {
        if self.begun {
            self.phase = Phase::Leaving(why);
        } else {
            self.phase = Phase::Head(why);
            self.beat.reset(Instant::now() + HEAD_LEAVES);
        }
    }

    /// Renders the terminal and decides what follows it.
    fn end(&mut self, terminal: &Arc<Terminal>, sequenced: bool) -> Option<Bytes> {
        let window = self.attached.window();
        let id = (sequenced && self.manner.ids).then(|| Cursor {
            stream: window.id(),
            seq: terminal.seq,
            epoch: window.epoch(),
        });
        let (shown, clean) = shown_end(&self.manner, terminal, id.as_ref());
        self.last(shown, clean, "the generation ended in error")
    }

    /// The window was closed without a terminal.
    fn closed(&mut self, why: Closed) -> Option<Bytes> {
        let shown = match why {
            // It goes on elsewhere, or will be ended there: the client comes back and sees.
            Closed::Shutdown | Closed::Fenced => None,
            Closed::Failed => Some(("internal_error", "ended by a fault of the proxy")),
            Closed::Incomplete => Some((
                "journal_incomplete",
                "the journal lost a part of this answer",
            )),
        };
        let (window, dialect) = (self.attached.window(), self.manner.dialect);
        let form = shown.map(|(code, message)| error_form(window, dialect, code, message).bytes);
        let mut form = Bytes::from(form.unwrap_or_default());
        if self.manner.plain {
            form = form.slice_ref(as_shown(dialect, &form));
        }
        self.last(form, false, "the generation was closed")
    }

    /// Decides what follows the form, and gives the form if there is one.
    fn last(&mut self, form: Bytes, clean: bool, why: &'static str) -> Option<Bytes> {
        self.told = !form.is_empty();
        self.begun |= self.told;
        if clean {
            if let Some(traced) = self.traced.take() {
                traced.is_whole();
            }
            self.phase = Phase::Done;
        } else {
            self.leave(why);
        }
        self.told.then_some(form)
    }
}

/// How a terminal looks to a reader, with its id where it has one, and whether the end behind it is a clean one.
pub(crate) fn shown_end(
    manner: &Manner,
    terminal: &Terminal,
    id: Option<&impl Display>,
) -> (Bytes, bool) {
    let failed = terminal.kind == Kind::Error;
    let mut out = BytesMut::new();
    if manner.control {
        out.extend_from_slice(&terminal.ending);
        out.extend_from_slice(&terminal.lines);
        if let Some(id) = id {
            out.extend_from_slice(format!("id: {id}\n").as_bytes());
        }
        out.extend_from_slice(b"\n");
    } else {
        // A client that cannot come back must not be led to believe it could: no id on an error then.
        let id = id.filter(|_| !failed || manner.resumes);
        match (id, terminal.id_at) {
            (Some(id), Some(at)) => {
                out.extend_from_slice(&terminal.ending[..at]);
                out.extend_from_slice(format!("id: {id}\n").as_bytes());
                out.extend_from_slice(&terminal.ending[at..]);
            }
            _ if failed && manner.plain => {
                out.extend_from_slice(as_shown(manner.dialect, &terminal.ending));
            }
            _ => out.extend_from_slice(&terminal.ending),
        }
    }
    // A dialect without a form for errors has only the break to show one with.
    let clean = !failed || manner.control || (manner.resumes && !terminal.ending.is_empty());
    (out.freeze(), clean)
}
