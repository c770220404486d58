//! A place at a backend that may go on with the answer of another.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use streamweld_dialect::{Added, Question};
use streamweld_generation::Leg;
use streamweld_generation::migration::{Candidate, Facts, Later, NotBegun};
use streamweld_upstream::fleet::Permit;

use super::Attempts;
use crate::facts::{Former, Wanted};
use crate::request_body::RequestBody;
use crate::source::AttemptSource;
use crate::{dispatch, head};

/// The most of an answer to an inquiry: the ids of some million tokens.
const INQUIRED: usize = 16 << 20;

pub(super) struct Place {
    attempts: Arc<Attempts>,
    permit: Permit,
    /// The backend that is left.
    from: Former,
}

impl Place {
    pub(super) fn new(attempts: Arc<Attempts>, permit: Permit, from: Former) -> Self {
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
            callers: self.attempts.callers(),
        })
    }

    fn leg(&self, added: Option<Added>) -> Leg {
        self.attempts.leg_of(self.permit.member(), added)
    }

    fn inquire(&self, question: Question) -> Later<Option<Vec<u8>>> {
        let told = self.inquire_at(Some(Uri::from_static(question.path)), question.body);
        Box::pin(async move { told.await.ok() })
    }

    fn inquire_behind(
        &self,
        behind: &'static str,
        body: String,
    ) -> Later<Result<Vec<u8>, NotBegun>> {
        self.inquire_at(lengthened(self.attempts.request().uri(), behind), body)
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
            Ok(AttemptSource::of(response, coding))
        })
    }
}

impl Place {
    fn inquire_at(&self, uri: Option<Uri>, body: String) -> Later<Result<Vec<u8>, NotBegun>> {
        let attempts = Arc::clone(&self.attempts);
        let member = Arc::clone(self.permit.member());
        Box::pin(async move {
            let permit = attempts.app.backends.fleet.again(&member);
            let permit = permit.ok_or(NotBegun::Failed)?;
            let mut request = attempts.request().clone();
            *request.uri_mut() = uri.ok_or(NotBegun::Failed)?;
            let body = Bytes::from(body);
            request
                .headers_mut()
                .insert(CONTENT_LENGTH, body.len().into());
            let request = request.map(|()| RequestBody::again(body));
            let answer = attempts.app.send(permit, request).await;
            let answer = answer.map_err(|_| NotBegun::Failed)?;
            let status = answer.status();
            if status.is_client_error() {
                return Err(NotBegun::Refused(status.as_u16()));
            }
            if status != StatusCode::OK {
                return Err(NotBegun::Failed);
            }
            let body = Limited::new(answer.into_body().into_body(), INQUIRED);
            let body = body.collect().await.map_err(|_| NotBegun::Failed)?;
            Ok(body.to_bytes().to_vec())
        })
    }
}

/// The path of a request with more behind it, and its query.
fn lengthened(uri: &Uri, behind: &str) -> Option<Uri> {
    let path = uri.path();
    let query = uri.query().map(|query| format!("?{query}"));
    format!("{path}{behind}{}", query.unwrap_or_default())
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_ahead_of_a_path_and_behind_it_stays() {
        for (of, expected) in [
            ("/v1/messages", "/v1/messages/count_tokens"),
            (
                "/anthropic/v1/messages?beta=true",
                "/anthropic/v1/messages/count_tokens?beta=true",
            ),
        ] {
            let found = lengthened(&Uri::from_static(of), "/count_tokens");
            assert_eq!(found, Some(Uri::from_static(expected)));
        }
    }
}
