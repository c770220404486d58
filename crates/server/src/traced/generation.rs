//! The span of one generation: from its dispatch to its end here, however long its first request has been over.

use std::sync::{Arc, Weak};

use http::HeaderMap;
use streamweld_dialect::Dialect;
use streamweld_generation::lifecycle::End;
use streamweld_generation::{Handle, Happening, OpenPayload};
use streamweld_journal::StreamId;
use streamweld_telemetry::{Kind, Place, Span, Tracer};
use streamweld_upstream::fleet::Member;
use tokio::time::Instant;

use super::attempt::Attempt;
use super::{Traces, names};

/// One that runs here, or may come to.
pub(crate) struct Generation {
    id: StreamId,
    span: Span,
    tracer: Tracer,
    began: Instant,
    /// It knows how far it has come. `None`: nobody goes on with it.
    handle: Option<Arc<Handle>>,
    all: Weak<Traces>,
}

impl Generation {
    /// Somebody has asked for it, and is its caller: in a picture of services it stands for this one.
    pub(super) fn begin(
        all: &Arc<Traces>,
        tracer: &Tracer,
        handle: &Arc<Handle>,
        caller: Option<&Place>,
    ) -> Self {
        let spec = handle.spec();
        let name = names::span(spec.dialect, handle.model());
        let span = tracer.start(&name, Kind::Server, caller, []);
        span.set(names::REQUEST_ID, spec.request_id.clone());
        describe(&span, spec.id, spec.dialect, handle.model());
        Self::of(all, tracer, spec.id, span, Some(handle))
    }

    /// It goes on in the trace in which it has begun, below the span that it had there.
    pub(super) fn inherit(
        all: &Arc<Traces>,
        tracer: &Tracer,
        id: StreamId,
        open: &OpenPayload,
        began: Option<&Place>,
        handle: Option<&Arc<Handle>>,
    ) -> Self {
        let dialect = open.dialect.parse().unwrap_or(Dialect::Generic);
        let model = open.model.as_deref();
        let name = names::span(dialect, model);
        let span = tracer.start(&name, Kind::Internal, began, []);
        span.set(names::REQUEST_ID, open.request_id.clone());
        span.set(names::INHERITED, true);
        describe(&span, id, dialect, model);
        Self::of(all, tracer, id, span, handle)
    }

    fn of(
        all: &Arc<Traces>,
        tracer: &Tracer,
        id: StreamId,
        span: Span,
        handle: Option<&Arc<Handle>>,
    ) -> Self {
        Self {
            id,
            span,
            tracer: tracer.clone(),
            began: Instant::now(),
            handle: handle.cloned(),
            all: Arc::downgrade(all),
        }
    }

    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// Where it is, for what is asked on its behalf.
    pub(crate) fn place(&self) -> &Place {
        self.span.place()
    }

    /// A request is made for it. Its `headers` say that they come from there.
    pub(crate) fn attempt(
        &self,
        member: &Member,
        number: u32,
        headers: &mut HeaderMap,
    ) -> Arc<Attempt> {
        let attempt = Attempt::begin(&self.tracer, self.place(), member, number);
        attempt.place().tell(headers);
        Arc::new(attempt)
    }

    /// The backend's answer is no event stream, so there is no generation.
    pub(crate) fn is_none(&self, status: Option<u16>) {
        if let Some(handle) = &self.handle {
            self.name(handle);
            self.span.set(names::ATTEMPTS, i64::from(handle.attempts()));
        }
        match status {
            Some(status) => {
                self.span.set(names::STATUS_CODE, i64::from(status));
                if status >= 500 {
                    self.span.fail(&status.to_string());
                }
            }
            None => self.span.fail("no_answer"),
        }
        self.close("passed_through");
    }

    pub(super) fn sees(&self, what: &Happening<'_>) {
        let span = &self.span;
        match what {
            Happening::Created {
                handle, durability, ..
            } => {
                // Its request may have been read meanwhile.
                self.name(handle);
                span.set(names::REQUEST_STREAM, true);
                span.set(names::DURABILITY, durability.as_str());
            }
            Happening::FirstEvent => {
                span.set(
                    names::TIME_TO_FIRST_CHUNK,
                    self.began.elapsed().as_secs_f64(),
                );
                span.event(names::FIRST_EVENT, &[]);
            }
            Happening::Migrated { from, to, trigger } => {
                let said = [("from", *from), ("to", *to), ("trigger", *trigger)];
                span.event(names::MIGRATED, &said);
            }
            Happening::Degraded => span.event(names::DEGRADED, &[]),
            Happening::Healed => span.event(names::HEALED, &[]),
            Happening::Ended(end) => self.ended(end),
            Happening::Left => {
                self.count();
                self.close("left");
            }
        }
    }

    fn ended(&self, end: &End) {
        match end {
            End::Done(done) => self.span.set_all(names::FINISH_REASONS, &done.reasons),
            End::Refused(refused) => {
                for (gate, _) in &refused.gates {
                    self.span.event(names::GATE, &[("gate", gate.as_str())]);
                }
            }
            _ => {}
        }
        if let Some(code) = end.code() {
            self.span.fail(code);
        }
        self.count();
        self.close(end.kind().as_str());
    }

    fn name(&self, handle: &Handle) {
        if let Some(model) = handle.model() {
            let dialect = handle.spec().dialect;
            self.span.rename(&names::span(dialect, Some(model)));
            self.span.set(names::REQUEST_MODEL, model.to_owned());
        }
    }

    fn count(&self) {
        let Some(handle) = &self.handle else { return };
        let (span, window) = (&self.span, handle.window());
        span.set(names::BACKEND, handle.backend().to_string());
        span.set(names::ATTEMPTS, i64::from(handle.attempts()));
        span.set(names::MIGRATIONS, i64::from(handle.moves()));
        span.set(names::EPOCH, window.epoch().to_string());
        let entries = i64::try_from(window.received().get());
        span.set(names::ENTRIES, entries.unwrap_or(i64::MAX));
    }

    /// The first outcome stands.
    fn close(&self, outcome: &'static str) {
        self.span.set(names::OUTCOME, outcome);
        self.span.end();
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if let Some(all) = self.all.upgrade() {
            all.forget(self);
        }
        // Nobody waited for the answer any more, or another replica keeps what it had offered.
        self.close("dropped");
    }
}

fn describe(span: &Span, id: StreamId, dialect: Dialect, model: Option<&str>) {
    span.set(names::STREAM_ID, id.to_string());
    span.set(names::DIALECT, dialect.as_str());
    if let Some(operation) = names::operation(dialect) {
        span.set(names::OPERATION, operation);
    }
    if let Some(provider) = names::provider(dialect) {
        span.set(names::PROVIDER, provider);
    }
    if let Some(model) = model {
        span.set(names::REQUEST_MODEL, model.to_owned());
    }
}
