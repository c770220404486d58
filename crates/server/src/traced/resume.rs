//! The span of one reader that came to a generation which there was: until it has gone.

use std::future::Future;
use std::sync::Arc;

use http::HeaderMap;
use streamweld_generation::Label;
use streamweld_journal::{Cursor, Window};
use streamweld_telemetry::{Kind, Place, Span, Tracer};

use super::names;
use crate::app::App;
use crate::error::Error;

/// How a reader is followed in traces, if it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traced {
    /// Where its caller is.
    caller: Option<Place>,
    /// It, once it is known what it reads.
    pub(crate) resume: Option<Arc<Resume>>,
}

impl Traced {
    /// One that has asked for it with these fields.
    pub(crate) fn of(app: &App, headers: &HeaderMap) -> Self {
        Self {
            caller: app.traces.caller(headers),
            resume: None,
        }
    }

    /// It is known now what is read, and behind what.
    pub(crate) fn reads(&mut self, app: &App, window: &Window, after: Cursor) {
        self.resume = app.traces.resume(self.caller.as_ref(), window, after);
    }

    /// Waits for its answer, which may be a refusal.
    pub(crate) async fn until<T>(
        resume: Option<Arc<Resume>>,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let answer = answer.await;
        if let (Some(resume), Err(error)) = (&resume, &answer) {
            resume.is_refused(error.code.as_str());
        }
        answer
    }
}

/// One of them. It ends with the last of those who hold it.
#[derive(Debug)]
pub(crate) struct Resume {
    span: Span,
}

impl Resume {
    /// Below its own caller's span, and with a link to that of the generation, where that is known.
    pub(super) fn begin(
        tracer: &Tracer,
        caller: Option<&Place>,
        label: Option<&Label>,
        window: &Window,
        after: Cursor,
    ) -> Arc<Self> {
        let trace = label.and_then(|label| label.trace.as_deref());
        let generation = trace.and_then(Place::parse);
        let span = tracer.start("resume", Kind::Server, caller, generation);
        span.set(names::STREAM_ID, window.id().to_string());
        span.set(names::CURSOR, after.seq.to_string());
        span.set(names::EPOCH, window.epoch().to_string());
        Arc::new(Self { span })
    }

    /// It is not let read.
    pub(crate) fn is_refused(&self, code: &'static str) {
        self.span.fail(code);
        self.close("refused");
    }

    /// It has been given the end.
    pub(crate) fn is_whole(&self) {
        self.close("whole");
    }

    /// Its answer is broken off.
    pub(crate) fn is_broken_off(&self) {
        self.close("broken_off");
    }

    /// The first outcome stands.
    fn close(&self, outcome: &'static str) {
        self.span.set(names::OUTCOME, outcome);
        self.span.end();
    }
}

impl Drop for Resume {
    fn drop(&mut self) {
        // It has gone by itself.
        self.close("left");
    }
}
