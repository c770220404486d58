//! What operators ask of backends, and draining them (protocol.md 12.2).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Response;
use serde::Serialize;
use streamweld_dialect::{Dialect, Method};
use streamweld_generation::timestamp;
use streamweld_upstream::examine::Examination;
use streamweld_upstream::fleet::{MemberSnapshot, MemberState};
use tokio::time::Instant;

use super::Done;
use super::drain::{self, Drained, Remaining, Stands};
use super::streams::{bad, duration};
use crate::app::App;
use crate::body::Body;
use crate::error::{Error, ErrorCode};
use crate::{query, streams};

/// How long a drain waits, unless it is said; and the longest.
const WAIT: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

#[derive(Serialize)]
pub(super) struct Backend {
    object: &'static str,
    name: String,
    engine: &'static str,
    family: &'static str,
    group: Option<String>,
    migration: &'static str,
    weight: u32,
    state: &'static str,
    since: String,
    in_flight: usize,
    generations: usize,
    leaving: bool,
    last_failure: Option<Failure>,
    examined: Option<Examined>,
}

/// What was found out about it.
#[derive(Serialize)]
struct Examined {
    engine: Option<&'static str>,
    settled: bool,
    chat: Vec<&'static str>,
    completions: Vec<&'static str>,
    messages: Vec<&'static str>,
    context: Option<u64>,
}

#[derive(Serialize)]
struct Failure {
    class: &'static str,
    at: String,
}

/// All of them.
pub(super) fn list(app: &App) -> Response<Body> {
    #[derive(Serialize)]
    struct List {
        object: &'static str,
        data: Vec<Backend>,
    }
    let object = "list";
    streams::json(&List {
        object,
        data: all(app),
    })
}

/// One of them.
pub(super) fn show(app: &App, name: &str) -> Result<Response<Body>, Error> {
    Ok(streams::json(&one(app, &named(name))?))
}

/// Empties one.
pub(super) async fn drain(app: &Arc<App>, name: &str, query: Option<&str>) -> Result<Done, Error> {
    #[derive(Serialize)]
    struct Answer<'a> {
        object: &'static str,
        backend: &'a str,
        drained: bool,
        moved: usize,
        left: usize,
        ended: usize,
        remaining: Vec<Remaining>,
        other_requests: usize,
        warning: Option<&'static str>,
    }
    let name = named(name);
    let until = Instant::now() + wait(query)?;
    let Drained {
        stands,
        other_requests,
        undrained,
    } = drain::drain(app, &name, until)
        .await
        .map_err(|_| unknown())?;
    let is_up = |other: &MemberSnapshot| other.name != name && other.state == MemberState::Up;
    let warning = if undrained {
        Some("it was taken back meanwhile: new attempts go there again")
    } else if app.backends.fleet.snapshot().iter().any(is_up) {
        None
    } else {
        Some("no other backend is up: new requests go to one that may be away, or are refused")
    };
    let Stands {
        moved,
        left,
        ended,
        remaining,
    } = stands;
    let drained = !undrained && remaining.is_empty() && other_requests == 0;
    let outcome = format!(
        "drained: {drained}, moved: {moved}, left: {left}, ended: {ended}, remaining: {}, other requests: {other_requests}",
        remaining.len()
    );
    let response = streams::json(&Answer {
        object: "streamweld.drain",
        backend: &name,
        drained,
        moved,
        left,
        ended,
        remaining,
        other_requests,
        warning,
    });
    Ok(Done { response, outcome })
}

/// Takes a drain back.
pub(super) fn undrain(app: &App, name: &str) -> Result<Done, Error> {
    let name = named(name);
    drain::undrain(app, &name).map_err(|_| unknown())?;
    let backend = one(app, &name)?;
    Ok(Done {
        outcome: format!("it is {}", backend.state),
        response: streams::json(&backend),
    })
}

pub(super) fn all(app: &App) -> Vec<Backend> {
    let mut generations: HashMap<Arc<str>, usize> = HashMap::new();
    for handle in app.shared.registry.all() {
        *generations.entry(handle.backend()).or_default() += 1;
    }
    let members = app.backends.fleet.snapshot().into_iter();
    members
        .map(|member| {
            let generations = generations.get(member.name.as_str());
            Backend::of(app, member, generations.copied().unwrap_or(0))
        })
        .collect()
}

fn one(app: &App, name: &str) -> Result<Backend, Error> {
    let mut backends = all(app).into_iter();
    let found = backends.find(|backend| backend.name == name);
    found.ok_or_else(unknown)
}

impl Examined {
    fn of(examination: &Examination) -> Self {
        let words = |dialect| {
            let methods = examination.methods(dialect).into_iter();
            methods.map(Method::as_str).collect()
        };
        Self {
            engine: examination.identity.engine.map(|engine| engine.as_str()),
            settled: examination.settled(),
            chat: words(Dialect::OpenAiChat),
            completions: words(Dialect::OpenAiCompletions),
            messages: words(Dialect::AnthropicMessages),
            context: examination.identity.context(),
        }
    }
}

impl Backend {
    fn of(app: &App, member: MemberSnapshot, generations: usize) -> Self {
        let ago = |age| {
            let then = SystemTime::now().checked_sub(age);
            timestamp(then.unwrap_or(SystemTime::UNIX_EPOCH))
        };
        let policy = app.settings().migration.policy(member.group.as_deref());
        let examined = app.examined.now(member.id);
        Self {
            object: "streamweld.backend",
            engine: member.engine.as_str(),
            family: member.family.as_str(),
            migration: policy.as_str(),
            weight: member.weight,
            state: member.state.as_str(),
            since: ago(member.state_age),
            in_flight: member.in_flight,
            generations,
            leaving: member.leaving,
            last_failure: member.last_failure.map(|failure| Failure {
                class: failure.class.as_str(),
                at: ago(failure.age),
            }),
            examined: examined.as_deref().map(Examined::of),
            name: member.name,
            group: member.group,
        }
    }
}

/// A name from a path. One that is no text is nobody's.
fn named(segment: &str) -> String {
    String::from_utf8_lossy(&query::decode(segment)).into_owned()
}

fn unknown() -> Error {
    let message = "there is no backend of this name; GET /admin/backends lists them";
    Error::new(ErrorCode::BackendNotFound, message)
}

pub(super) fn wait(query: Option<&str>) -> Result<Duration, Error> {
    let Some(text) = query::first(query, "timeout") else {
        return Ok(WAIT.0);
    };
    std::str::from_utf8(&text)
        .ok()
        .and_then(duration)
        .filter(|wait| *wait <= WAIT.1)
        .ok_or_else(|| bad("timeout is a duration from 0s to 10m, such as 30s"))
}
