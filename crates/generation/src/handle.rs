//! What everybody else holds of a running generation.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use streamweld_dialect::{Dialect, RequestShape};
use streamweld_journal::{Closed, Replica, StreamId, Window, Word};
use tokio::sync::{Notify, SetOnce, watch};
use tokio::time::Instant;

use crate::access::Access;
use crate::bell::Bell;
use crate::lifecycle::By;
use crate::migration::{Asked, Order, Report};
use crate::orphan::OrphanPolicy;
use crate::retry::RetryKey;
use crate::whereabouts::{Leave, Whereabouts};

/// What is known of a candidate when it is dispatched. It does not change.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The id that its generation will have.
    pub id: StreamId,
    /// How its events are understood.
    pub dialect: Dialect,
    /// The model that its target names, where that is how one is named.
    pub model: Option<String>,
    /// Who made it.
    pub access: Access,
    /// What happens when nobody reads.
    pub policy: OrphanPolicy,
    /// The request that made it.
    pub request_id: String,
    /// When it was dispatched.
    pub created: SystemTime,
    /// Under which key a repeat of its request would be found, where repeats may join.
    pub retry: Option<RetryKey>,
}

/// How far a candidate has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// No head yet.
    Pending,
    /// It is a generation.
    Streaming(Durability),
    /// It never became one: another answer, an error, or a client that left.
    Dropped,
    /// It was a generation and is over.
    Ended,
}

/// Whether the journal holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every event is journaled before it is shown.
    Durable,
    /// The journal did not open: no stream id, no resume.
    Degraded,
}

impl Durability {
    /// The stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Degraded => "degraded",
        }
    }
}

/// A running generation, or a candidate: shared by its producer, its readers and the calls about it.
#[derive(Debug)]
pub struct Handle {
    spec: Spec,
    window: Arc<Window>,
    begun: Instant,
    readers: AtomicUsize,
    /// Other replicas that have readers. Each counts as one.
    elsewhere: Mutex<BTreeSet<Replica>>,
    lost: Mutex<Option<Instant>>,
    served: AtomicBool,
    failed: AtomicBool,
    stop: AtomicU8,
    shutdown: AtomicBool,
    taken: AtomicBool,
    /// What operators wish, the first first. None are taken any more once it is over.
    orders: Mutex<Option<Vec<Asked>>>,
    /// What other replicas have said about it, the first first.
    said: Mutex<Vec<(Replica, Word)>>,
    heard: Notify,
    attempts: AtomicU32,
    moves: AtomicU32,
    /// The names of the backends that were asked, in order.
    backends: Mutex<Vec<Arc<str>>>,
    whereabouts: Mutex<Whereabouts>,
    trace: OnceLock<String>,
    request: SetOnce<Request>,
    head: watch::Sender<Head>,
    changed: Bell,
}

/// What the whole request turned out to be.
#[derive(Clone, Debug)]
struct Request {
    shape: RequestShape,
    body: [u8; 32],
}

impl Handle {
    /// A candidate with one reader: the client that waits for its head.
    #[must_use]
    pub fn new(spec: Spec, window: Arc<Window>) -> Arc<Self> {
        Self::since(spec, window, Instant::now())
    }

    /// A generation that another replica has begun, so long ago.
    #[must_use]
    pub fn inherited(spec: Spec, window: Arc<Window>, age: Duration) -> Arc<Self> {
        let now = Instant::now();
        // A machine that has not been up for so long counts from its start.
        Self::since(spec, window, now.checked_sub(age).unwrap_or(now))
    }

    fn since(spec: Spec, window: Arc<Window>, begun: Instant) -> Arc<Self> {
        Arc::new(Self {
            spec,
            window,
            begun,
            readers: AtomicUsize::new(0),
            elsewhere: Mutex::default(),
            lost: Mutex::new(None),
            served: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            stop: AtomicU8::new(0),
            shutdown: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            orders: Mutex::new(Some(Vec::new())),
            said: Mutex::default(),
            heard: Notify::new(),
            attempts: AtomicU32::new(0),
            moves: AtomicU32::new(0),
            backends: Mutex::default(),
            whereabouts: Mutex::default(),
            trace: OnceLock::new(),
            request: SetOnce::new(),
            head: watch::Sender::new(Head::Pending),
            changed: Bell::default(),
        })
    }

    /// What it is.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Its entries.
    #[must_use]
    pub fn window(&self) -> &Arc<Window> {
        &self.window
    }

    /// When it was dispatched.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// How many readers are attached now. Another replica that has any counts as one.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.load(Ordering::Acquire)
    }

    /// How many other replicas have readers now.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.elsewhere().len()
    }

    /// Another replica has readers of this. They count until it is said that they left, or as long as this lives;
    /// saying it again changes nothing.
    pub fn came_elsewhere(&self, replica: Replica) {
        if self.elsewhere().insert(replica) {
            self.reader_came();
        }
    }

    /// The last of them has left that replica.
    pub fn left_elsewhere(&self, replica: Replica) {
        if self.elsewhere().remove(&replica) {
            self.reader_left();
        }
    }

    fn elsewhere(&self) -> MutexGuard<'_, BTreeSet<Replica>> {
        self.elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The request has been seen whole: what it asks for, and the digest of its body.
    pub fn request_seen(&self, shape: RequestShape, body: [u8; 32]) {
        if self.request.set(Request { shape, body }).is_ok() {
            self.changed.ring();
        }
    }

    /// The request has been seen whole and asks for a stream in a known dialect.
    #[must_use]
    pub fn is_known_to_stream(&self) -> bool {
        let request = self.request.get();
        request.is_some_and(|request| request.shape.is_known_to_stream(self.spec.dialect))
    }

    /// The request has been seen whole and goes on without its client.
    pub(crate) fn outlives_its_client(&self) -> bool {
        let request = self.request.get();
        request.is_some_and(|request| request.shape.outlives_its_client(self.spec.dialect))
    }

    /// The request has been seen whole, and its answer goes on in the backend whoever reads it.
    #[must_use]
    pub fn is_background(&self) -> bool {
        let request = self.request.get();
        request.is_some_and(|request| request.shape.background)
    }

    /// How many requests were made to backends for this answer, one at least.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Acquire).max(1)
    }

    /// How often another backend has gone on with what was shown.
    #[must_use]
    pub fn moves(&self) -> u32 {
        self.moves.load(Ordering::Acquire)
    }

    pub(crate) fn note_move(&self) {
        self.moves.fetch_add(1, Ordering::AcqRel);
    }

    /// A request for this answer is about to be sent to the backend of this name.
    pub fn attempt(&self, backend: &str) {
        self.attempts.fetch_add(1, Ordering::AcqRel);
        self.backends().push(Arc::from(backend));
    }

    /// Another replica has made so many requests for it, the last one to this backend.
    pub(crate) fn resume_at(&self, attempts: u32, backend: &str) {
        self.attempts.store(attempts, Ordering::Release);
        self.go_to(backend, Leave::Otherwise);
    }

    /// A backend of this name was asked before.
    pub(crate) fn knew(&self, backend: &str) {
        self.backends().push(Arc::from(backend));
    }

    /// The backend that it is at, or waits for.
    #[must_use]
    pub fn backend(&self) -> Arc<str> {
        self.whereabouts().at()
    }

    /// It is at this backend from now on, and has left the one where it was, if there was one, for this reason.
    pub fn go_to(&self, backend: &str, why: Leave) {
        self.whereabouts().go(backend, why);
    }

    /// Why it has left this backend. `None` while it is there, and where it never was.
    #[must_use]
    pub fn left(&self, backend: &str) -> Option<Leave> {
        self.whereabouts().left(backend)
    }

    fn whereabouts(&self) -> MutexGuard<'_, Whereabouts> {
        let whereabouts = self.whereabouts.lock();
        whereabouts.unwrap_or_else(PoisonError::into_inner)
    }

    /// The backends that were asked, each once: in the order in which they were last asked, and the one that it is at last.
    #[must_use]
    pub fn asked(&self) -> Vec<Arc<str>> {
        let bound = self.backend();
        let mut asked: Vec<Arc<str>> = Vec::new();
        for backend in self.backends().iter() {
            asked.retain(|other| other != backend);
            asked.push(Arc::clone(backend));
        }
        asked.retain(|other| *other != bound);
        if !bound.is_empty() {
            asked.push(bound);
        }
        asked
    }

    fn backends(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is followed in traces, where this `traceparent` says. The first stands, and is kept beside the log if it is known
    /// before that opens.
    pub fn follow_in(&self, traceparent: String) {
        // Whoever comes later follows the same generation elsewhere.
        let _ = self.trace.set(traceparent);
    }

    /// Where in traces it is followed.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.trace.get().map(String::as_str)
    }

    /// The trace that it is in, as log lines name it.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.trace()?.split('-').nth(1)
    }

    /// The model that the request named.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        let in_body = || self.request.get()?.shape.model.as_deref();
        self.spec.model.as_deref().or_else(in_body)
    }

    /// How many choices the request asks for, once it has been seen whole.
    pub(crate) fn choices(&self) -> Option<usize> {
        let request = self.request.get()?;
        Some(request.shape.choices(self.spec.dialect))
    }

    /// The id of the call that the request makes, as JSON, once it has been seen whole.
    pub(crate) fn call(&self) -> Option<&str> {
        self.request.get()?.shape.call.as_deref()
    }

    /// The digest of the request's body, once it has been seen whole.
    #[must_use]
    pub fn body_digest(&self) -> Option<[u8; 32]> {
        self.request.get().map(|request| request.body)
    }

    /// Waits for that digest. `None` when the candidate was dropped before its request had been seen whole.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn request_digest(&self) -> Option<[u8; 32]> {
        tokio::select! {
            biased;
            request = self.request.wait() => Some(request.body),
            _ = self.ended() => None,
        }
    }

    /// Asks for a stop. The first caller's name stands; the outcome shows in [`Handle::ended`].
    pub fn stop(&self, by: By) {
        let name = match by {
            By::Client => STOP_CLIENT,
            By::Admin => STOP_ADMIN,
        };
        if self
            .stop
            .compare_exchange(0, name, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            self.changed.ring();
        }
    }

    /// The process will not wait any longer.
    pub fn shut_down(&self) {
        self.shutdown.store(true, Ordering::Release);
        self.changed.ring();
    }

    /// Tells the producer an operator's wish, and waits for what becomes of it. Wishes are met one after the other.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back: a wish that was told is met.
    pub async fn order(&self, order: Order) -> Report {
        let told = {
            let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(orders) = &mut *orders else {
                return Report::Over;
            };
            let (asked, told) = Asked::new(order);
            orders.push(asked);
            told
        };
        self.changed.ring();
        told.await.unwrap_or(Report::Over)
    }

    /// Tells the producer something that nobody waits for.
    pub fn tell(&self, order: Order) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(orders) = &mut *orders else { return };
        // Once is enough.
        if orders.iter().all(|asked| asked.order != order) {
            orders.push(Asked::new(order).0);
            self.changed.ring();
        }
    }

    /// The oldest wish that was not met yet.
    pub(crate) fn next_order(&self) -> Option<Asked> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let orders = orders.as_mut()?;
        (!orders.is_empty()).then(|| orders.remove(0))
    }

    /// Another replica has said something about it.
    pub fn hear(&self, from: Replica, word: Word) {
        self.said().push((from, word));
        self.heard.notify_one();
    }

    /// Forgets what was said.
    pub(crate) fn hear_no_more(&self) {
        self.said().clear();
    }

    /// The next word of one replica; those of others are dropped.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn word_of(&self, replica: Replica) -> Word {
        loop {
            let heard = self.heard.notified();
            {
                let mut said = self.said();
                said.retain(|(from, _)| *from == replica);
                if !said.is_empty() {
                    return said.remove(0).1;
                }
            }
            heard.await;
        }
    }

    fn said(&self) -> MutexGuard<'_, Vec<(Replica, Word)>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another replica has its log: nothing of how it ended is known here.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.window.closed() == Some(Closed::Fenced)
    }

    /// Its log is another replica's now.
    pub fn taken_over(&self) {
        self.taken.store(true, Ordering::Release);
        self.changed.ring();
    }

    /// How far it has come.
    #[must_use]
    pub fn head(&self) -> Head {
        *self.head.borrow()
    }

    /// Waits until it is known whether this becomes a generation.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn decided(&self) -> Head {
        self.wait_for(|head| head != Head::Pending).await
    }

    /// Waits until it is over: the terminal is committed, or it was dropped.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn ended(&self) -> Head {
        self.wait_for(|head| matches!(head, Head::Ended | Head::Dropped))
            .await
    }

    async fn wait_for(&self, mut until: impl FnMut(Head) -> bool) -> Head {
        let mut head = self.head.subscribe();
        // The sender lives in `self`, so the channel cannot be closed while this waits.
        head.wait_for(|head| until(*head))
            .await
            .map_or(Head::Ended, |head| *head)
    }

    pub(crate) fn set_head(&self, head: Head) {
        if matches!(head, Head::Dropped | Head::Ended) {
            // Whoever still waits is told that it is over.
            drop(
                self.orders
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        }
        self.head.send_replace(head);
    }

    /// Rings when something that the producer has to look at has changed. Only the producer listens.
    pub(crate) fn changed(&self) -> &Bell {
        &self.changed
    }

    pub(crate) fn stop_asked(&self) -> Option<By> {
        match self.stop.load(Ordering::Acquire) {
            STOP_CLIENT => Some(By::Client),
            STOP_ADMIN => Some(By::Admin),
            _ => None,
        }
    }

    pub(crate) fn shutdown_asked(&self) -> bool {
        self.shutdown.load(Ordering::Acquire)
    }

    pub(crate) fn is_taken_over(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    pub(crate) fn reader_came(&self) {
        self.readers.fetch_add(1, Ordering::AcqRel);
        self.changed.ring();
    }

    pub(crate) fn reader_left(&self) {
        // Set first: whoever finds no reader finds since when. While there is one, nobody asks.
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.readers.fetch_sub(1, Ordering::AcqRel);
        self.changed.ring();
    }

    /// A reader has been given an event: a repeat of the request is a new one from now on.
    pub(crate) fn mark_served(&self) {
        self.served.store(true, Ordering::Release);
    }

    pub(crate) fn mark_failed(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Any reader was ever given an event.
    pub(crate) fn was_served(&self) -> bool {
        self.served.load(Ordering::Acquire)
    }

    /// It ended as `error`.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// When its last reader left, if there is none now.
    pub(crate) fn lost_at(&self) -> Option<Instant> {
        if self.readers() > 0 {
            return None;
        }
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const STOP_CLIENT: u8 = 1;
const STOP_ADMIN: u8 = 2;
