//! A place at a backend that may go on with the answer of another.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use streamweld_dialect::{Added, Question};
use streamweld_generation::Leg;
use streamweld_generation::migration::{Candidate, Facts, Later, NotBegun};
use streamweld_upstream::examine::Examination;
use streamweld_upstream::fleet::{Member, Permit};

use super::Attempts;
use crate::facts::Wanted;
use crate::request_body::RequestBody;
use crate::source::AttemptSource;
use crate::{dispatch, head};

/// The most of an answer to an inquiry: the ids of some million tokens.
const INQUIRED: usize = 16 << 20;

pub(super) struct Place {
    attempts: Arc<Attempts>,
    permit: Permit,
    /// The backend that is left.
    from: (Arc<Member>, Option<Arc<Examination>>),
}

impl Place {
    pub(super) fn new(
        attempts: Arc<Attempts>,
        permit: Permit,
        from: (Arc<Member>, Option<Arc<Examination>>),
    ) -> Self {
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
            from: &self.from.0,
            before: self.from.1.as_deref(),
            dialect: handle.spec().dialect,
            model: handle.model(),
            has_callers: !handle.spec().access.is_anonymous(),
        })
    }

    fn leg(&self, added: Option<Added>) -> Leg {
        self.attempts.leg_of(self.permit.member(), added)
    }

    fn inquire(&self, question: Question) -> Later<Option<Vec<u8>>> {
        let attempts = Arc::clone(&self.attempts);
        let member = Arc::clone(self.permit.member());
        Box::pin(async move {
            let permit = attempts.app.backends.fleet.again(&member)?;
            let mut request = attempts.request().clone();
            *request.uri_mut() = Uri::from_static(question.path);
            let body = Bytes::from(question.body);
            request
                .headers_mut()
                .insert(CONTENT_LENGTH, body.len().into());
            let request = request.map(|()| RequestBody::again(body));
            let answer = attempts.app.send(permit, request).await.ok()?;
            if answer.status() != StatusCode::OK {
                return None;
            }
            let body = Limited::new(answer.into_body().into_body(), INQUIRED);
            Some(body.collect().await.ok()?.to_bytes().to_vec())
        })
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
