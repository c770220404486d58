//! The one task that owns a generation: it asks the backend, stages what comes, has it committed, and ends it.
//!
//! ```text
//! dispatch ──head──> open the log (at most 250 ms) ──> pump ──> terminal ──> drain
//!    │ other answer, cancel                               │
//!    └──> dropped without a trace                         └── stop, orphan policy, age, shutdown
//! ```
//!
//! It reads its backend as fast as it can, whoever reads. Everything that is ready in one go becomes one append. It holds no rule of its own: what an event means and which end comes first is the
//! lifecycle's business, what the journal holds the committer's.
//!
//! The server spawns it on a tracker that shutdown waits for. It ends by itself, within the grace time once
//! [`Handle::shut_down`] was called; if it panics, its window is closed so that readers are told.

pub(crate) mod finish;
mod heir;
mod moving;
mod offer;
mod pump;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_dialect::{Dialect, End as DoneBy};
use streamweld_journal::{Closed, Journal, Kind, Open, Seq};
use tokio::time::{Instant, sleep_until, timeout};

use crate::committer::{Committer, HealBounds, Progress};
use crate::counters::{Counters, StartLabels};
use crate::handle::{Durability, Handle, Head};
use crate::happening::Happening;
use crate::intake::Intake;
use crate::leg::{Leg, Reading};
use crate::lifecycle::{End, Lifecycle, Signal, Times};
use crate::log::Log;
use crate::payload::{HeadFields, Label, OpenPayload, control_lines, timestamp};
use crate::registry::Registry;
use crate::retry::RetryWindow;
use crate::source::{ByteSource, Keep, Onward, Read};

pub use self::heir::{Estate, Taken};

/// What bounds a producer.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The largest event.
    pub event: streamweld_sse::Limits,
    /// The times of a life.
    pub times: Times,
    /// How a journal that fails is healed.
    pub heal: HealBounds,
}

/// How long a body is read on after its answer was whole, so that its connection can be used again and the backend
/// does not count the answer as aborted.
const DRAIN: Duration = Duration::from_secs(2);
/// How long the removal of a log that came to nothing may take.
const CLEAN: Duration = Duration::from_secs(5);
/// What the backend answered.
#[derive(Debug)]
pub enum Answer<S, H, O> {
    /// An event stream: this becomes a generation.
    Stream {
        /// The attempt that it is of, where there could be others.
        leg: Option<Leg>,
        /// Its body.
        source: S,
        /// Whatever the server wants to know of its head.
        head: H,
        /// What of its head is kept with the generation. The caller bounds it.
        keep: HeadFields,
    },
    /// Anything else: the candidate is dropped.
    Other(O),
}

/// What the client's side is told, once.
#[derive(Debug)]
pub enum Told<H, O> {
    /// A generation has begun.
    Streaming(H, Durability),
    /// The backend's other answer, to be passed through.
    Other(O),
    /// There was no head before the candidate was ended.
    Cancelled(End),
}

/// Everything a producer shares with the rest of the process.
#[derive(Clone)]
pub struct Shared {
    /// Where entries are kept.
    pub journal: Arc<dyn Journal>,
    /// What runs now.
    pub registry: Arc<Registry>,
    /// What a repeat may join.
    pub retries: Arc<RetryWindow>,
    /// The bounds.
    pub limits: Arc<Limits>,
    /// The counters.
    pub counters: Counters,
}

/// The owner of one candidate, and of the generation that it may become.
pub struct Producer {
    shared: Shared,
    handle: Arc<Handle>,
    lifecycle: Lifecycle,
    intake: Intake,
    leg: Option<Leg>,
    /// Keeps what it takes to go on with an attempt in another process.
    keep: Option<Keep>,
    /// How often another backend has gone on.
    moves: u32,
    /// The journal has opened.
    durable: bool,
    over: bool,
}

impl Producer {
    /// Takes a candidate, which can be found from now on. Whoever waits for its head already counts as its reader.
    #[must_use]
    pub fn new(shared: Shared, handle: Arc<Handle>) -> Self {
        let spec = handle.spec();
        let lifecycle = Lifecycle::new(
            spec.dialect,
            spec.policy,
            shared.limits.times,
            Instant::now().into_std(),
        );
        shared.registry.insert(Arc::clone(&handle));
        shared.retries.note(&handle);
        let tells = shared.journal.replica().is_some();
        let intake = Intake::new(shared.limits.event, spec.dialect, tells);
        Self {
            shared,
            handle,
            lifecycle,
            intake,
            leg: None,
            keep: None,
            moves: 0,
            durable: false,
            over: false,
        }
    }

    /// Gives the candidate up before anything was sent.
    pub fn dismiss(mut self) {
        self.leave(Head::Dropped);
    }

    /// Runs to the end. `call` sends the request and gives the backend's answer; dropping it closes the connection. An
    /// answer that is cut short goes on with what `onward` gives.
    pub async fn run<S, H, O>(
        mut self,
        call: impl Future<Output = Answer<S, H, O>>,
        onward: Onward<S>,
        tell: impl FnOnce(Told<H, O>),
    ) where
        S: ByteSource + 'static,
    {
        let shared = self.shared.clone();
        let window = Arc::clone(self.handle.window());
        let owner = Open {
            access: self.handle.spec().access.digest(),
        };
        let mut committer = Committer::new(
            &*shared.journal,
            &window,
            &shared.limits.heal,
            &shared.counters,
        );
        let mut opened = None;
        let mut opening = false;

        let answer = {
            let mut call = Box::pin(call);
            loop {
                // Opening overlaps with the wait for the head, as soon as it is known that there will be one to open for.
                if !opening && self.handle.is_known_to_stream() {
                    opening = true;
                    self.stage_open();
                    committer.open(&owner);
                }
                if let Some(end) = self.signals() {
                    break Err(end);
                }
                let deadline = self.lifecycle.deadline().map(Instant::from_std);
                tokio::select! {
                    biased;
                    answer = &mut call => break Ok(answer),
                    progress = poll_fn(|cx| committer.poll(cx)), if opening && opened.is_none() => opened = Some(progress),
                    () = self.handle.changed().heard() => {}
                    () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {}
                }
            }
        };
        let (source, head, keep) = match answer {
            Ok(Answer::Stream {
                leg,
                source,
                head,
                keep,
            }) => {
                let added = leg.as_ref().and_then(|leg| leg.added);
                self.intake.read_by(Reading::first(added));
                self.leg = leg;
                (source, head, keep)
            }
            Ok(Answer::Other(other)) => {
                self.leave(Head::Dropped);
                tell(Told::Other(other));
                return self.clean(opening).await;
            }
            Err(end) => {
                self.leave(Head::Dropped);
                tell(Told::Cancelled(end));
                return self.clean(opening).await;
            }
        };

        if !opening {
            self.stage_open();
            committer.open(&owner);
        }
        if opened.is_none() {
            let progress = timeout(shared.limits.heal.open, poll_fn(|cx| committer.poll(cx)));
            opened = Box::pin(progress).await.ok();
        }
        let durability = if opened == Some(Progress::Opened) {
            Durability::Durable
        } else {
            Durability::Degraded
        };
        let mut log = match durability {
            Durability::Durable => Log::Journal(committer),
            Durability::Degraded => {
                drop(committer);
                window.commit(window.received());
                Log::nowhere(&window)
            }
        };
        self.keep(keep);
        self.begin(durability);
        tell(Told::Streaming(head, durability));

        self.durable = durability == Durability::Durable;
        let mut source = Some(source);
        self.keep = onward.keep.clone();
        if let (Some(keep), Some(leg)) = (self.keep.as_ref().filter(|_| self.durable), &self.leg) {
            keep(leg);
        }
        let end = self.pump(&mut source, onward, &mut log, None).await;
        let whole = matches!(&end, Some(End::Done(done)) if matches!(done.end, DoneBy::Sentinel));
        let source = source.filter(|_| whole);
        match end {
            // Boxed, like all that happens once: what a generation holds while it idles is its pump.
            Some(end) => Box::pin(self.finish(end, &mut log)).await,
            None => self.lost(),
        }
        drop(log);
        self.leave(Head::Ended);
        if let Some(source) = source {
            Box::pin(drain(source)).await;
        }
        // A log that opened late after all must not stay without an owner.
        Box::pin(self.clean(durability == Durability::Degraded)).await;
    }

    fn stage_open(&self) {
        let (spec, window) = (self.handle.spec(), self.handle.window());
        let now = SystemTime::now();
        let payload = OpenPayload {
            stream_id: spec.id.to_string(),
            seq: Seq::FIRST.get(),
            time: timestamp(now),
            dialect: spec.dialect.as_str().to_owned(),
            model: self.handle.model().map(str::to_owned),
            backend: self.handle.backend().to_string(),
            request_id: spec.request_id.clone(),
            orphan_policy: spec.policy.to_string(),
        };
        let lines = control_lines(Kind::Open, &payload);
        // A generic stream may turn out to answer a call.
        let may_answer = matches!(spec.dialect, Dialect::Mcp | Dialect::Generic);
        self.set_label(&Label {
            open: payload,
            head: HeadFields::new(),
            call: self.handle.call().filter(|_| may_answer).map(str::to_owned),
            trace: self.handle.trace().map(str::to_owned),
        });
        window
            .stage(now)
            .push(Kind::Open, |out| out.extend_from_slice(&lines));
    }

    /// Keeps what the head said. The log was opened before there was one, and nobody looks before it has begun.
    fn keep(&self, head: HeadFields) {
        if head.is_empty() {
            return;
        }
        let label = serde_json::from_slice(&self.handle.window().label());
        let label: Label = label.expect("`stage_open` has written it");
        self.set_label(&Label { head, ..label });
    }

    fn set_label(&self, label: &Label) {
        let json =
            serde_json::to_vec(label).expect("plain structs of strings and numbers serialise");
        self.handle.window().set_label(Bytes::from(json));
    }

    fn begin(&self, durability: Durability) {
        let labels = StartLabels {
            dialect: self.handle.spec().dialect.as_str(),
            durability: durability.as_str(),
        };
        self.shared.counters.started.get_or_create(&labels).inc();
        self.tell(&Happening::Created {
            handle: &self.handle,
            durability,
            inherited: false,
        });
        self.handle.set_head(Head::Streaming(durability));
    }

    fn tell(&self, what: &Happening<'_>) {
        let onlookers = &self.shared.counters.onlookers;
        onlookers.tell(self.handle.spec().id, what);
    }

    /// Removes a log that nobody owns, if there may be one. A journal that does not answer keeps nobody.
    async fn clean(&self, may_be: bool) {
        if may_be {
            let _ = timeout(CLEAN, self.shared.journal.remove(self.handle.spec().id)).await;
        }
    }

    fn leave(&mut self, head: Head) {
        self.over = true;
        self.handle.set_head(head);
        self.shared.registry.remove(self.handle.spec().id);
        if head == Head::Dropped || self.handle.was_served() {
            self.shared.retries.forget(&self.handle);
        }
    }

    /// Everything that others have asked for since the last look, and the deadlines that have passed.
    fn signals(&mut self) -> Option<End> {
        let now = Instant::now().into_std();
        if let Some(call) = self.handle.call() {
            self.lifecycle.answers(call);
        }
        let asked = [
            self.handle.stop_asked().map(Signal::Stop),
            self.handle.shutdown_asked().then_some(Signal::Shutdown),
            self.handle
                .outlives_its_client()
                .then_some(Signal::OutlivesClient),
            self.handle.choices().map(Signal::Choices),
            Some(Signal::Readers(self.handle.readers())),
        ];
        asked
            .into_iter()
            .flatten()
            .find_map(|signal| self.lifecycle.on(signal, now))
    }

    fn deadline(&self) -> Instant {
        // A life without a deadline is over, and then nobody asks.
        self.lifecycle.deadline().map_or_else(
            || Instant::now() + Duration::from_secs(3600),
            Instant::from_std,
        )
    }
}

impl Drop for Producer {
    /// Only a panic gets here with the generation not over: readers are told, and nothing finds it any more.
    fn drop(&mut self) {
        if !self.over {
            self.handle.window().close(Closed::Failed);
            self.leave(Head::Ended);
            let (journal, id) = (Arc::clone(&self.shared.journal), self.handle.spec().id);
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                // Short, and bounded by the journal's own deadline; nobody is left to wait for it.
                runtime.spawn(async move { journal.remove(id).await });
            }
        }
    }
}

async fn drain<S: ByteSource>(mut source: S) {
    let rest =
        async { while let Read::Data = poll_fn(|cx| source.poll_read(cx, &mut |_| {})).await {} };
    // A backend that goes on for longer has its connection closed.
    let _ = timeout(DRAIN, rest).await;
}
