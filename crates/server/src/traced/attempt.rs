//! The span of one request to a backend: until its body has ended, or is not read any more.

use streamweld_telemetry::{Kind, Place, Span, Tracer};
use streamweld_upstream::fleet::{Engine, Member};

use super::names;

/// One of them. It ends with the last of those who hold it.
#[derive(Debug)]
pub(crate) struct Attempt {
    span: Span,
}

impl Attempt {
    pub(super) fn begin(tracer: &Tracer, below: &Place, member: &Member, number: u32) -> Self {
        let name = format!("attempt {}", member.name());
        let span = tracer.start(&name, Kind::Client, Some(below), []);
        let url = member.backend().url();
        span.set(names::SERVER_ADDRESS, url.host().to_owned());
        span.set(names::SERVER_PORT, i64::from(url.port()));
        span.set(names::BACKEND, member.name().to_owned());
        span.set(names::ATTEMPT, i64::from(number));
        if member.engine() != Engine::Unknown {
            span.set(names::PROVIDER, member.engine().as_str());
        }
        Self { span }
    }

    pub(super) fn place(&self) -> &Place {
        self.span.place()
    }

    /// It has begun to answer.
    pub(crate) fn head(&self, status: u16) {
        self.span.set(names::STATUS_CODE, i64::from(status));
        if status >= 400 {
            self.span.fail(&status.to_string());
        }
    }

    /// There is no answer.
    pub(crate) fn failed(&self, why: &str) {
        self.span.fail(why);
        self.close("no_answer");
    }

    /// Its body has come to its end.
    pub(crate) fn is_whole(&self) {
        self.close("whole");
    }

    /// Its body broke off.
    pub(crate) fn is_cut(&self, why: &str) {
        self.span.fail(why);
        self.close("cut");
    }

    /// The first outcome stands.
    fn close(&self, outcome: &'static str) {
        self.span.set(names::OUTCOME, outcome);
        self.span.end();
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // Another goes on, or nobody wants it.
        self.close("left");
    }
}
