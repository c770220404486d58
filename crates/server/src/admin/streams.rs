//! What operators ask of generations: all of them, one of them, and its stop.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Response;
use serde::Serialize;
use streamweld_generation::lifecycle::By;
use streamweld_generation::steady_now;
use streamweld_generation::{Durability, Head};
use streamweld_journal::Seq;

use super::Done;
use crate::app::App;
use crate::attach::{self, Readable};
use crate::body::Body;
use crate::caller::{Caller, Entry};
use crate::error::{Error, ErrorCode};
use crate::state::{self, State, newest_first};
use crate::{query, streams};

/// How many generations a list shows, unless it is asked for more; and the most it shows.
const LIST: (usize, usize) = (100, 1000);

/// Those that are retained and pass the filters, newest first.
pub(super) async fn list(app: &App, query: Option<&str>) -> Result<Response<Body>, Error> {
    #[derive(Serialize)]
    struct List {
        object: &'static str,
        data: Vec<State>,
    }
    let limit = limit(query)?;
    let filter = Filter::read(query)?;
    let mut found: Vec<Readable> = Vec::new();
    for handle in app.shared.registry.all() {
        if handle.head() == Head::Streaming(Durability::Durable) {
            found.push(Readable::here(handle));
        }
    }
    let finished = app
        .shared
        .journal
        .finished(steady_now())
        .await
        .unwrap_or_default();
    found.extend(finished.into_iter().map(|window| Readable {
        window,
        handle: None,
        follow: None,
        entry: Entry::Own,
    }));
    found.sort_by(newest_first);
    // One that ended in between was found twice.
    found.dedup_by_key(|found| found.window.id());
    let data = found
        .iter()
        .filter(|found| filter.admits(found))
        .take(limit)
        .map(|found| State::of(app, found))
        .collect();
    Ok(streams::json(&List {
        object: "list",
        data,
    }))
}

/// One of them, wherever it runs.
pub(super) async fn show(app: &App, id: &str) -> Result<Response<Body>, Error> {
    let found = attach::find(app, streams::parse_id(id)?, &Caller::Operator).await?;
    Ok(streams::json(&State::whole(app, &found).await))
}

/// Stops one.
pub(super) async fn stop(app: &Arc<App>, id: &str) -> Result<Done, Error> {
    let (id, until) = (streams::parse_id(id)?, app.held());
    let found = attach::find_until(app, id, &Caller::Operator, Seq::ZERO, until).await?;
    let response = streams::stop_as(app, found, By::Admin, until).await?;
    Ok(Done {
        response,
        outcome: "stopped".to_owned(),
    })
}

/// What a list is asked for by.
pub(super) const FILTERS: [&str; 5] = ["status", "model", "backend", "older_than", "limit"];

/// Which generations a list shows. What is asked for by name is looked at before anything is read of an answer.
#[derive(Debug, Default)]
struct Filter {
    status: Option<String>,
    model: Option<String>,
    backend: Option<String>,
    /// It began before this.
    before: Option<SystemTime>,
}

impl Filter {
    fn read(query: Option<&str>) -> Result<Self, Error> {
        let text = |name| -> Result<Option<String>, Error> {
            query::first(query, name)
                .map(|value| String::from_utf8(value.into_owned()))
                .transpose()
                .map_err(|_| bad(&format!("{name} is no UTF-8")))
        };
        let status = text("status")?;
        if let Some(status) = &status {
            if !["streaming", "done", "error", "stopped"].contains(&status.as_str()) {
                return Err(bad("status is one of streaming, done, error, stopped"));
            }
        }
        let before = text("older_than")?
            .map(|age| {
                let age = duration(&age)?;
                SystemTime::now().checked_sub(age)
            })
            .map(|before| {
                before.ok_or_else(|| bad("older_than is a duration such as 90s, 10m or 2h"))
            })
            .transpose()?;
        Ok(Self {
            status,
            model: text("model")?,
            backend: text("backend")?,
            before,
        })
    }

    fn admits(&self, found: &Readable) -> bool {
        let status = || match found.window.terminal() {
            Some(terminal) => terminal.kind.as_str(),
            None => "streaming",
        };
        if self
            .status
            .as_deref()
            .is_some_and(|wanted| wanted != status())
        {
            return false;
        }
        if self.model.is_none() && self.backend.is_none() && self.before.is_none() {
            return true;
        }
        let open = found.open();
        let model = open.as_ref().and_then(|open| open.model.as_deref());
        let is_model = self.model.is_none() || self.model.as_deref() == model;
        let is_at = |wanted: &String| {
            let backends = state::backends(found, open.as_ref());
            backends.last() == Some(wanted)
        };
        let began = || humantime::parse_rfc3339(&open.as_ref()?.time).ok();
        is_model
            && self.backend.as_ref().is_none_or(is_at)
            && self
                .before
                .is_none_or(|before| began().is_some_and(|began| began <= before))
    }
}

fn limit(query: Option<&str>) -> Result<usize, Error> {
    let Some(text) = query::first(query, "limit") else {
        return Ok(LIST.0);
    };
    std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|limit| (1..=LIST.1).contains(limit))
        .ok_or_else(|| bad("limit is a number from 1 to 1000"))
}

/// A duration as the command line takes it.
pub(super) fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok()
}

pub(super) fn bad(message: &str) -> Error {
    Error::new(ErrorCode::InvalidParameter, message)
}
