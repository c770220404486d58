//! A place at a backend that may go on with the answer of another.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use streamweld_dialect::Added;
use streamweld_generation::Leg;
use streamweld_generation::migration::{Candidate, Facts, Later, NotBegun};
use streamweld_upstream::fleet::{Member, Permit};

use super::Attempts;
use crate::facts::Wanted;
use crate::request_body::RequestBody;
use crate::source::AttemptSource;
use crate::{dispatch, head};

pub(super) struct Place {
    attempts: Arc<Attempts>,
    permit: Permit,
    /// The backend that is left.
    from: Arc<Member>,
}

impl Place {
    pub(super) fn new(attempts: Arc<Attempts>, permit: Permit, from: Arc<Member>) -> Self {
        Self {
            attempts,
            permit,
            from,
        }
    }
}

impl Candidate<AttemptSource> for Place {
    fn facts(&self) -> Facts {
        let handle = &self.attempts.handle;
        self.attempts.app.facts(&Wanted {
            member: self.permit.member(),
            from: &self.from,
            dialect: handle.spec().dialect,
            model: handle.model(),
            has_callers: !handle.spec().access.is_anonymous(),
        })
    }

    fn leg(&self, added: Option<Added>) -> Leg {
        self.attempts.leg_of(self.permit.member(), added)
    }

    fn ask(self: Box<Self>, body: Bytes) -> Later<Result<AttemptSource, NotBegun>> {
        let Self {
            attempts, permit, ..
        } = *self;
        attempts.begin(&permit);
        Box::pin(async move {
            let answer = attempts.send(permit, RequestBody::again(body)).await;
            let response = answer.map_err(|_| NotBegun::Failed)?;
            let status = response.status();
            if status.is_client_error() {
                return Err(NotBegun::Refused(status.as_u16()));
            }
            let streams = status == StatusCode::OK && head::is_event_stream(response.headers());
            let coding = dispatch::coding(response.headers()).filter(|_| streams);
            let coding = coding.ok_or(NotBegun::Failed)?;
            Ok(AttemptSource::new(response.into_body(), coding))
        })
    }
}
