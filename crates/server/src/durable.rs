//! From a request to a generation: the candidate, and the answers that were already there (protocol.md 4.3, 6.5, 9.1).
//!
//! ```text
//! idempotency key taken? ──> attach        repeat of a lost request? ──> attach
//!            │ no                                     │ no
//!            └───────────────> dispatch <─────────────┘
//!                       Producer task ── Told ──> the response
//! ```

use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, Method, Request, Response, request};
use streamweld_dialect::{Dialect, model_in_path};
use streamweld_generation::lifecycle::End;
use streamweld_generation::{
    Access, Attached, Durability, Handle, Head, Onward, OrphanPolicy, Presence, Producer, RetryKey,
    Spec, Told, migration,
};
use streamweld_journal::{BodyDigest, Cursor, Epoch, Seq, StreamId, Window, WindowConfig};
use tokio::sync::oneshot;

use crate::app::{App, Peer};
use crate::attach::{self, Readable, Reading};
use crate::attempts::{Attempts, Others};
use crate::body::Body;
use crate::capability::{Grant, Scope};
use crate::client_body::ClientBody;
use crate::dispatch::{Sending, produce};
use crate::error::{Error, ErrorCode};
use crate::idempotency::{self, Key, Met, Waited};
use crate::request_body::{RequestBody, RequestBodyError};
use crate::source::AttemptSource;
use crate::traced::Traced;
use crate::{forward, head, reattach, responses, streams};

/// A request that may become a generation.
pub(crate) struct Candidate {
    parts: request::Parts,
    request_id: Arc<str>,
    dialect: Dialect,
    body: RequestBody,
    access: Access,
    policy: OrphanPolicy,
    reading: Reading,
    key: Option<Key>,
    retry: Option<RetryKey>,
}

/// Serves a candidate.
pub(crate) async fn serve(
    app: &Arc<App>,
    request: Request<ClientBody>,
    peer: &Peer,
    dialect: Dialect,
) -> Result<Response<Body>, Error> {
    let (parts, body) = request.into_parts();
    let (target, limit) = (
        parts.uri.path_and_query(),
        app.settings().edge.max_request_body,
    );
    let body = RequestBody::new(body, target, limit, &app.shared.journal);
    let candidate = Candidate::new(app, parts, body, peer, dialect)?;
    candidate.serve(app, peer).await
}

impl Candidate {
    fn new(
        app: &App,
        parts: request::Parts,
        body: RequestBody,
        peer: &Peer,
        dialect: Dialect,
    ) -> Result<Self, Error> {
        forward::check_length(app, &parts.headers)?;
        subject(app, &parts.headers)?;
        let access = app.access(&parts.headers);
        let post = parts.method == Method::POST;
        let key = if post {
            idempotency::key(&parts.headers, &access)?
        } else {
            None
        };
        let policy = policy(app, &parts)?;
        let control = streams::control(&parts.headers, parts.uri.query(), false)?;
        let grant = Grant::new(access, Scope::wanted(&parts.headers)?);
        let retry = post.then(|| retry_key(&parts, &access, key, peer));
        let reading = Reading {
            any_epoch: false,
            control,
            resumes: false,
            grant: Some(grant),
            breaker: peer.breaker.clone(),
            traced: Traced::of(app, &parts.headers),
        };
        Ok(Self {
            parts,
            request_id: Arc::clone(&peer.request_id),
            dialect,
            body,
            access,
            policy,
            reading,
            key,
            retry,
        })
    }

    async fn serve(mut self, app: &Arc<App>, peer: &Peer) -> Result<Response<Body>, Error> {
        refuse_if_shutting_down(app)?;
        if app.settings().keep_requests {
            // A request that another backend may be given has to be here whole. A longer one, and one that there is no room
            // for, is given to one alone.
            let ahead = self
                .body
                .read_ahead(app.settings().edge.max_kept_body)
                .await;
            ahead.map_err(|error| client_broke(&error, &self.request_id))?;
        }
        if let Some(held) = self.earlier(app).await? {
            return held.attach(app, self.reading).await;
        }
        loop {
            // Again for each round: one that waited for another must not begin now.
            refuse_if_shutting_down(app)?;
            // The candidate can be found before it has the key: whoever meets the key meets it too.
            let (handle, producer) = self.stand(app);
            let Some(key) = self.key else {
                return self.dispatch(app, peer, handle, producer).await;
            };
            match idempotency::claim(app, key, handle.spec().id).await {
                Met::Free => return self.dispatch(app, peer, handle, producer).await,
                Met::Taken { id: earlier, body } => {
                    producer.dismiss();
                    if let Some(held) = self.meet(app, key, earlier, body).await? {
                        return held.attach(app, self.reading).await;
                    }
                }
            }
        }
    }

    /// Makes the candidate, with an id of its own.
    fn stand(&self, app: &App) -> (Arc<Handle>, Producer) {
        let now = SystemTime::now();
        let id = StreamId::generate(now);
        let window = Window::new(
            id,
            Epoch::FIRST,
            now,
            WindowConfig {
                max_bytes: app.settings().journal.per_generation,
            },
        );
        let spec = Spec {
            id,
            dialect: self.dialect,
            model: model_in_path(self.dialect, self.parts.uri.path()).map(str::to_owned),
            access: self.access,
            policy: self.policy,
            request_id: self.request_id.to_string(),
            created: now,
            retry: self.retry,
        };
        let handle = Handle::new(spec, window);
        let producer = app.producer(Arc::clone(&handle));
        (handle, producer)
    }

    /// The generation that this request is a repeat of, if its earlier self was lost before its answer began.
    async fn earlier(&mut self, app: &App) -> Result<Option<Held>, Error> {
        let Some(retry) = self.retry else {
            return Ok(None);
        };
        let count = self
            .parts
            .headers
            .get(head::RETRY_COUNT)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let candidates = app.shared.retries.candidates(retry, count);
        if candidates.is_empty() {
            return Ok(None);
        }
        let digest = self
            .body
            .read_ahead(app.settings().edge.max_kept_body)
            .await
            .map_err(|error| client_broke(&error, &self.request_id))?;
        for handle in candidates {
            if digest.is_none() || handle.body_digest() != digest {
                continue;
            }
            let held = Held::of(&handle);
            if let Head::Streaming(Durability::Durable) | Head::Ended = handle.decided().await {
                app.metrics.joined.inc();
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    /// Waits for the generation that has the key of this request. `None`: it came to nothing, and the key is free.
    async fn meet(
        &mut self,
        app: &App,
        key: Key,
        id: StreamId,
        body: Option<BodyDigest>,
    ) -> Result<Option<Held>, Error> {
        let ahead = self
            .body
            .read_ahead(app.settings().edge.max_kept_body)
            .await
            .map_err(|error| client_broke(&error, &self.request_id))?;
        let handle = app.shared.registry.find(id);
        let held = handle.as_ref().map(Held::of);
        let mut earlier = match (&handle, body) {
            (_, Some(body)) => Some(body),
            (Some(handle), None) => handle.request_digest().await,
            (None, None) => None,
        };
        compare(earlier, ahead)?;
        let held = if let Some(handle) = handle {
            let attachable = match handle.decided().await {
                Head::Streaming(Durability::Durable) => true,
                Head::Ended => !handle.has_failed(),
                Head::Streaming(Durability::Degraded) | Head::Pending | Head::Dropped => false,
            };
            held.filter(|_| attachable)
        } else {
            // It has ended, or another replica has it.
            match idempotency::wait(app, key, id, &self.access, earlier).await? {
                Some(Waited { found, body }) => {
                    earlier = body;
                    compare(earlier, ahead)?;
                    Some(Held {
                        found,
                        presence: None,
                    })
                }
                None => None,
            }
        };
        if held.is_none() {
            // A key that cannot be given back lapses with its generation.
            let _ = app.shared.journal.release(key.0, id).await;
            return Ok(None);
        }
        // Longer than is kept: it is used up only now that it will not be dispatched.
        if ahead.is_none() {
            let body = std::mem::replace(&mut self.body, RequestBody::empty());
            let digest = body
                .digest()
                .await
                .map_err(|error| client_broke(&error, &self.request_id))?;
            compare(earlier, Some(digest))?;
        }
        Ok(held)
    }

    /// Sends the request to the backend. From here on a producer owns it, whatever becomes of the client.
    async fn dispatch(
        mut self,
        app: &Arc<App>,
        peer: &Peer,
        handle: Arc<Handle>,
        producer: Producer,
    ) -> Result<Response<Body>, Error> {
        let (id, dialect) = (handle.spec().id, handle.spec().dialect);
        let presence = Presence::new(Arc::clone(&handle));
        let permit = match app.backends.pick(dialect, &[]) {
            Ok(permit) => permit,
            Err(error) => {
                producer.dismiss();
                return Err(error);
            }
        };
        let outgoing = forward::outgoing(app, &self.parts, forward::MayStream::Yes, None);
        let whole = app.settings().keep_requests.then(|| self.body.whole());
        let whole = whole.flatten();
        let kept = whole.is_some();
        let attempts = Attempts::new(
            Arc::clone(app),
            Arc::clone(&handle),
            outgoing,
            whole,
            &permit,
        );
        let again = (dialect == Dialect::OpenAiResponses).then(|| {
            let path = self.parts.uri.path().to_owned();
            let learn = responses::learn(Arc::clone(app), Arc::clone(&handle), path);
            app.producers.spawn(learn);
            reattach::again(app, &handle, &attempts)
        });
        let body = if kept {
            self.body.seen_whole(Arc::clone(&handle));
            RequestBody::empty()
        } else {
            self.body.teed(Arc::clone(&handle))
        };
        // Behind one backend nothing is kept for others.
        let others = || -> Arc<dyn migration::Backends<AttemptSource>> {
            Arc::new(Others(Arc::clone(&attempts)))
        };
        let backends = app.settings().keep_requests.then(others);
        let keep = kept.then(|| app.keeps(&attempts)).flatten();
        let onward = Onward {
            again,
            backends,
            keep,
        };
        let (tell, told) = oneshot::channel();
        app.producers.spawn(produce(
            Arc::clone(app),
            producer,
            Arc::clone(&handle),
            Sending {
                attempts,
                first: permit,
                body,
                onward,
                key: self.key,
            },
            tell,
        ));

        match told.await {
            Ok(Told::Streaming((status, mut upstream), durability)) => {
                head::strip_hop_by_hop(&mut upstream, &app.credentials);
                head::strip_ours(&mut upstream);
                let view = self.reading.view(dialect, durability);
                let attached = Attached::live(presence, Seq::ZERO, view);
                let mut response = attach::respond(
                    app,
                    attached,
                    id,
                    durability,
                    dialect,
                    self.reading,
                    upstream,
                );
                *response.status_mut() = status;
                Ok(response)
            }
            Ok(Told::Other(answer)) => Ok(forward::incoming(app, answer?, peer)),
            Ok(Told::Cancelled(End::Shutdown)) => Err(Error::shutting_down(
                "the backend had not answered the request, which was cancelled there",
            )),
            Ok(Told::Cancelled(End::TooLong)) => Err(Error::new(
                ErrorCode::BackendTimeout,
                "the backend gave no answer for as long as a generation may take",
            )),
            Ok(Told::Cancelled(_)) | Err(_) => Err(Error::new(
                ErrorCode::InternalError,
                "the request was cancelled",
            )),
        }
    }
}

fn refuse_if_shutting_down(app: &App) -> Result<(), Error> {
    if app.is_shutting_down() {
        return Err(Error::shutting_down(
            "the request was not passed on to the backend",
        ));
    }
    Ok(())
}

/// Refuses a request with another body than the earlier one, where both are known.
fn compare(earlier: Option<BodyDigest>, digest: Option<BodyDigest>) -> Result<(), Error> {
    match (earlier, digest) {
        (Some(earlier), Some(digest)) if earlier != digest => {
            let message = "this idempotency key was used with another request body";
            Err(Error::new(ErrorCode::IdempotencyKeyReused, message))
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// A generation that a request found instead of being dispatched. Being there keeps the orphan policy away until the
/// reader itself is attached.
struct Held {
    found: Readable,
    presence: Option<Presence>,
}

impl Held {
    fn of(handle: &Arc<Handle>) -> Self {
        Self {
            found: Readable::here(Arc::clone(handle)),
            presence: Some(Presence::new(Arc::clone(handle))),
        }
    }

    /// Attaches a reader from the start.
    async fn attach(self, app: &App, mut reading: Reading) -> Result<Response<Body>, Error> {
        let window = &self.found.window;
        let start = Cursor {
            stream: window.id(),
            seq: Seq::ZERO,
            epoch: Epoch::FIRST,
        };
        reading.traced.reads(app, window, start);
        let pages = self.found.cross_origin();
        let reader = attach::reader(app, &self.found, Seq::ZERO, &reading).await;
        let response = reader.map(|reader| attach::attached(app, self.found, reader, reading));
        drop(self.presence);
        pages.share(response)
    }
}

fn policy(app: &App, parts: &request::Parts) -> Result<OrphanPolicy, Error> {
    let mut values = parts.headers.get_all(head::ORPHAN_POLICY).iter();
    let said = match (values.next(), values.next()) {
        (None, _) if parts.method == Method::GET => {
            return Ok(app.settings().generation.feed_orphan_policy);
        }
        (None, _) => return Ok(app.settings().generation.orphan_policy),
        (Some(value), None) => value.to_str().ok().and_then(|text| text.parse().ok()),
        (Some(_), Some(_)) => None,
    };
    said.ok_or_else(|| {
        let message = "X-Streamweld-Orphan-Policy is `continue`, `cancel` or `cancel_after=<duration>` such as `cancel_after=60s`";
        Error::new(ErrorCode::InvalidOrphanPolicy, message)
    })
}

fn retry_key(parts: &request::Parts, access: &Access, key: Option<Key>, peer: &Peer) -> RetryKey {
    let target = parts
        .uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let address = if access.is_anonymous() {
        peer.addr.ip().to_string()
    } else {
        String::new()
    };
    RetryKey(access.scoped(
        "retry",
        &[
            parts.method.as_str().as_bytes(),
            target.as_bytes(),
            address.as_bytes(),
            key.as_ref().map_or(&[][..], |key| &key.0),
        ],
    ))
}

/// Refuses what would be nobody's: the gateway that says who asks has not said it.
fn subject(app: &App, headers: &HeaderMap) -> Result<(), Error> {
    let Some(name) = app.credentials.subject() else {
        return Ok(());
    };
    let mut told = headers.get_all(name).iter();
    match (told.next(), told.next()) {
        (Some(one), None) if !one.is_empty() => Ok(()),
        (_, _) => {
            let message = format!(
                "`{name}`, in which the gateway of this server says who asks, has to be there once and not empty; ask by \
                 the gateway"
            );
            Err(Error::new(ErrorCode::SubjectMissing, message))
        }
    }
}

fn client_broke(error: &RequestBodyError, request_id: &str) -> Error {
    tracing::debug!(request_id, %error, "a request body could not be read");
    match error {
        RequestBodyError::TooLarge => return forward::over_the_limit(),
        RequestBodyError::TooSlow => return forward::too_slow(),
        RequestBodyError::Client(_) => {}
    }
    Error::new(
        ErrorCode::RequestTooLarge,
        "the request body could not be read whole",
    )
}
