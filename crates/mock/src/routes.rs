//! Which answer a request gets.
//!
//! In this order: the script set for the path; a built-in path; else the next queued script or the
//! default one. What a request carries (`x-mock-script`, `mock.*` in the query) changes the script
//! that was found.

use std::sync::{Arc, atomic::Ordering};

use http::Method;

use crate::{
    Ask, Dialect, Raw, Request, Script,
    engine::{self, Plan, Reply},
    mock::Shared,
    plain,
};

/// An answer, decided.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A body as a whole, with the script's status, headers and timing.
    Plain {
        script: Arc<Script>,
        body: Vec<u8>,
        json: bool,
    },
    /// An event stream.
    Stream { script: Arc<Script>, ask: Box<Ask> },
    /// Exact bytes.
    Raw(Raw),
    /// Switch to the echo protocol.
    Upgrade,
}

impl Answer {
    fn json(script: Arc<Script>, body: Vec<u8>) -> Self {
        Self::Plain {
            script,
            body,
            json: true,
        }
    }

    fn status(status: u16, body: Vec<u8>) -> Self {
        Self::json(Arc::new(Script::error(status)), body)
    }
}

/// Decides.
pub(crate) fn choose(shared: &Shared, request: &Request) -> Answer {
    let query = request.target.split_once('?').map(|(_, query)| query);
    let path = request.path();
    let patch = match Script::patch_of(request.header("x-mock-script"), query) {
        Ok(patch) => patch,
        Err(error) => return refuse(&error.chain()),
    };
    let natural = Dialect::of(&request.method, path);
    let base = match shared.script_at(path) {
        Some(script) => script,
        None if patch.is_none() && natural.is_none() => match built_in(shared, request) {
            Some(answer) => return answer,
            None => match shared.script_for_any_path() {
                Some(script) => script,
                None => return Answer::status(404, plain::error(None, 404)),
            },
        },
        None => shared.next_script(),
    };
    let script = match patch {
        None => base,
        Some(patch) => match base.patched(&patch) {
            Ok(script) => Arc::new(script),
            Err(error) => return refuse(&error.chain()),
        },
    };
    perform(script, natural, request)
}

fn perform(script: Arc<Script>, natural: Option<Dialect>, request: &Request) -> Answer {
    if let Some(raw) = &script.raw {
        return Answer::Raw(raw.clone());
    }
    let dialect = script.dialect.or(natural);
    if script.is_plain() {
        let (body, json) = match &script.body {
            None => (plain::error(dialect, script.status), true),
            Some(serde_json::Value::String(text)) => (text.clone().into_bytes(), false),
            Some(value) => (value.to_string().into_bytes(), true),
        };
        let script = engine::dress(script);
        return Answer::Plain { script, body, json };
    }
    let Some(dialect) = dialect else {
        return Answer::status(404, plain::error(None, 404));
    };
    let ask = Box::new(request.ask(dialect));
    // A feed has ids unless its script says which; the generic POST has none.
    let script = match request.path() {
        "/feed" if script.upstream_ids.is_none() => Arc::new(Script {
            upstream_ids: Some(1),
            ..Script::clone(&script)
        }),
        _ => script,
    };
    if let Some(refused) = Plan::of(&script, &ask).and_then(|plan| plan.refused) {
        return engine_reply(&script, Reply::refused(&refused));
    }
    if ask.stream {
        let script = engine::dress_stream(script);
        Answer::Stream { script, ask }
    } else {
        let body = plain::whole(&script, &ask);
        Answer::json(engine::dress(script), body)
    }
}

/// An answer of the engine that is no stream, with the head lines of all its answers.
fn engine_reply(script: &Script, reply: Reply) -> Answer {
    let script = Script {
        engine: script.engine,
        ..Script::error(reply.status)
    };
    Answer::json(engine::dress(Arc::new(script)), reply.body)
}

fn built_in(shared: &Shared, request: &Request) -> Option<Answer> {
    let get = request.method == Method::GET || request.method == Method::HEAD;
    let health = shared.health.load(Ordering::Acquire);
    let default = shared.default_script();
    if let Some(reply) = engine::probe(&default, health, request) {
        return Some(engine_reply(&default, reply));
    }
    match request.path() {
        "/health" if get && health == 200 => {
            Some(Answer::status(200, b"{\"status\":\"ok\"}".to_vec()))
        }
        "/health" if get => Some(Answer::status(health, plain::error(None, health))),
        "/mock/health" if request.method == Method::POST => Some(set_health(shared, request)),
        "/v1/models" if get => Some(Answer::status(200, plain::models(&shared.default_script()))),
        "/upgrade" if request.header("upgrade").is_some() => Some(Answer::Upgrade),
        "/upgrade" => Some(Answer::status(426, plain::error(None, 426))),
        path if path.starts_with("/echo") => Some(Answer::status(200, plain::echo(request))),
        _ => None,
    }
}

/// Takes a status for `/health` from somebody who is not in this process.
fn set_health(shared: &Shared, request: &Request) -> Answer {
    let status = request.json()["status"].as_u64();
    let status = status.and_then(|status| u16::try_from(status).ok());
    match status.filter(|status| (200..600).contains(status)) {
        Some(status) => {
            shared.health.store(status, Ordering::Release);
            Answer::status(200, format!("{{\"status\":{status}}}").into_bytes())
        }
        None => refuse("give a status from 200 to 599, as in {\"status\":503}"),
    }
}

fn refuse(message: &str) -> Answer {
    Answer::status(
        400,
        plain::with_message(None, 400, "invalid_request_error", message),
    )
}
