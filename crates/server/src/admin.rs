//! The admin listener: probes, metrics, and what an operator does with generations and backends (protocol.md 12).

mod backends;
mod drain;
mod leave;
mod migrate;
mod operator;
mod streams;
mod watch;

pub(crate) use self::drain::Drains;

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use streamweld_journal::StreamId;

use crate::app::{App, Peer, Shown};
use crate::body::Body;
use crate::client_body::ClientBody;
use crate::error::{Error, ErrorCode};
use crate::framing::Framing;
use crate::{console, head, query};

/// Answers one request on the admin listener.
pub(crate) async fn handle(
    app: Arc<App>,
    request: Request<Incoming>,
    peer: Peer,
) -> Response<Body> {
    let request_id = &*peer.request_id;
    let (request, asked) = ClientBody::of(request, &app.settings().edge);
    let mut framing = Framing::of(&request);
    let mut response = match framing.refuse_unusable(&request) {
        Some(response) => response,
        None => {
            let answer = serve(&app, &request, &peer).await;
            answer.unwrap_or_else(|error| error.into_response(request_id))
        }
    };
    response
        .headers_mut()
        .insert(head::REQUEST_ID, head::ascii(request_id));
    framing.finish(&asked, &mut response);
    response
}

async fn serve(
    app: &Arc<App>,
    request: &Request<ClientBody>,
    peer: &Peer,
) -> Result<Response<Body>, Error> {
    let path = request.uri().path();
    let method = request.method();
    // The kubelet has no certificate, and learns nothing but that.
    let is_probe = matches!(path, "/livez" | "/readyz");
    let tls = app.settings().admin_tls.clone();
    if tls.is_some_and(|tls| tls.asks()) && !is_probe && peer.shown == Shown::Nothing {
        let message =
            "this needs a client certificate of the authority that admin-tls-client-ca-file names";
        return Err(Error::new(ErrorCode::Forbidden, message));
    }
    if let Some(rest) = path.strip_prefix("/admin/") {
        // HTTP/2 names the host in the target.
        let host = request.uri().authority().map(http::uri::Authority::as_str);
        let token = app.settings().admin_token.clone();
        operator::authorize(token.as_ref(), host, request.headers(), peer.addr)?;
        let segments: Vec<&str> = rest.split('/').collect();
        return admin(app, &segments, request, peer).await;
    }
    let open = match path {
        "/livez" => text(StatusCode::OK, "ok\n"),
        "/readyz" if app.is_shutting_down() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
        }
        "/readyz" => text(StatusCode::OK, "ok\n"),
        "/metrics" => {
            let mut response = text(StatusCode::OK, app.metrics.render(app));
            let media = HeaderValue::from_static(
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            );
            response.headers_mut().insert(CONTENT_TYPE, media);
            response
        }
        path => console::file(path)
            .ok_or_else(|| Error::new(ErrorCode::NotFound, "there is nothing at this path"))?,
    };
    if method == Method::GET || method == Method::HEAD {
        Ok(open)
    } else {
        Err(Error::method_not_allowed("GET, HEAD"))
    }
}

async fn admin(
    app: &Arc<App>,
    segments: &[&str],
    request: &Request<ClientBody>,
    peer: &Peer,
) -> Result<Response<Body>, Error> {
    let (method, query) = (request.method(), request.uri().query());
    let headers = request.headers();
    let known: &[&str] = match segments {
        ["streams"] => &streams::FILTERS,
        ["streams", _, "migrate"] => &["dry_run"],
        ["drain"] | ["backends", _, "drain"] => &["timeout"],
        _ => &[],
    };
    if query::has_others(query, known) {
        let message = match known {
            [] => "there are no parameters here".to_owned(),
            known => format!("there is a parameter that is none of {}", known.join(", ")),
        };
        return Err(Error::new(ErrorCode::InvalidParameter, message));
    }
    match (method.as_str(), segments) {
        ("GET", ["watch"]) => watch::watch(app, headers, peer.breaker.clone()),
        ("GET", ["overview"]) => Ok(watch::overview(app)),
        ("GET", ["streams"]) => streams::list(app, query).await,
        ("GET", ["streams", id]) => streams::show(app, id).await,
        ("GET", ["backends"]) => Ok(backends::list(app)),
        ("GET", ["backends", name]) => backends::show(app, name),
        ("POST", ["drain"]) => {
            audited(peer, "drain", "this replica", leave::drain(app, query)).await
        }
        ("POST", [_, of, what]) => {
            let done = async {
                match segments {
                    ["streams", id, "stop"] => streams::stop(app, id).await,
                    ["streams", id, "migrate"] => migrate::migrate(app, id, query).await,
                    ["backends", name, "drain"] => backends::drain(app, name, query).await,
                    ["backends", name, "undrain"] => backends::undrain(app, name),
                    _ => Err(elsewhere(segments)),
                }
            };
            audited(peer, what, of, done).await
        }
        _ => Err(elsewhere(segments)),
    }
}

/// What is told where there is nothing, or nothing in this method.
fn elsewhere(segments: &[&str]) -> Error {
    match segments {
        ["watch" | "overview" | "streams" | "backends"] | ["streams" | "backends", _] => {
            Error::method_not_allowed("GET")
        }
        ["drain"] | ["streams", _, "stop" | "migrate"] | ["backends", _, "drain" | "undrain"] => {
            Error::method_not_allowed("POST")
        }
        _ => Error::new(ErrorCode::NotFound, "there is nothing at this path"),
    }
}

/// What an operator has changed, and how the log tells it.
struct Done {
    response: Response<Body>,
    outcome: String,
}

/// Does something, and has it in the log who wanted what, and what became of it.
async fn audited(
    peer: &Peer,
    what: &str,
    of: &str,
    done: impl Future<Output = Result<Done, Error>>,
) -> Result<Response<Body>, Error> {
    // It may be anything that a path can hold. Names and ids are as they were.
    let of = of.escape_default().to_string();
    let request_id = &*peer.request_id;
    let stream_id = StreamId::parse(&of).ok();
    let stream_id = stream_id.as_ref().map(tracing::field::display);
    let addr = peer.addr;
    tracing::info!(request_id, stream_id, peer = %addr, what, of, "an operator asks");
    let done = done.await;
    let outcome = match &done {
        Ok(done) => &done.outcome,
        Err(error) => error.code.as_str(),
    };
    tracing::info!(request_id, stream_id, peer = %addr, what, of, outcome, "an operator is answered");
    done.map(|done| done.response)
}

fn text(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
