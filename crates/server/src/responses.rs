//! Responses as their own API reads them again: `GET …/responses/{id}?stream=true` (protocol.md 6.8).
//!
//! The id of a response is learnt from its first event, once for each generation, by a reader like any other. It is kept
//! as idempotency keys are: a digest in the scope of its caller, which leads to the generation for as long as that is
//! retained, on every replica that shares the journal.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use serde::Deserialize;
use streamweld_generation::{Access, Durability, Handle, Head, Registry, steady_now};
use streamweld_journal::{
    Claim, Cursor, Epoch, Reader, Seq, Step, StreamId, View, Window, parse_seq,
};
use streamweld_sse::{Decoder, Event, Limits};
use tokio::sync::SetOnce;
use tokio::time::{sleep, timeout};

use crate::app::{App, Peer};
use crate::attach::{self, Readable, Reading};
use crate::body::Body;
use crate::caller::Caller;
use crate::capability::{Grant, Scope};
use crate::client_body::ClientBody;
use crate::counted::Counted;
use crate::error::{Error, ErrorCode};
use crate::idempotency::Key;
use crate::traced::Traced;
use crate::{head, idempotency, query, streams};

/// How many events may come before the first that has the response.
const OPENING: usize = 8;
/// Without a credential the id is the only secret, and some engines count theirs. Those that can keep one have 32
/// characters of chance.
const SECRET: usize = 24;
/// How many responses that have ended may be remembered beside as many as run.
const MOST_ENDED: usize = 64;
/// How often a journal that is out of reach is asked again.
const AGAIN: Duration = Duration::from_millis(250);

/// Answers who asks again for a response that came through here. `None`: the backend is to answer.
pub(crate) async fn retrieve(
    app: &App,
    request: &Request<ClientBody>,
    peer: &Peer,
) -> Option<Result<Response<Body>, Error>> {
    let (query, headers) = (request.uri().query(), request.headers());
    let (path, id) = request.uri().path().rsplit_once('/')?;
    let streams = query::first(query, "stream").as_deref() == Some(b"true");
    if request.method() != Method::GET || !path.ends_with("/responses") || !streams {
        return None;
    }
    let access = app.access(headers);
    let id = query::decode(id);
    let key = key(&access, path, std::str::from_utf8(&id).ok()?)?;
    // As for an idempotency key: a journal that does not answer costs durability, and never an answer.
    let patience = app.shared.limits.heal.open;
    let _ = timeout(patience, app.learning.caught_up(&access)).await;
    let stream = match app.learning.here(key, &app.shared.registry) {
        Some(stream) => stream,
        None => {
            let look = timeout(patience, idempotency::look(app, key)).await;
            look.ok()?.ok()??.0
        }
    };
    match attach::find(app, stream, &Caller::with(access)).await {
        Ok(found) => {
            let pages = found.cross_origin();
            Some(pages.share(read(app, found, access, request, peer).await))
        }
        Err(error)
            if matches!(
                error.code,
                ErrorCode::StreamNotFound | ErrorCode::StreamExpired
            ) =>
        {
            None
        }
        Err(error) => Some(Err(error)),
    }
}

async fn read(
    app: &App,
    found: Readable,
    access: Access,
    request: &Request<ClientBody>,
    peer: &Peer,
) -> Result<Response<Body>, Error> {
    let id = found.window.id();
    let (query, headers) = (request.uri().query(), request.headers());
    let grant = Grant::new(access, Scope::wanted(headers)?);
    let reading = Reading {
        any_epoch: true,
        control: streams::control(headers, query, false)?,
        resumes: false,
        grant: Some(grant),
        breaker: peer.breaker.clone(),
        traced: Traced::of(app, headers),
    };
    let answer = match starting_after(query).map_err(|error| error.about(id))? {
        None => {
            let cursor = Cursor {
                stream: id,
                seq: Seq::ZERO,
                epoch: Epoch::FIRST,
            };
            attach::read(app, found, cursor, reading).await?
        }
        Some(number) => attach::read_counted(app, found, Counted::Number(number), reading).await?,
    };
    if answer.status() == StatusCode::NO_CONTENT {
        return Ok(nothing(app, id, grant));
    }
    Ok(answer)
}

/// An event stream without an event. Its clients take a `204` for an answer without a body, and raise.
fn nothing(app: &App, id: StreamId, grant: Grant) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    let level = app.shared.journal.level();
    *response.headers_mut() = head::durable(HeaderMap::new(), id, Durability::Durable, level);
    grant.show(&app.settings().edge.resume_urls, id, response.headers_mut());
    response
}

fn starting_after(query: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(text) = query::first(query, "starting_after") else {
        return Ok(None);
    };
    match parse_seq(&text) {
        Some(number) => Ok(Some(number.get())),
        None => {
            let message = "`starting_after` is the `sequence_number` of an event: digits only";
            Err(Error::new(ErrorCode::InvalidParameter, message))
        }
    }
}

/// Under which key the response `id` of the requests to `path` is found by this caller. `None`: under none.
fn key(access: &Access, path: &str, id: &str) -> Option<Key> {
    let is_secret = !access.is_anonymous() || id.len() >= SECRET;
    (is_secret && !id.is_empty())
        .then(|| Key(access.scoped("response", &[path.as_bytes(), id.as_bytes()])))
}

/// Learns which response a generation is, and keeps that. Ends with the generation at the latest.
pub(crate) fn learn(app: Arc<App>, handle: Arc<Handle>, path: String) -> impl Future<Output = ()> {
    // From now on, and not from when the task has its turn.
    let learner = Learner::new(Arc::clone(&app), &handle);
    async move {
        let named = name(&handle, &path).await;
        if let Some(key) = named {
            let registry = &app.shared.registry;
            app.learning.keep(key, handle.spec().id, registry);
        }
        drop(learner);
        if let Some(key) = named {
            tell(&app, &handle, key).await;
        }
    }
}

/// Under which key it is found, once that can be known.
async fn name(handle: &Handle, path: &str) -> Option<Key> {
    let head = handle.decided().await;
    if !matches!(head, Head::Streaming(Durability::Durable) | Head::Ended) {
        return None;
    }
    let response = first_id(handle.window()).await?;
    key(&handle.spec().access, path, &response)
}

/// Tells the journal, for other replicas, and for when it has ended.
async fn tell(app: &App, handle: &Handle, key: Key) {
    let (spec, journal) = (handle.spec(), &app.shared.journal);
    loop {
        match journal.claim(key.0, spec.id, steady_now()).await {
            Ok(Claim::Won) => return,
            // Another answer of the same name, or somebody who only looked. The newest is the one that is meant.
            Ok(Claim::Taken { id: earlier, .. }) => {
                if journal.release(key.0, earlier).await.is_ok() {
                    continue;
                }
            }
            Err(_) => {}
        }
        if handle.head() == Head::Ended {
            tracing::debug!(stream_id = %spec.id, "a response cannot be found by its own id");
            return;
        }
        sleep(AGAIN).await;
    }
}

/// What is known here of the responses that run here, whatever the journal says.
#[derive(Debug, Default)]
pub(crate) struct Learning {
    /// The generations whose response is not known yet. A client that has read its id may be back before it was learnt.
    nameless: Mutex<HashMap<StreamId, Nameless>>,
    named: Mutex<HashMap<[u8; 32], StreamId>>,
}

#[derive(Debug)]
struct Nameless {
    handle: Arc<Handle>,
    named: Arc<SetOnce<()>>,
}

impl Learning {
    /// Waits until what this caller may have read was learnt.
    async fn caught_up(&self, access: &Access) {
        let due: Vec<_> = self
            .nameless()
            .values()
            .filter(|one| access.matches(&one.handle.spec().access.digest()))
            .filter(|one| one.handle.window().received() > Seq::FIRST)
            .map(|one| Arc::clone(&one.named))
            .collect();
        for named in due {
            named.wait().await;
        }
    }

    /// The generation that runs here and is found under this key.
    fn here(&self, key: Key, running: &Registry) -> Option<StreamId> {
        let stream = *self.named().get(&key.0)?;
        running.find(stream).map(|_| stream)
    }

    /// Of several of one name the newest is meant.
    fn keep(&self, key: Key, stream: StreamId, running: &Registry) {
        let mut named = self.named();
        // What has ended is let go of now and then, so that there are never many more of them than run.
        if named.len() > MOST_ENDED + 2 * running.len() {
            named.retain(|_, stream| running.find(*stream).is_some());
        }
        named.insert(key.0, stream);
    }

    fn nameless(&self) -> MutexGuard<'_, HashMap<StreamId, Nameless>> {
        self.nameless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self) -> MutexGuard<'_, HashMap<[u8; 32], StreamId>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, until it is known or nobody learns it any more.
struct Learner {
    app: Arc<App>,
    id: StreamId,
}

impl Learner {
    fn new(app: Arc<App>, handle: &Arc<Handle>) -> Self {
        let id = handle.spec().id;
        let nameless = Nameless {
            handle: Arc::clone(handle),
            named: Arc::default(),
        };
        app.learning.nameless().insert(id, nameless);
        Self { app, id }
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        if let Some(nameless) = self.app.learning.nameless().remove(&self.id) {
            // Nobody else sets it.
            let _ = nameless.named.set(());
        }
    }
}

/// The id of the response, from the first event that has it.
pub(crate) async fn first_id(window: &Arc<Window>) -> Option<String> {
    let view = View {
        ids: false,
        control: false,
    };
    let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
    let mut looked = 0;
    while looked < OPENING {
        // One event at a time: the others are nobody's business.
        let Step::Run { bytes, .. } = reader.next(1).await else {
            return None;
        };
        let mut rest = &bytes[..];
        let max_event = bytes.len();
        if let Ok(Some(event)) = Decoder::new(Limits { max_event }).decode(&mut rest) {
            if let Some(id) = id_of(&event) {
                return Some(id);
            }
        }
        looked += 1;
    }
    None
}

pub(crate) fn id_of(event: &Event<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Opening {
        response: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let opening: Opening = serde_json::from_str(&event.data()).ok()?;
    Some(opening.response.id)
}
