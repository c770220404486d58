//! The admin listener: probes, metrics, and what an operator does with generations (protocol.md 12).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use serde::Serialize;
use sha2::{Digest, Sha256};
use streamweld_generation::lifecycle::By;
use streamweld_generation::{Durability, Head};
use streamweld_journal::{Seq, StreamId};
use subtle::ConstantTimeEq;

use crate::app::{App, Peer};
use crate::attach::{self, Readable};
use crate::body::Body;
use crate::caller::{Caller, Entry};
use crate::client_body::ClientBody;
use crate::config::Secret;
use crate::error::{Error, ErrorCode};
use crate::state::{State, newest_first};
use crate::{head, query, streams};

/// How many generations a list shows, unless it is asked for more; and the most it shows.
const LIST: (usize, usize) = (100, 1000);

/// Answers one request on the admin listener.
pub(crate) async fn handle(
    app: Arc<App>,
    token: Option<Secret>,
    request: Request<Incoming>,
    peer: Peer,
) -> Response<Body> {
    let request_id = StreamId::generate(SystemTime::now()).to_string();
    let (request, asked) = ClientBody::of(request);
    let answer = serve(&app, token.as_ref(), &request, peer.addr).await;
    let mut response = answer.unwrap_or_else(|error| error.into_response(&request_id));
    response
        .headers_mut()
        .insert(head::REQUEST_ID, head::ascii(&request_id));
    if request.version() <= Version::HTTP_11 && asked.is_waiting() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

async fn serve(
    app: &Arc<App>,
    token: Option<&Secret>,
    request: &Request<ClientBody>,
    peer: SocketAddr,
) -> Result<Response<Body>, Error> {
    let path = request.uri().path();
    let method = request.method();
    if let Some(rest) = path.strip_prefix("/admin/") {
        // HTTP/2 names the host in the target.
        let host = request.uri().authority().map(http::uri::Authority::as_str);
        authorize(token, host, request.headers(), peer)?;
        return admin(app, rest, method, request.uri().query()).await;
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
        _ => {
            return Err(Error::new(
                ErrorCode::NotFound,
                "there is nothing at this path",
            ));
        }
    };
    if method == Method::GET || method == Method::HEAD {
        Ok(open)
    } else {
        Err(Error::method_not_allowed("GET, HEAD"))
    }
}

async fn admin(
    app: &Arc<App>,
    rest: &str,
    method: &Method,
    query: Option<&str>,
) -> Result<Response<Body>, Error> {
    let segments: Vec<&str> = rest.split('/').collect();
    match (method.as_str(), &segments[..]) {
        ("GET", ["streams"]) => list(app, query).await,
        ("GET", ["streams", id]) => {
            let found = attach::find(app, streams::parse_id(id)?, &Caller::Operator).await?;
            Ok(streams::json(&State::whole(app, &found).await))
        }
        ("POST", ["streams", id, "stop"]) => {
            let (id, until) = (streams::parse_id(id)?, app.held());
            let found = attach::find_until(app, id, &Caller::Operator, Seq::ZERO, until).await?;
            streams::stop_as(app, found, By::Admin, until).await
        }
        (_, ["streams"] | ["streams", _]) => Err(Error::method_not_allowed("GET")),
        (_, ["streams", _, "stop"]) => Err(Error::method_not_allowed("POST")),
        _ => Err(Error::new(
            ErrorCode::NotFound,
            "there is nothing at this path",
        )),
    }
}

async fn list(app: &App, query: Option<&str>) -> Result<Response<Body>, Error> {
    #[derive(Serialize)]
    struct List {
        object: &'static str,
        data: Vec<State>,
    }
    let bad = |message: &str| Error::new(ErrorCode::InvalidParameter, message);
    let limit = match query::first(query, "limit") {
        None => LIST.0,
        Some(text) => std::str::from_utf8(&text)
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|limit| (1..=LIST.1).contains(limit))
            .ok_or_else(|| bad("limit is a number from 1 to 1000"))?,
    };
    let status = query::first(query, "status");
    if let Some(status) = &status {
        if ![&b"streaming"[..], b"done", b"error", b"stopped"].contains(&&status[..]) {
            return Err(bad("status is one of streaming, done, error, stopped"));
        }
    }
    let mut found: Vec<Readable> = Vec::new();
    for handle in app.shared.registry.all() {
        if handle.head() == Head::Streaming(Durability::Durable) {
            found.push(Readable::here(handle));
        }
    }
    let finished = app
        .shared
        .journal
        .finished(SystemTime::now())
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
    let wanted = |state: &State| {
        status
            .as_deref()
            .is_none_or(|status| status == state.status.as_bytes())
    };
    let data = found
        .iter()
        .map(|found| State::of(app, found))
        .filter(wanted)
        .take(limit)
        .collect();
    Ok(streams::json(&List {
        object: "list",
        data,
    }))
}

/// Lets an operator in, and nobody else.
fn authorize(
    token: Option<&Secret>,
    host: Option<&str>,
    headers: &HeaderMap,
    peer: SocketAddr,
) -> Result<(), Error> {
    let Some(token) = token else {
        let host = host
            .or_else(|| headers.get(HOST)?.to_str().ok())
            .is_some_and(is_loopback_name);
        // A page in a browser on this machine comes from loopback too: its Origin gives it away, and a name that was
        // rebound to loopback shows in Host.
        if peer.ip().to_canonical().is_loopback() && host && !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        let message = "without an admin token this answers peers on loopback, asked by a loopback name, and no page of a browser; \
             configure admin-token-file";
        return Err(Error::new(ErrorCode::Forbidden, message));
    };
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().split_at_checked(7))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "))
        .map(|(_, given)| given);
    // Digests have one length, so that neither length nor content shows in the time it takes.
    let matches = given.is_some_and(|given| {
        Sha256::digest(given)
            .ct_eq(&Sha256::digest(token.as_bytes()))
            .into()
    });
    if matches {
        Ok(())
    } else {
        Err(Error::new(
            ErrorCode::Unauthorized,
            "the admin token is missing or another one",
        ))
    }
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        token: Option<&str>,
        peer: &str,
        fields: &[(&'static str, &'static str)],
        expected: Option<ErrorCode>,
    ) {
        let token = token.and_then(|token| Secret::new(token.to_owned()));
        let headers = fields
            .iter()
            .map(|(n, v)| {
                (
                    http::HeaderName::from_static(n),
                    HeaderValue::from_static(v),
                )
            })
            .collect::<HeaderMap>();
        let answer = authorize(
            token.as_ref(),
            None,
            &headers,
            peer.parse().expect("an address"),
        );
        assert_eq!(answer.err().map(|error| error.code), expected, "{fields:?}");
    }

    #[test]
    fn with_a_token_only_the_token_counts() {
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("host", "localhost")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("authorization", "Bearer x")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("authorization", "Bearer tt")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "127.0.0.1:1",
            &[("authorization", "Basic t")],
            Some(ErrorCode::Unauthorized),
        );
        check(
            Some("t"),
            "203.0.113.9:1",
            &[("authorization", "Bearer t")],
            None,
        );
        check(
            Some("t"),
            "203.0.113.9:1",
            &[("authorization", "bearer t")],
            None,
        );
    }

    #[test]
    fn over_http_2_the_host_is_in_the_target() {
        let peer = "127.0.0.1:1".parse().expect("an address");
        let by = |host| authorize(None, Some(host), &HeaderMap::new(), peer);
        assert!(by("localhost:9090").is_ok());
        assert!(by("evil.example").is_err());
    }

    #[test]
    fn without_a_token_loopback_and_no_page() {
        check(None, "127.0.0.1:1", &[("host", "localhost:9090")], None);
        check(None, "[::1]:1", &[("host", "[::1]:9090")], None);
        check(None, "[::ffff:127.0.0.1]:1", &[("host", "127.0.0.1")], None);
        check(
            None,
            "127.0.0.1:1",
            &[("host", "evil.example")],
            Some(ErrorCode::Forbidden),
        );
        check(None, "127.0.0.1:1", &[], Some(ErrorCode::Forbidden));
        check(
            None,
            "127.0.0.1:1",
            &[("host", "localhost"), ("origin", "http://a")],
            Some(ErrorCode::Forbidden),
        );
        check(
            None,
            "203.0.113.9:1",
            &[("host", "localhost")],
            Some(ErrorCode::Forbidden),
        );
    }
}
