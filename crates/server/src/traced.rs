//! Generations in traces (protocol.md 12.6).
//!
//! ```text
//! caller's span ──> generation ──> attempt at a backend (several)
//!                       ▲  └─────> the same generation on another replica
//!                       └─link── reader that came later, below its own caller's span
//! ```
//!
//! Spans begin and end at the turns of a life, never per event. Where nothing is traced there are none of these, and nobody
//! asks for more than whether there is one. Nothing of a prompt, an answer, a field or a query is ever said of one.

mod attempt;
mod generation;
mod names;
mod resume;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::HeaderMap;
use streamweld_generation::{Handle, Happening, Label, Onlooker};
use streamweld_journal::{Cursor, StreamId, Window};
use streamweld_telemetry::{Place, Tracer};

pub(crate) use self::attempt::Attempt;
pub(crate) use self::generation::Generation;
pub(crate) use self::resume::{Resume, Traced};

/// What is traced of one server, if anything is.
#[derive(Default)]
pub(crate) struct Traces {
    tracer: Option<Tracer>,
    /// What runs now. Each takes itself out.
    now: Mutex<HashMap<StreamId, Weak<Generation>>>,
}

impl Traces {
    pub(crate) fn new(tracer: Option<Tracer>) -> Arc<Self> {
        Arc::new(Self {
            tracer,
            ..Self::default()
        })
    }

    /// Where the caller of a request is, where that is of use.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Place> {
        self.tracer.as_ref().and_then(|_| Place::of(headers))
    }

    /// A generation begins, if the backend's answer is one. What is sent for it from now on by `headers` says so.
    pub(crate) fn begin(
        self: &Arc<Self>,
        handle: &Arc<Handle>,
        headers: &mut HeaderMap,
    ) -> Option<Arc<Generation>> {
        let tracer = self.tracer.as_ref()?;
        let caller = Place::of(headers);
        let generation = Generation::begin(self, tracer, handle, caller.as_ref());
        handle.follow_in(generation.place().traceparent());
        generation.place().tell(headers);
        Some(self.keep(generation))
    }

    /// What another replica has begun goes on, or ends, here.
    pub(crate) fn inherit(
        self: &Arc<Self>,
        id: StreamId,
        label: &[u8],
        handle: Option<&Arc<Handle>>,
    ) -> Option<Arc<Generation>> {
        let tracer = self.tracer.as_ref()?;
        let label: Label = serde_json::from_slice(label).ok()?;
        let began = label.trace.as_deref().and_then(Place::parse);
        if let (Some(handle), Some(trace)) = (handle, &label.trace) {
            handle.follow_in(trace.clone());
        }
        let generation = Generation::inherit(self, tracer, id, &label.open, began.as_ref(), handle);
        Some(self.keep(generation))
    }

    /// A reader comes to a generation that there is.
    pub(crate) fn resume(
        &self,
        caller: Option<&Place>,
        window: &Window,
        after: Cursor,
    ) -> Option<Arc<Resume>> {
        let tracer = self.tracer.as_ref()?;
        let label: Option<Label> = serde_json::from_slice(&window.label()).ok();
        Some(Resume::begin(tracer, caller, label.as_ref(), window, after))
    }

    fn keep(&self, generation: Generation) -> Arc<Generation> {
        let generation = Arc::new(generation);
        self.lock()
            .insert(generation.id(), Arc::downgrade(&generation));
        generation
    }

    /// Takes one out, unless another has its place.
    fn forget(&self, generation: &Generation) {
        let mut now = self.lock();
        let is_it = |kept: &Weak<Generation>| std::ptr::eq(kept.as_ptr(), generation);
        if now.get(&generation.id()).is_some_and(is_it) {
            now.remove(&generation.id());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, Weak<Generation>>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Onlooker for Traces {
    fn sees(&self, stream: StreamId, what: &Happening<'_>) {
        if self.tracer.is_none() {
            return;
        }
        // Not held meanwhile: the last one out takes it as well.
        let generation = self.lock().get(&stream).and_then(Weak::upgrade);
        if let Some(generation) = generation {
            generation.sees(what);
        }
    }
}
