//! Pass-through: a request to the backend, and whatever comes back (protocol.md 4.2).

use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode, Uri, Version, request};
use http_body::Body as _;
use streamweld_dialect::Dialect;
use streamweld_journal::StreamId;
use streamweld_upstream::{ErrorKind, Source, UpstreamError};

use crate::app::{App, Peer};
use crate::body::Body;
use crate::client_body::ClientBody;
use crate::error::{Error, ErrorCode};
use crate::request_body::{RequestBody, RequestBodyError};
use crate::{head, upgrade};

/// Whether the answer may be an event stream, which has to be readable here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayStream {
    Yes,
    No,
}

/// Forwards a request that cannot become a generation.
pub(crate) async fn pass(
    app: &App,
    request: Request<ClientBody>,
    peer: &Peer,
) -> Result<Response<Body>, Error> {
    let (mut parts, body) = request.into_parts();
    check_length(app, &parts.headers)?;
    let (target, limit) = (
        parts.uri.path_and_query(),
        app.settings().edge.max_request_body,
    );
    let body = RequestBody::new(body, target, limit, &app.shared.journal);
    let wanted = upgrade::wanted(&mut parts);
    let outgoing = outgoing(
        app,
        &parts,
        MayStream::No,
        wanted.as_ref().map(|wanted| &wanted.protocol),
    );
    let mut response = send(app, outgoing, body)
        .await?
        .map_err(|error| unanswered(&error, &peer.request_id, None))?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        if let Some(wanted) = wanted {
            return Ok(upgrade::tunnel(app, wanted, &mut response, peer));
        }
    }
    Ok(incoming(app, response, peer))
}

/// Asks a backend; where none of the request can have been seen and it has no body, another one.
async fn send(
    app: &App,
    request: Request<()>,
    body: RequestBody,
) -> Result<Result<Response<Source>, UpstreamError>, Error> {
    let mut failed = Vec::new();
    let mut permit = app.backends.pick(Dialect::Generic, &failed)?;
    let mut left = match body.is_end_stream() {
        true => app.settings().migration.attempts.get(),
        false => 1,
    };
    let mut body = Some(body);
    loop {
        failed.push(permit.member().id());
        left -= 1;
        let body = body.take().unwrap_or_else(RequestBody::empty);
        let answer = app.send(permit, request.clone().map(|()| body)).await;
        let is_retried = matches!(&answer, Err(error) if error.is_retry_safe());
        match app.backends.pick(Dialect::Generic, &failed) {
            Ok(next) if is_retried && left > 0 => permit = next,
            Ok(_) | Err(_) => return Ok(answer),
        }
    }
}

/// The request as the backend gets it, but for its body.
pub(crate) fn outgoing(
    app: &App,
    parts: &request::Parts,
    may_stream: MayStream,
    upgrade: Option<&HeaderValue>,
) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = parts.method.clone();
    // An absolute-form target is forwarded by its path and query: the host is the configured one, whoever asks.
    let target = parts
        .uri
        .path_and_query()
        .cloned()
        .unwrap_or_else(|| http::uri::PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(target);
    *request.version_mut() = Version::HTTP_11;
    let mut headers = parts.headers.clone();
    head::strip_hop_by_hop(&mut headers, &app.credentials);
    head::strip_ours(&mut headers);
    headers.remove(http::header::HOST);
    if may_stream == MayStream::Yes {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(protocol) = upgrade {
        headers.insert(UPGRADE, protocol.clone());
        headers.insert(
            http::header::CONNECTION,
            HeaderValue::from_static("upgrade"),
        );
    }
    *request.headers_mut() = headers;
    request
}

/// The backend's answer as the client gets it.
pub(crate) fn incoming(app: &App, response: Response<Source>, peer: &Peer) -> Response<Body> {
    let (mut parts, source) = response.into_parts();
    head::strip_hop_by_hop(&mut parts.headers, &app.credentials);
    head::strip_ours(&mut parts.headers);
    parts.version = Version::default();
    parts.extensions = http::Extensions::new();
    Response::from_parts(parts, Body::pass(source.into_body(), peer))
}

/// Refuses a body that says beforehand that it is too large.
pub(crate) fn check_length(app: &App, headers: &HeaderMap) -> Result<(), Error> {
    let Some(limit) = app.settings().edge.max_request_body else {
        return Ok(());
    };
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    if length.is_some_and(|length: u64| length > limit) {
        Err(too_large(limit))
    } else {
        Ok(())
    }
}

fn too_large(limit: u64) -> Error {
    Error::new(
        ErrorCode::RequestTooLarge,
        format!("the request body is over the limit of {limit} bytes"),
    )
}

/// What a client is told whose body turned out to be too large on the way.
pub(crate) fn over_the_limit() -> Error {
    let message = "the request body is over the limit of this proxy";
    Error::new(ErrorCode::RequestTooLarge, message)
}

/// What a client is told whose body took too long.
pub(crate) fn too_slow() -> Error {
    let message = "the request body came too slowly; send it again on a new connection";
    Error::new(ErrorCode::RequestTimeout, message)
}

/// What a client is told when a backend gave no answer.
pub(crate) fn unanswered(
    error: &UpstreamError,
    request_id: &str,
    stream_id: Option<StreamId>,
) -> Error {
    // The client's doing, which is nothing to warn of.
    if body_failed(error, |error| matches!(error, RequestBodyError::TooSlow)) {
        return too_slow();
    }
    let cause = chain(error)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ");
    tracing::warn!(
        request_id,
        stream_id = stream_id.as_ref().map(tracing::field::display),
        backend = error.backend(),
        kind = error.kind().as_str(),
        cause,
        "the backend gave no answer"
    );
    if body_failed(error, |error| matches!(error, RequestBodyError::TooLarge)) {
        return over_the_limit();
    }
    let code = match error.kind() {
        ErrorKind::ConnectTimeout | ErrorKind::FirstByteTimeout => ErrorCode::BackendTimeout,
        ErrorKind::BadResponse => ErrorCode::BackendBadResponse,
        _ => ErrorCode::BackendUnreachable,
    };
    Error::new(code, error.to_string())
}

/// Whether the body of the request failed, in this way.
fn body_failed(error: &UpstreamError, so: impl Fn(&RequestBodyError) -> bool) -> bool {
    chain(error).any(|error| error.downcast_ref().is_some_and(&so))
}

/// Everything behind an error, outermost first.
fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |error| error.source())
}
