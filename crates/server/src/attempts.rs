//! The attempts of one generation: who is asked, and who is asked next when that came to nothing (protocol.md 8.7).

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use streamweld_generation::Handle;
use streamweld_upstream::fleet::{Member, MemberId, Permit};
use streamweld_upstream::{ErrorKind, Source, UpstreamError};

use crate::app::App;
use crate::request_body::RequestBody;

/// What it takes to ask again.
pub(crate) struct Attempts {
    app: Arc<App>,
    handle: Arc<Handle>,
    /// The request as the app made it, but for its body.
    request: Request<()>,
    /// Its whole body, where there is another backend that it could be sent to.
    body: Option<Bytes>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    now: Option<Arc<Member>>,
    failed: Vec<MemberId>,
}

impl Attempts {
    /// Begins with a place at the first backend.
    pub(crate) fn new(
        app: Arc<App>,
        handle: Arc<Handle>,
        request: Request<()>,
        body: Option<Bytes>,
        first: &Permit,
    ) -> Arc<Self> {
        let attempts = Arc::new(Self {
            app,
            handle,
            request,
            body,
            asked: Mutex::default(),
        });
        attempts.begin(first);
        attempts
    }

    /// Asks for the answer, of one backend after the other while they fail without having begun one. When nobody is left,
    /// the last one's own answer is the answer.
    pub(crate) async fn answer(
        &self,
        first: Permit,
        body: RequestBody,
    ) -> Result<Response<Source>, UpstreamError> {
        let (mut permit, mut body) = (first, body);
        for left in (0..self.app.backends.migration.attempts.get()).rev() {
            let answer = self.ask(permit, body).await;
            let failed = match &answer {
                Ok(response) => response.status().is_server_error(),
                Err(error) => is_the_backends_fault(error),
            };
            let next = (failed && left > 0).then(|| self.next());
            let Some(next) = next.flatten() else {
                return answer;
            };
            tracing::info!(
                stream_id = %self.handle.spec().id,
                from = self.handle.backend().as_ref(),
                to = next.0.member().name(),
                why = %why(&answer),
                "asked another backend"
            );
            self.begin(&next.0);
            (permit, body) = next;
        }
        unreachable!("the last attempt returns its answer")
    }

    /// The request as the app made it, but for its body.
    pub(crate) fn request(&self) -> &Request<()> {
        &self.request
    }

    /// One more place at the backend that was asked last, whatever is believed of it.
    pub(crate) fn again_there(&self) -> Option<Permit> {
        let member = self.lock().now.clone()?;
        self.app.backends.fleet.again(&member)
    }

    /// Another backend for the same request, if there is one and the request was kept.
    fn next(&self) -> Option<(Permit, RequestBody)> {
        let body = self.body.clone()?;
        let failed = {
            let mut asked = self.lock();
            let now = asked.now.take();
            asked.failed.extend(now.map(|member| member.id()));
            asked.failed.clone()
        };
        let dialect = self.handle.spec().dialect;
        let permit = self.app.backends.pick(dialect, &failed).ok()?;
        Some((permit, RequestBody::again(body)))
    }

    fn begin(&self, permit: &Permit) {
        self.lock().now = Some(Arc::clone(permit.member()));
        self.handle.attempt(permit.member().name());
    }

    async fn ask(
        &self,
        permit: Permit,
        body: RequestBody,
    ) -> Result<Response<Source>, UpstreamError> {
        let request = self.request.clone().map(|()| body);
        permit.send(&self.app.client, request).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether another backend may do better. What broke on the client's side breaks there too.
fn is_the_backends_fault(error: &UpstreamError) -> bool {
    !matches!(error.kind(), ErrorKind::RequestBody | ErrorKind::Send)
}

fn why(answer: &Result<Response<Source>, UpstreamError>) -> String {
    match answer {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) => error.kind().as_str().to_owned(),
    }
}
