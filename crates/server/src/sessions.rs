//! Read sessions: one journal, read from where, as far and in the form that was asked for (protocol.md 6.9).
//!
//! ```text
//!  query ──> plan ──> start ──> body ──> forms ──> socket
//!           (pure)   (finds)   (reads)  (writes)
//! ```
//!
//! A session is a plan over a reader. What is given, and when it ends, is decided in one place for every form, and a form
//! only writes. A request that asks for nothing of this never comes here.

mod accept;
mod body;
mod bounds;
mod forms;
mod plan;
mod start;
mod told;
mod when;

use std::time::SystemTime;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use streamweld_generation::{Durability, timestamp};
use streamweld_journal::{Closed, Cursor, Left, Reader, Seq};
use tokio::time::Instant;

use self::body::Begin;
use self::bounds::Bounds;
use self::forms::Encoder;
use self::plan::{Form, Plan, Start};
use self::start::Started;
use self::told::Opening;
use crate::app::App;
use crate::attach::{self, Readable, Reading};
use crate::body::Body;
use crate::error::{Error, ErrorCode};
use crate::head;
use crate::read_on::read_on;

pub(crate) use self::body::SessionBody;
pub(crate) use self::plan::Asked;
pub(crate) use self::told::Verdict;

/// A session that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Session(Plan);

/// Where a client comes back from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Return {
    pub(crate) cursor: Cursor,
    pub(crate) left: Left,
    pub(crate) any_epoch: bool,
}

impl Session {
    /// What a request asks for. `None`: nothing of a session.
    ///
    /// # Errors
    /// It cannot be meant.
    pub(crate) fn of(asked: &Asked<'_>) -> Result<Option<Self>, Error> {
        match Plan::of(asked) {
            Ok(plan) => Ok(plan.map(Self)),
            Err(plan::Refused(why)) => Err(Error::new(ErrorCode::InvalidParameter, why)),
        }
    }

    /// The entry behind which it is known to start before anything was looked up.
    pub(crate) fn known_start(&self) -> Seq {
        match self.0.start {
            Start::Seq(seq) => Seq::new(seq.get() - 1),
            Start::Cursor | Start::Since(_) | Start::Tail(_) => Seq::ZERO,
        }
    }

    /// Whether its query says where it starts, in place of a cursor.
    pub(crate) fn has_start(&self) -> bool {
        self.0.start != Start::Cursor
    }

    /// Answers it. The caller [shares](crate::cross_origin::CrossOrigin::share) the answer with pages.
    pub(crate) async fn read(
        self,
        app: &App,
        found: Readable,
        back: Option<Return>,
        reading: Reading,
        request_id: &str,
    ) -> Result<Response<Body>, Error> {
        let plan = self.0;
        let left = match back {
            Some(back) if !back.left.is_unbounded() => back.left,
            _ => plan.left,
        };
        if left.is_nothing() {
            return Ok(nothing_left(&reading));
        }
        let started = start::find(app, &found, &plan, back, &reading).await?;
        let window = &found.window;
        let mut verdict = started.verdict;
        if !started.reader.has_more_to_show() {
            if window.closed() == Some(Closed::Incomplete) && window.terminal().is_none() {
                return Err(attach::expired(window));
            }
            if window
                .terminal()
                .is_some_and(|it| is_behind(&started.reader, it.seq, &plan))
            {
                if matches!(plan.form, Form::Events | Form::Batch) {
                    return Ok(nothing_left(&reading));
                }
                verdict = Verdict::Complete;
            }
        }
        let started = Started { verdict, ..started };
        Ok(respond(
            app, found, plan, left, started, reading, request_id,
        ))
    }
}

/// Whether there is nothing that a session would be shown of an end.
fn is_behind(reader: &Reader, terminal: Seq, plan: &Plan) -> bool {
    reader.cursor() >= terminal
        || !plan.is_told
        || plan.form == Form::Json
        || plan.form == Form::Lines
}

fn nothing_left(reading: &Reading) -> Response<Body> {
    if let Some(traced) = &reading.traced.resume {
        traced.is_whole();
    }
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
        .headers_mut()
        .insert(head::VERDICT, HeaderValue::from_static("complete"));
    response
}

fn respond(
    app: &App,
    found: Readable,
    plan: Plan,
    left: Left,
    started: Started,
    reading: Reading,
    request_id: &str,
) -> Response<Body> {
    let Started {
        reader,
        place,
        verdict,
    } = started;
    app.metrics.readers.inc();
    let window = &found.window;
    let marks = window.marks();
    let max_age = app.settings().edge.session_max_age;
    let manner = reading.manner(app, found.dialect(), Durability::Durable);
    let opening = Opening {
        stream_id: window.id().to_string(),
        verdict: verdict.as_str(),
        from: reader.cursor().next().get(),
        earliest: marks.earliest.get(),
        last: marks.committed.get(),
        last_time: window.last_time().map(timestamp),
        request_id: request_id.to_owned(),
        max_age_ms: max_age.and_then(|age| u64::try_from(age.as_millis()).ok()),
    };
    let id = window.id();
    let begin = Begin {
        attached: attach::hold(app, found, reader),
        read_on: read_on(&app.me, Durability::Durable),
        manner,
        breaker: reading.breaker,
        traced: reading.traced.resume,
        encoder: Encoder::new(plan.form, plan.payload),
        form: plan.form,
        is_told: plan.is_told,
        opening,
        place,
        history: marks.committed,
        follow: plan.follow,
        bounds: Bounds {
            left,
            until: plan.until,
        },
        until: plan.until.map(instant),
        max_age,
        wait: match plan.form {
            Form::Json => Some(plan.wait.unwrap_or_default()),
            Form::Events | Form::Batch | Form::Lines => plan.wait,
        },
        max_replay: plan.max_replay.map(std::num::NonZero::get),
    };
    let mut response = Response::new(Body::Session(Box::new(SessionBody::new(begin))));
    let level = app.shared.journal.level();
    let mut headers = HeaderMap::new();
    let media = match plan.form {
        Form::Events | Form::Batch => "text/event-stream",
        Form::Json => "application/json",
        Form::Lines => "application/x-ndjson",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(head::VERDICT, HeaderValue::from_static(verdict.as_str()));
    let mut headers = head::durable(headers, id, Durability::Durable, level);
    if let Some(grant) = reading.grant {
        grant.show(&app.settings().edge.resume_urls, id, &mut headers);
    }
    *response.headers_mut() = headers;
    response
}

/// When a time of day is, as far as that can be said now.
fn instant(time: SystemTime) -> Instant {
    let now = Instant::now();
    match time.duration_since(SystemTime::now()) {
        Ok(ahead) => now.checked_add(ahead).unwrap_or(now),
        Err(_) => now,
    }
}
