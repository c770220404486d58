//! `/v1/streams/{id}`, `…/events` and `…/stop`.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use serde::Serialize;
use streamweld_generation::lifecycle::By;
use streamweld_generation::{Whole, whole_transcript};
use streamweld_journal::{Closed, Cursor, Epoch, Kind, Left, Seq, StreamId, parse_seq};
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::attach::{self, Readable, Reading, invalid_cursor, unreadable};
use crate::body::Body;
use crate::caller::{Caller, Entry};
use crate::capability::{Grant, Scope};
use crate::counted::Counted;
use crate::error::{Error, ErrorCode};
use crate::io::Breaker;
use crate::sessions::{Asked, Return, Session, Verdict};
use crate::state::{self, State, TerminalState};
use crate::traced::Traced;
use crate::{elsewhere, head, query};

/// Replays and follows a generation.
pub(crate) async fn events(
    app: &App,
    id: &str,
    method: &Method,
    query: Option<&str>,
    headers: &HeaderMap,
    breaker: Breaker,
    request_id: &str,
) -> Result<Response<Body>, Error> {
    only(method, "GET")?;
    let id = parse_id(id)?;
    let told = told(headers, query, true)?;
    let resumes = !is_native(query)?;
    let seen = after_events(query)?;
    let cursor = cursor(id, query, headers);
    let accept: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    let session = Session::of(&Asked {
        query,
        accept: &accept,
        is_told: told.session,
        is_bounded: cursor
            .as_ref()
            .is_ok_and(|place| !place.left.is_unbounded()),
    })?;
    let after = match (&cursor, &session) {
        (Ok(place), _) if place.is_given => place.cursor.seq,
        (_, Some(session)) => session.known_start(),
        _ => Seq::ZERO,
    };
    let access = app.access(headers);
    let grant = Grant::new(access, Scope::wanted(headers)?);
    let caller = Caller::of(access, query, Scope::Read);
    let found = attach::find_after(app, id, &caller, after).await?;
    let mut reading = Reading {
        any_epoch: cursor.as_ref().is_ok_and(|place| place.any_epoch),
        control: told.control,
        resumes,
        grant: (found.entry == Entry::Own).then_some(grant),
        breaker,
        traced: Traced::of(app, headers),
    };
    let pages = found.cross_origin();
    if let (Some(session), Ok(place)) = (session, &cursor) {
        // What a client comes back with counts before what it asked for at first.
        let back = (place.is_given || !session.has_start()).then_some(Return {
            cursor: place.cursor,
            left: place.left,
            any_epoch: place.any_epoch,
        });
        reading.traced.reads(app, &found.window, place.cursor);
        let resume = reading.traced.resume.clone();
        let answer = session.read(app, found, back, reading, request_id);
        return pages.share(Traced::until(resume, answer).await);
    }
    let answer = match (cursor, seen) {
        (Ok(place), None) => attach::read(app, found, place.cursor, reading).await,
        (
            Ok(Place {
                is_given: false, ..
            }),
            Some(seen),
        ) => attach::read_counted(app, found, Counted::Events(seen), reading).await,
        (Ok(_), Some(_)) => {
            let message = "`after_events` and a cursor say where a reader stands; send one of them";
            Err(Error::new(ErrorCode::InvalidParameter, message).about(id))
        }
        (Err(error), _) => Err(error),
    };
    pages.share(answer)
}

/// Shows what a generation is and where it stands.
pub(crate) async fn state(
    app: &App,
    id: &str,
    method: &Method,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    only(method, "GET")?;
    let (id, access) = (parse_id(id)?, app.access(headers));
    let grant = Grant::new(access, Scope::wanted(headers)?);
    let caller = Caller::of(access, query, Scope::Read);
    let found = attach::find(app, id, &caller).await?;
    let mut response = json(&State::whole(app, &found).await);
    if found.entry == Entry::Own {
        grant.show(&app.settings().edge.resume_urls, id, response.headers_mut());
    }
    found.cross_origin().share(Ok(response))
}

/// Stops a generation for its client.
pub(crate) async fn stop(
    app: &Arc<App>,
    id: &str,
    method: &Method,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    only(method, "POST")?;
    let (id, until) = (parse_id(id)?, app.held());
    let caller = Caller::of(app.access(headers), query, Scope::ReadAndStop);
    let found = attach::find_until(app, id, &caller, Seq::ZERO, until).await?;
    let pages = found.cross_origin();
    pages.share(stop_as(app, found, By::Client, until).await)
}

/// Stops a generation. Answers once the terminal is committed, or at `until`: the stop stays in force then.
pub(crate) async fn stop_as(
    app: &Arc<App>,
    found: Readable,
    by: By,
    until: Instant,
) -> Result<Response<Body>, Error> {
    #[derive(Serialize)]
    struct Stopped {
        object: &'static str,
        stream_id: String,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        usage: Option<state::Usage>,
        terminal: Option<TerminalState>,
    }
    let id = found.window.id();
    if let Some(handle) = &found.handle {
        handle.stop(by);
        let ended = timeout_at(until, handle.ended()).await;
        ended.map_err(|_| elsewhere::unseen_end(id))?;
    } else if found.window.terminal().is_none() {
        elsewhere::stop(app, &found, by, until).await?;
    }
    match found.window.terminal() {
        Some(terminal) if terminal.kind == Kind::Stopped => {
            let whole = whole_transcript(&found.window, found.dialect());
            let whole = timeout_at(until, whole).await;
            let Whole { transcript, .. } = whole.map_err(|_| elsewhere::out_of_reach(id))?;
            Ok(json(&Stopped {
                object: "streamweld.stop",
                stream_id: id.to_string(),
                status: "stopped",
                text: (by == By::Client).then(|| transcript.text().to_owned()),
                usage: transcript.usage().map(Into::into),
                terminal: TerminalState::of(&found.window),
            }))
        }
        Some(terminal) => {
            let message = format!("it had already ended as {}", terminal.kind.as_str());
            Err(Error::new(ErrorCode::AlreadyTerminal, message).about(id))
        }
        // Another replica has it now; asked again, the stop is passed on.
        None if found.window.closed() == Some(Closed::Fenced) => Err(elsewhere::owner_lost(id)),
        None if found.window.closed() == Some(Closed::Incomplete) => {
            let message = "it was stopped, but the journal has lost it: nothing of it can be read";
            Err(Error::new(ErrorCode::StreamNotFound, message).about(id))
        }
        None => Err(Error::new(
            ErrorCode::InternalError,
            "the stream was closed without a terminal",
        )
        .about(id)),
    }
}

/// A stream id from a path.
pub(crate) fn parse_id(id: &str) -> Result<StreamId, Error> {
    StreamId::parse(id).map_err(|_| {
        Error::new(
            ErrorCode::InvalidStreamId,
            "a stream id is a ULID in lowercase: 26 characters of 0-9 and a-z without i, l, o, u",
        )
    })
}

/// What says how a session went, on every answer about events (protocol.md 6.9.2).
pub(crate) fn with_verdict(mut response: Response<Body>) -> Response<Body> {
    let verdict = match response.status() {
        StatusCode::NO_CONTENT => Verdict::Complete,
        _ => Verdict::Continue,
    };
    let value = HeaderValue::from_static(verdict.as_str());
    response.headers_mut().entry(head::VERDICT).or_insert(value);
    response
}

/// The same for what is not retained.
pub(crate) fn refusal_with_verdict(error: Error) -> Error {
    let verdict = match error.code {
        ErrorCode::CursorExpired => Verdict::Gap,
        ErrorCode::StreamExpired => Verdict::Expired,
        _ => return error,
    };
    error.with_field(head::VERDICT, HeaderValue::from_static(verdict.as_str()))
}

/// What a reader is told beside events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    /// Control events.
    control: bool,
    /// What is to be said of its session.
    session: bool,
}

/// Whether the request asks for control events (protocol.md 5.1). On the data path the query may be the backend's.
pub(crate) fn control(
    headers: &HeaderMap,
    query: Option<&str>,
    query_is_ours: bool,
) -> Result<bool, Error> {
    let told = told(headers, query, query_is_ours)?;
    if told.session {
        let message = "the only events to ask for here are `control`";
        return Err(Error::new(ErrorCode::InvalidParameter, message));
    }
    Ok(told.control)
}

fn told(headers: &HeaderMap, query: Option<&str>, query_is_ours: bool) -> Result<Told, Error> {
    let from_query = query::first(query, "events");
    let values = headers
        .get_all(head::EVENTS)
        .iter()
        .map(HeaderValue::as_bytes);
    let values = values.chain(
        from_query
            .as_deref()
            .filter(|value| query_is_ours || *value == b"control"),
    );
    let mut told = Told::default();
    for value in values.flat_map(|value| value.split(|&byte| byte == b',')) {
        match value {
            b"control" => told.control = true,
            b"session" => told.session = true,
            _ => {
                let message = "the events to ask for are `control`, `session`, or both with a comma between them";
                return Err(Error::new(ErrorCode::InvalidParameter, message));
            }
        }
    }
    Ok(told)
}

/// Where a reader says it stands.
struct Place {
    cursor: Cursor,
    /// What a session may still be given.
    left: Left,
    /// It has named no epoch.
    any_epoch: bool,
    /// It has said so; else it is the start.
    is_given: bool,
}

fn cursor(id: StreamId, query: Option<&str>, headers: &HeaderMap) -> Result<Place, Error> {
    let at = |seq, is_given| Place {
        cursor: Cursor {
            stream: id,
            seq,
            epoch: Epoch::FIRST,
        },
        left: Left::default(),
        any_epoch: true,
        is_given,
    };
    let mut fields = headers.get_all(head::LAST_EVENT_ID).iter();
    let from_header = fields.next().map(HeaderValue::as_bytes);
    if fields.next().is_some() {
        return Err(invalid_cursor("there are several Last-Event-ID fields").about(id));
    }
    let from_query =
        query::first(query, "last_event_id").or_else(|| query::first(query, "lastEventId"));
    let Some(text) = from_header.or(from_query.as_deref()) else {
        return Ok(at(Seq::ZERO, false));
    };
    if let Some(seq) = parse_seq(text) {
        return Ok(at(seq, true));
    }
    let (cursor, left) = Cursor::parse_with_left(text).map_err(|error| {
        unreadable(
            error,
            "expected <stream id>:<seq> or <seq>, with ~<epoch> behind it where the id had it",
        )
        .about(id)
    })?;
    if cursor.stream != id {
        let message = "the cursor belongs to another stream than the path names";
        return Err(Error::new(ErrorCode::CursorMismatch, message).about(id));
    }
    Ok(Place {
        cursor,
        left,
        any_epoch: false,
        is_given: true,
    })
}

/// Whether the reader is to be taken for a client of its dialect that knows nothing of us (protocol.md 6.1).
fn is_native(query: Option<&str>) -> Result<bool, Error> {
    match query::first(query, "form").as_deref() {
        None => Ok(false),
        Some(b"native") => Ok(true),
        Some(_) => Err(Error::new(
            ErrorCode::InvalidParameter,
            "the only form to ask for is `native`",
        )),
    }
}

/// How many events the reader has seen already, where that is how it says where it stands.
fn after_events(query: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(text) = query::first(query, "after_events") else {
        return Ok(None);
    };
    let count = parse_seq(&text).map(Seq::get).ok_or_else(|| {
        let message = "`after_events` is the number of events that were seen: digits only";
        Error::new(ErrorCode::InvalidParameter, message)
    })?;
    Ok(Some(count))
}

fn only(method: &Method, allowed: &'static str) -> Result<(), Error> {
    if method.as_str() == allowed {
        Ok(())
    } else {
        Err(Error::method_not_allowed(allowed))
    }
}

/// A JSON answer.
pub(crate) fn json(value: &impl Serialize) -> Response<Body> {
    let bytes = serde_json::to_vec(value).expect("plain structs serialise");
    let mut response = Response::new(Body::full(Bytes::from(bytes)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
