//! What a request asks of a session: where it starts, how far it goes, and in which form (protocol.md 6.9).
//!
//! Pure. Everything that a query can say wrong is refused here, before anything is looked up.

use std::num::NonZero;
use std::time::{Duration, SystemTime};

use streamweld_journal::{Left, parse_seq};

use super::accept;
use super::when;
use crate::query;

/// A session as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Where it starts, unless its client comes back with a cursor.
    pub(super) start: Start,
    /// A start that is not there yet is the end of what is there.
    pub(super) clamp: bool,
    /// What it may be given. A cursor that says what is left counts instead.
    pub(super) left: Left,
    pub(super) until: Option<SystemTime>,
    /// The longest time without an entry.
    pub(super) wait: Option<Duration>,
    pub(super) follow: Follow,
    /// The most entries of history.
    pub(super) max_replay: Option<NonZero<u64>>,
    pub(super) on_gap: OnGap,
    pub(super) form: Form,
    pub(super) payload: Payload,
    /// It sees what is told of the session.
    pub(super) is_told: bool,
}

/// Where a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Behind a cursor; the first entry where there is none.
    Cursor,
    /// With this entry.
    Seq(NonZero<u64>),
    /// With the first entry that is no older.
    Since(SystemTime),
    /// So many entries before the end.
    Tail(u64),
}

/// Whether it goes on behind what there was when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    Live,
    History,
}

/// What becomes of a session whose start is not retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnGap {
    Fail,
    /// It starts with the earliest entry, and says so.
    Continue,
}

/// How its entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One event each.
    Events,
    /// As many as are ready in one event.
    Batch,
    /// One answer.
    Json,
    /// One line each.
    Lines,
}

/// How the data of an entry is written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Text,
    Base64,
}

/// What a request says about how it wants to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) query: Option<&'a str>,
    /// The values of its `Accept` fields.
    pub(crate) accept: &'a [&'a [u8]],
    /// It wants the events of the session, by its field or its query.
    pub(crate) is_told: bool,
    /// Its cursor says what is left.
    pub(crate) is_bounded: bool,
}

/// Why it is refused, in words for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) String);

impl Plan {
    /// Reads what is asked for. `None`: nothing of a session, so the answer is what it was without them.
    ///
    /// # Errors
    /// A value that its parameter does not have, or parameters that do not go together.
    pub(super) fn of(asked: &Asked<'_>) -> Result<Option<Self>, Refused> {
        let form = match value(asked.query, "format", format)? {
            Some(form) => form,
            None => accept::choose(asked.accept),
        };
        let is_session = NAMES.iter().any(|name| has(asked.query, name))
            || form != Form::Events
            || asked.is_told
            || asked.is_bounded;
        if !is_session {
            return Ok(None);
        }
        let plan = Self {
            start: start(asked.query)?,
            clamp: value(asked.query, "clamp", flag)?.unwrap_or(false),
            left: Left {
                count: value(asked.query, "count", positive)?.map(NonZero::get),
                bytes: value(asked.query, "bytes", positive)?.map(NonZero::get),
            },
            until: value(asked.query, "until", time)?,
            wait: value(asked.query, "wait", wait)?,
            follow: match value(asked.query, "live", flag)? {
                Some(false) => Follow::History,
                Some(true) | None => Follow::Live,
            },
            max_replay: value(asked.query, "max_replay", positive)?,
            on_gap: value(asked.query, "on_gap", on_gap)?.unwrap_or(OnGap::Fail),
            form,
            payload: value(asked.query, "payload", payload)?.unwrap_or(Payload::Text),
            // Whoever reads one of these knows us.
            is_told: asked.is_told || form != Form::Events,
        };
        plan.check(asked.query)?;
        Ok(Some(plan))
    }

    /// Whether it has to be known where the end is now, wherever it is read. What is followed is given everything sooner
    /// or later, and may be read where nobody can say so.
    pub(super) fn needs_the_end(&self) -> bool {
        self.start != Start::Cursor
            || self.follow == Follow::History
            || self.form == Form::Json
            || self.max_replay.is_some()
    }

    /// Whether what was asked for goes together.
    fn check(&self, query: Option<&str>) -> Result<(), Refused> {
        for name in ["after_events", "form"] {
            if has(query, name) {
                return refuse(format!(
                    "`{name}` does not go with the parameters of a session"
                ));
            }
        }
        if self.clamp && !matches!(self.start, Start::Seq(_) | Start::Tail(_)) {
            return refuse("`clamp` goes with `seq` or `tail` only");
        }
        if self.follow == Follow::History && self.wait.is_some() {
            return refuse("`wait` is for what is live; leave it out, or `live=false`");
        }
        if self.form == Form::Json && self.wait.is_some_and(|wait| wait > LONGEST_POLL) {
            return refuse(
                "one answer is waited for for 60s at most: give `wait` less, or ask for another form",
            );
        }
        if has(query, "payload") && self.form == Form::Events {
            return refuse(
                "`payload` is for entries in JSON: ask for `format=json`, `ndjson` or `batch`",
            );
        }
        Ok(())
    }
}

/// The start that a query names.
fn start(query: Option<&str>) -> Result<Start, Refused> {
    let cursor = ["last_event_id", "lastEventId"]
        .iter()
        .any(|name| has(query, name))
        .then_some(Start::Cursor);
    let starts = [
        cursor,
        value(query, "seq", |text| {
            positive(text).map_err(|_| "the sequence to begin with, 1 or more")
        })?
        .map(Start::Seq),
        value(query, "since", time)?.map(Start::Since),
        value(query, "tail", number)?.map(Start::Tail),
    ];
    let mut given = starts.into_iter().flatten();
    let start = given.next().unwrap_or(Start::Cursor);
    if given.next().is_some() {
        return refuse(
            "a cursor, `seq`, `since` and `tail` each say where to start; send one of them",
        );
    }
    Ok(start)
}

/// A parameter, read. An error of `read` says what it has to be.
fn value<T>(
    query: Option<&str>,
    name: &str,
    read: impl Fn(&[u8]) -> Result<T, &'static str>,
) -> Result<Option<T>, Refused> {
    let Some(text) = query::first(query, name) else {
        return Ok(None);
    };
    match read(&text) {
        Ok(value) => Ok(Some(value)),
        Err(expected) => refuse(format!("`{name}` has to be {expected}")),
    }
}

fn has(query: Option<&str>, name: &str) -> bool {
    query::first(query, name).is_some()
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(why.into()))
}

fn number(text: &[u8]) -> Result<u64, &'static str> {
    let number = parse_seq(text).ok_or("a number: digits only, without a leading zero")?;
    Ok(number.get())
}

fn positive(text: &[u8]) -> Result<NonZero<u64>, &'static str> {
    number(text)
        .ok()
        .and_then(NonZero::new)
        .ok_or("a number, 1 or more: digits only, without a leading zero")
}

fn flag(text: &[u8]) -> Result<bool, &'static str> {
    match text {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err("`true` or `false`"),
    }
}

fn time(text: &[u8]) -> Result<SystemTime, &'static str> {
    when::parse(text).ok_or(
        "a time such as 2026-11-30T12:00:00Z, or seconds (up to 11 digits) or milliseconds since 1970",
    )
}

/// A number of seconds, or one with its unit.
fn wait(text: &[u8]) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "seconds, or a time such as `500ms`, `15s` or `2m`: an hour at most";
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(count);
    let number = parse_seq(number).ok_or(EXPECTED)?.get();
    let wait = match unit {
        b"ms" => Duration::from_millis(number),
        b"" | b"s" => Duration::from_secs(number),
        b"m" => Duration::from_secs(number.checked_mul(60).ok_or(EXPECTED)?),
        b"h" => Duration::from_secs(number.checked_mul(3600).ok_or(EXPECTED)?),
        _ => return Err(EXPECTED),
    };
    if wait > LONGEST_WAIT {
        return Err(EXPECTED);
    }
    Ok(wait)
}

fn on_gap(text: &[u8]) -> Result<OnGap, &'static str> {
    match text {
        b"fail" => Ok(OnGap::Fail),
        b"continue" => Ok(OnGap::Continue),
        _ => Err("`fail` or `continue`"),
    }
}

fn format(text: &[u8]) -> Result<Form, &'static str> {
    match text {
        b"sse" => Ok(Form::Events),
        b"batch" => Ok(Form::Batch),
        b"json" => Ok(Form::Json),
        b"ndjson" => Ok(Form::Lines),
        _ => Err("`sse`, `batch`, `json` or `ndjson`"),
    }
}

fn payload(text: &[u8]) -> Result<Payload, &'static str> {
    match text {
        b"text" => Ok(Payload::Text),
        b"base64" => Ok(Payload::Base64),
        _ => Err("`text` or `base64`"),
    }
}

/// The parameters that make a request one for a session.
const NAMES: [&str; 13] = [
    "bytes",
    "clamp",
    "count",
    "format",
    "live",
    "max_replay",
    "on_gap",
    "payload",
    "seq",
    "since",
    "tail",
    "until",
    "wait",
];
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// Nothing can be sent meanwhile that would keep the connection alive.
const LONGEST_POLL: Duration = Duration::from_secs(60);

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
