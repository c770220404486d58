//! An attempt's place at a member.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;

use super::failure;
use super::{Fleet, Member};
use crate::{BoxError, Client, Source, UpstreamError};

/// One attempt at a member, counted as in flight until this is dropped. Keep it as long as the
/// response *body*, not only until the head.
///
/// It also takes what the attempt shows of its backend, once the head is there or cannot come. What
/// happens to the body later is no matter of the fleet's.
pub struct Permit {
    fleet: Fleet,
    member: Arc<Member>,
}

impl Permit {
    pub(super) fn new(fleet: Fleet, member: Arc<Member>) -> Self {
        Self { fleet, member }
    }

    /// Who was chosen.
    pub fn member(&self) -> &Arc<Member> {
        &self.member
    }

    /// Sends a request there, with the backend's own credential where it has one. The place stays taken as long as the
    /// body of the answer.
    ///
    /// # Errors
    /// There was no response head. The place is free again.
    ///
    /// # Cancel safety
    /// As [`Client::send`].
    pub async fn send<B>(
        self,
        client: &Client,
        mut request: Request<B>,
    ) -> Result<Response<Source>, UpstreamError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.member.credential().apply(request.headers_mut());
        let answer = client.send(self.member.backend(), request).await;
        match &answer {
            Ok(response) => self.answered(response.status()),
            Err(error) => self.failed(error),
        }
        answer.map(|response| response.map(|source| source.holding(self)))
    }

    /// A response head came. A `5xx` counts against the member, a `4xx` is the caller's own.
    pub fn answered(&self, status: StatusCode) {
        let outcome = failure::outcome(status);
        self.fleet
            .shown(&self.member, outcome, failure::of_status(status));
    }

    /// No response head came. What broke on the caller's side does not count.
    pub fn failed(&self, error: &UpstreamError) {
        let outcome = error.kind().as_str();
        self.fleet
            .shown(&self.member, outcome, failure::of_error(error));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.fleet.release(self.member.id());
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.member.name()).finish()
    }
}
