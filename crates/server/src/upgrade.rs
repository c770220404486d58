//! HTTP/1.1 upgrades: a byte tunnel between client and backend, never journaled.

use std::sync::Arc;

use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Response, Version, request};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use streamweld_upstream::Source;
use tokio::io::copy_bidirectional;

use crate::app::{App, Peer};
use crate::body::Body;
use crate::head;

/// What a client asked to switch to.
pub(crate) struct Wanted {
    pub(crate) protocol: HeaderValue,
    client: OnUpgrade,
}

/// The upgrade that a request asks for, if it does.
pub(crate) fn wanted(parts: &mut request::Parts) -> Option<Wanted> {
    let asks = parts.version == Version::HTTP_11
        && parts.headers.get_all(CONNECTION).iter().any(|value| {
            value.to_str().is_ok_and(|value| {
                value
                    .split(',')
                    .any(|name| name.trim().eq_ignore_ascii_case("upgrade"))
            })
        });
    let protocol = parts.headers.get(UPGRADE).filter(|_| asks)?.clone();
    // `h2c` is between this proxy and its client, and not offered here.
    if protocol.as_bytes().eq_ignore_ascii_case(b"h2c") {
        return None;
    }
    Some(Wanted {
        protocol,
        client: parts.extensions.remove::<OnUpgrade>()?,
    })
}

/// Passes the backend's `101` on and ties the two connections together. The tunnel ends when either side does; its
/// task belongs to the server's tracker, so that shutdown knows of it.
pub(crate) fn tunnel(
    app: &App,
    wanted: Wanted,
    response: &mut Response<Source>,
    peer: &Peer,
) -> Response<Body> {
    let request_id = Arc::clone(&peer.request_id);
    let protocol = response
        .headers()
        .get(UPGRADE)
        .cloned()
        .unwrap_or(wanted.protocol);
    let mut headers = std::mem::take(response.headers_mut());
    let backend = streamweld_upstream::upgrade(response);
    app.producers.spawn(async move {
        let (client, backend) = match tokio::try_join!(
            async { wanted.client.await.map_err(|error| error.to_string()) },
            async { backend.await.map_err(|error| error.to_string()) }
        ) {
            Ok(both) => both,
            Err(error) => {
                return tracing::debug!(
                    request_id = &*request_id,
                    error,
                    "an upgrade did not come about"
                );
            }
        };
        let (mut client, mut backend) = (TokioIo::new(client), backend);
        if let Err(error) = copy_bidirectional(&mut client, &mut backend).await {
            tracing::debug!(request_id = &*request_id, %error, "a tunnel broke off");
        }
    });
    head::strip_hop_by_hop(&mut headers, &app.credentials);
    headers.insert(UPGRADE, protocol);
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    let mut switching = Response::new(Body::Empty);
    *switching.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
    *switching.headers_mut() = headers;
    switching
}
