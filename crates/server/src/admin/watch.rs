//! What operators follow: the lifecycle feed, and where everything stands at one moment.

use std::sync::Arc;
use std::time::SystemTime;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use serde::Serialize;
use streamweld_dialect::Dialect;
use streamweld_generation::{Attached, Durability, Head, timestamp};
use streamweld_journal::{Reader, View};

use super::backends::{self, Backend};
use crate::app::App;
use crate::attach::{self, DataCursor, Readable};
use crate::body::Body;
use crate::error::{Error, ErrorCode};
use crate::io::Breaker;
use crate::state::newest_first;
use crate::stream_body::{Manner, StreamBody};
use crate::{feed, streams};

/// The feed, from where the follower was, or from now on.
pub(super) fn watch(
    app: &App,
    headers: &HeaderMap,
    breaker: Breaker,
) -> Result<Response<Body>, Error> {
    let after = match attach::data_cursor(headers)? {
        DataCursor::Ours(cursor) if feed::is_held(&app.feed, cursor) => cursor.seq,
        DataCursor::Ours(_) => {
            let message = "what followed this cursor is not held any more, or was told by another process; \
                 go on from the cursor of /admin/overview";
            return Err(Error::new(ErrorCode::CursorExpired, message));
        }
        DataCursor::NotOurs => feed::now(&app.feed),
    };
    let view = View {
        ids: true,
        control: false,
    };
    let window = Arc::clone(app.feed.window());
    let attached = Attached::elsewhere(Reader::new(window, after, view), None);
    let manner = Manner {
        resumes: true,
        control: false,
        ids: true,
        plain: false,
        dialect: Dialect::Generic,
        heartbeat: app.settings().edge.heartbeat,
    };
    let body = StreamBody::new(attached, None, manner, breaker, None);
    let mut response = Response::new(Body::stream(body));
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    head.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// How many generations an overview shows.
const MOST: usize = 1000;

#[derive(Serialize)]
struct Overview {
    object: &'static str,
    /// Behind which the feed goes on from here.
    cursor: String,
    time: String,
    ready: bool,
    journal: Journal,
    running: usize,
    streams: Vec<Running>,
    backends: Vec<Backend>,
}

#[derive(Serialize)]
struct Journal {
    kind: &'static str,
    level: Option<String>,
    bytes: u64,
    total: u64,
    live: usize,
    finished: usize,
    /// The checks that are wrong (10.6).
    wrong: Vec<&'static str>,
}

/// A generation that runs here, by what costs nothing to say.
#[derive(Serialize)]
struct Running {
    stream_id: String,
    model: Option<String>,
    dialect: &'static str,
    backend: String,
    created_at: String,
    readers: usize,
    last_seq: u64,
    durability: &'static str,
    attempts: u32,
    migrations: u32,
}

/// Where everything stands now.
pub(super) fn overview(app: &App) -> Response<Body> {
    // Before what it shows, so that nothing that happens meanwhile is missed.
    let cursor = app.feed.cursor();
    let handles = app.shared.registry.all();
    let mut found: Vec<Readable> = handles
        .into_iter()
        .filter(|handle| matches!(handle.head(), Head::Streaming(_)))
        .map(Readable::here)
        .collect();
    found.sort_by(newest_first);
    let streams = found.iter().take(MOST).filter_map(Running::of).collect();
    let journal = &app.shared.journal;
    let usage = journal.usage();
    let checks = journal.checks();
    streams::json(&Overview {
        object: "streamweld.overview",
        cursor: cursor.to_string(),
        time: timestamp(SystemTime::now()),
        ready: !app.is_shutting_down(),
        journal: Journal {
            kind: journal.name(),
            level: journal.level().map(|level| level.to_string()),
            bytes: usage.bytes,
            total: app.settings().journal.total,
            live: usage.live,
            finished: usage.finished,
            wrong: checks
                .iter()
                .filter(|check| check.is_wrong)
                .map(|check| check.name)
                .collect(),
        },
        running: found.len(),
        streams,
        backends: backends::all(app),
    })
}

impl Running {
    fn of(found: &Readable) -> Option<Self> {
        let handle = found.handle.as_ref()?;
        let (spec, window) = (handle.spec(), handle.window());
        Some(Self {
            stream_id: spec.id.to_string(),
            model: handle.model().map(str::to_owned),
            dialect: spec.dialect.as_str(),
            backend: handle.backend().to_string(),
            created_at: timestamp(spec.created),
            readers: handle.readers(),
            last_seq: window.received().get(),
            durability: match handle.head() {
                Head::Streaming(Durability::Durable) if !window.is_exposed() => "durable",
                _ => "degraded",
            },
            attempts: handle.attempts(),
            migrations: handle.moves(),
        })
    }
}
