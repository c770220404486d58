//! The first decision about every request on the data listener.

use std::sync::Arc;
use std::time::SystemTime;

use http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use streamweld_generation::lifecycle::End;
use streamweld_journal::{Cursor, StreamId};

use crate::app::{App, Peer};
use crate::attach::{self, DataCursor, Reading};
use crate::body::Body;
use crate::error::{Error, ErrorCode};
use crate::route::{Route, is_durable_get};
use crate::{durable, forward, head, idempotency, state, streams};

/// Answers one request. It never fails: an error of ours is an answer too.
pub(crate) async fn handle(
    app: Arc<App>,
    request: Request<Incoming>,
    peer: Peer,
) -> Response<Body> {
    let request_id = StreamId::generate(SystemTime::now()).to_string();
    let mut framing = Framing::of(&request);
    let answer = serve(&app, request, &peer, &request_id).await;
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => {
            app.metrics.refused(error.code);
            tracing::debug!(request_id, code = error.code.as_str(), "refused");
            error.into_response(&request_id)
        }
    };
    response
        .headers_mut()
        .insert(head::REQUEST_ID, head::ascii(&request_id));
    framing.finish(&mut response);
    response
}

async fn serve(
    app: &Arc<App>,
    mut request: Request<Incoming>,
    peer: &Peer,
    request_id: &str,
) -> Result<Response<Body>, Error> {
    let method = request.method().clone();
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(Error::method_not_allowed(
            "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        ));
    }
    let (path, query, headers) = (
        request.uri().path(),
        request.uri().query(),
        request.headers(),
    );
    let breaker = peer.breaker.clone();
    match Route::of(path) {
        Route::State(id) => return streams::state(app, id, &method, headers).await,
        Route::Events(id) => {
            return streams::events(app, id, &method, query, headers, breaker).await;
        }
        Route::Stop(id) => return streams::stop(app, id, &method, headers).await,
        Route::Unknown => {
            return Err(Error::new(
                ErrorCode::NotFound,
                "there is nothing at this path",
            ));
        }
        Route::Backend => {}
    }
    let feed = method == Method::GET && is_durable_get(&app.generation.durable_get, path);
    if let DataCursor::Ours(cursor) = attach::data_cursor(headers)? {
        match again(app, &request, cursor, feed, peer).await? {
            Again::Answer(response) => return Ok(response),
            Again::NewFeed { upstream_id } => {
                let headers = request.headers_mut();
                headers.remove(head::LAST_EVENT_ID);
                if let Some(id) = upstream_id.and_then(|id| http::HeaderValue::from_str(&id).ok()) {
                    headers.insert(head::LAST_EVENT_ID, id);
                }
            }
        }
    }
    if method == Method::POST || feed {
        return durable::serve(app, request, peer, request_id).await;
    }
    forward::pass(app, request, peer).await
}

/// What the same request, with a cursor of ours, gets.
enum Again {
    Answer(Response<Body>),
    /// A feed whose generation was ended by its age or for want of readers begins anew, from where the backend's own
    /// ids say.
    NewFeed {
        upstream_id: Option<String>,
    },
}

async fn again(
    app: &App,
    request: &Request<Incoming>,
    cursor: Cursor,
    feed: bool,
    peer: &Peer,
) -> Result<Again, Error> {
    let headers = request.headers();
    let access = app.access(headers);
    let control = streams::control(headers, request.uri().query(), false)?;
    let found = attach::find(app, cursor.stream, Some(&access)).await?;
    if let Some(key) = idempotency::key(headers, &access)? {
        idempotency::check_cursor(app, key, cursor.stream).await?;
    }
    let cut_short = found.window.terminal().is_some_and(|terminal| {
        [End::OrphanCancelled.code(), End::TooLong.code()].contains(&terminal.code.as_deref())
    });
    if feed && cut_short {
        let upstream_id = state::terminal_payload(&found.window)
            .and_then(|payload| payload.upstream_last_event_id);
        return Ok(Again::NewFeed { upstream_id });
    }
    let reading = Reading {
        control,
        resumes: true,
        breaker: peer.breaker.clone(),
    };
    attach::read(app, found, cursor, reading).map(Again::Answer)
}

/// What HTTP/1 needs beside the answer itself.
struct Framing {
    /// The request was chunked: two readers of such a request may disagree where it ends, so its connection is not
    /// used again.
    close: bool,
}

impl Framing {
    fn of<B>(request: &Request<B>) -> Self {
        let http1 = request.version() <= Version::HTTP_11;
        Self {
            close: http1
                && request
                    .headers()
                    .contains_key(http::header::TRANSFER_ENCODING),
        }
    }

    fn finish(&mut self, response: &mut Response<Body>) {
        if self.close && response.status() != http::StatusCode::SWITCHING_PROTOCOLS {
            response.headers_mut().insert(
                http::header::CONNECTION,
                http::HeaderValue::from_static("close"),
            );
        }
    }
}
