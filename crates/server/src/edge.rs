//! The first decision about every request on the data listener.

use std::sync::Arc;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use streamweld_dialect::{Dialect, End as DoneBy};
use streamweld_generation::lifecycle::End;
use streamweld_journal::{Cursor, Seq, Window};

use crate::app::{App, Peer};
use crate::attach::{self, DataCursor, Reading};
use crate::body::Body;
use crate::caller::Caller;
use crate::capability::{self, Grant, Scope};
use crate::client_body::ClientBody;
use crate::compressed::compress;
use crate::cross_origin::Listed;
use crate::error::{Error, ErrorCode};
use crate::framing::Framing;
use crate::route::{self, Route, is_durable_get};
use crate::traced::Traced;
use crate::{coding, cross_origin, durable, forward, head, idempotency, responses, state, streams};

/// Answers one request. It never fails: an error of ours is an answer too.
pub(crate) async fn handle(
    app: Arc<App>,
    request: Request<Incoming>,
    peer: Peer,
) -> Response<Body> {
    let request_id = &*peer.request_id;
    let settings = app.settings();
    let (request, asked) = ClientBody::of(request, &settings.edge);
    let pages = Listed::of(
        &settings.edge.cors_origins,
        app.credentials.subject(),
        request.method(),
        request.headers(),
    );
    let mut framing = Framing::of(&request);
    let codings = &settings.edge.compress;
    let coding = coding::choose(request.headers(), codings);
    let mut response = match framing.refuse_unusable(&request) {
        Some(response) => response,
        None => match pages.answer() {
            Some(response) => response,
            None => match serve(&app, request, &peer).await {
                Ok(response) => response,
                Err(error) => {
                    app.metrics.refused(error.code);
                    tracing::debug!(
                        request_id,
                        stream_id = error.stream().map(tracing::field::display),
                        code = error.code.as_str(),
                        "refused"
                    );
                    error.into_response(request_id)
                }
            },
        },
    };
    if !codings.is_empty() {
        compress(&mut response, coding, &peer.request_id);
    }
    pages.finish(&mut response);
    response
        .headers_mut()
        .insert(head::REQUEST_ID, head::ascii(request_id));
    framing.finish(&asked, &mut response);
    response
}

async fn serve(
    app: &Arc<App>,
    mut request: Request<ClientBody>,
    peer: &Peer,
) -> Result<Response<Body>, Error> {
    let method = request.method().clone();
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(Error::method_not_allowed(
            "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        ));
    }
    // A browser asks without a credential, so that we could not say what is allowed without saying what there is.
    if cross_origin::is_preflight(&method, request.headers()) {
        keep_capability(&mut request);
        return forward::pass(app, request, peer).await;
    }
    let (path, query, headers) = (
        request.uri().path(),
        request.uri().query(),
        request.headers(),
    );
    let breaker = peer.breaker.clone();
    let ours = match Route::of(path) {
        Route::State(id) => Some(streams::state(app, id, &method, query, headers).await),
        Route::Events(id) => {
            let asked =
                streams::events(app, id, &method, query, headers, breaker, &peer.request_id);
            Some(
                asked
                    .await
                    .map(streams::with_verdict)
                    .map_err(streams::refusal_with_verdict),
            )
        }
        Route::Stop(id) => Some(streams::stop(app, id, &method, query, headers).await),
        Route::Unknown => Some(Err(Error::new(
            ErrorCode::NotFound,
            "there is nothing at this path",
        ))),
        Route::Backend => None,
    };
    if let Some(answer) = ours {
        return answer;
    }
    let settings = app.settings();
    let dialect = route::dialect(&settings.generation, &method, request.uri(), headers);
    let mut feed = method == Method::GET && is_durable_get(&settings.generation.durable_get, path);
    let again = match attach::data_cursor(headers) {
        Ok(DataCursor::NotOurs) => None,
        Ok(DataCursor::Ours(cursor)) => Some(again(app, &request, cursor, feed, peer).await),
        Err(error) => Some(Err(error)),
    };
    match again.transpose()? {
        None => {}
        Some(Again::NewFeed { upstream_id }) => {
            feed = true;
            let headers = request.headers_mut();
            headers.remove(head::LAST_EVENT_ID);
            if let Some(id) = upstream_id.and_then(|id| http::HeaderValue::from_str(&id).ok()) {
                headers.insert(head::LAST_EVENT_ID, id);
            }
        }
        Some(Again::Answer(response)) => return Ok(response),
    }
    if let Some(answer) = responses::retrieve(app, &request, peer).await {
        return answer;
    }
    match dialect {
        Some(dialect) if method == Method::POST || feed => {
            durable::serve(app, request, peer, dialect).await
        }
        _ => forward::pass(app, request, peer).await,
    }
}

/// What the backend is asked about a URL of ours is without its capability, which is good for whoever has it.
fn keep_capability(request: &mut Request<ClientBody>) {
    let uri = request.uri();
    if capability::is_in(uri.query()) && Route::of(uri.path()) != Route::Backend {
        *request.uri_mut() = uri.path().parse().expect("a path is a target");
    }
}

/// What the same request, with a cursor of ours, gets.
enum Again {
    Answer(Response<Body>),
    /// A feed whose generation was ended by its age or for want of readers begins anew, from where the backend's own
    /// ids say. So does an answer of MCP that its backend broke off and wants to be asked for.
    NewFeed {
        upstream_id: Option<String>,
    },
}

async fn again(
    app: &App,
    request: &Request<ClientBody>,
    cursor: Cursor,
    feed: bool,
    peer: &Peer,
) -> Result<Again, Error> {
    let headers = request.headers();
    let access = app.access(headers);
    let control = streams::control(headers, request.uri().query(), false)?;
    let grant = Grant::new(access, Scope::wanted(headers)?);
    let caller = Caller::with(access);
    let found = attach::find_after(app, cursor.stream, &caller, cursor.seq).await?;
    let pages = found.cross_origin();
    let matching = match idempotency::key(headers, &access) {
        Ok(Some(key)) => idempotency::check_cursor(app, key, cursor.stream).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = matching {
        return pages.share(Err(error)).map(Again::Answer);
    }
    let cut_short = found.window.terminal().is_some_and(|terminal| {
        [End::OrphanCancelled.code(), End::TooLong.code()].contains(&terminal.code.as_deref())
    });
    let polls = request.method() == Method::GET
        && found.dialect() == Dialect::Mcp
        && is_resumable_behind(&found.window, cursor.seq);
    if (feed && cut_short) || polls {
        if let Err(error) = attach::check(app, &found.window, cursor, false).await {
            return pages.share(Err(error)).map(Again::Answer);
        }
        let upstream_id = state::terminal_payload(&found.window)
            .and_then(|payload| payload.upstream_last_event_id);
        return Ok(Again::NewFeed { upstream_id });
    }
    let reading = Reading {
        any_epoch: false,
        control,
        resumes: true,
        grant: Some(grant),
        breaker: peer.breaker.clone(),
        traced: Traced::of(app, headers),
    };
    let answer = attach::read(app, found, cursor, reading).await;
    pages.share(answer).map(Again::Answer)
}

/// The backend has left the rest to be asked for, and all that it has sent was seen.
fn is_resumable_behind(window: &Window, seen: Seq) -> bool {
    let last = window.terminal().map(|terminal| terminal.seq);
    last.is_some_and(|last| seen.next() >= last && seen <= last)
        && state::terminal_payload(window)
            .is_some_and(|payload| payload.end.as_deref() == Some(DoneBy::Resumable.as_str()))
}
