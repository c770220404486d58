//! From a candidate to its producer: the request is sent, and what comes back is judged by its head.

use std::pin::pin;
use std::sync::Arc;

use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use streamweld_generation::{
    Answer, Durability, Handle, Head, Onward, Producer, Spec, Told, steady_now,
};
use streamweld_upstream::fleet::Permit;
use streamweld_upstream::{Coding, Source, UpstreamError};
use tokio::sync::oneshot;

use crate::app::App;
use crate::attempts::Attempts;
use crate::error::{Error, ErrorCode};
use crate::idempotency::{self, Key};
use crate::request_body::RequestBody;
use crate::source::AttemptSource;
use crate::{cross_origin, forward, head};

/// The head of an event stream.
pub(crate) type HeadOf = (StatusCode, HeaderMap);
/// What is passed on instead.
pub(crate) type Other = Result<Response<Source>, Error>;

/// A request that is about to be sent.
pub(crate) struct Sending {
    pub(crate) attempts: Arc<Attempts>,
    /// Where it goes first.
    pub(crate) first: Permit,
    /// Its body, where that was not kept.
    pub(crate) body: RequestBody,
    pub(crate) onward: Onward<AttemptSource>,
    /// Its idempotency key.
    pub(crate) key: Option<Key>,
}

/// The task of one candidate: asks the backend, runs the producer, and settles the idempotency key.
pub(crate) async fn produce(
    app: Arc<App>,
    producer: Producer,
    handle: Arc<Handle>,
    sending: Sending,
    tell: oneshot::Sender<Told<HeadOf, Other>>,
) {
    let _panics = app.metrics.panics("producer");
    let Sending {
        attempts,
        first,
        body,
        onward,
        key,
    } = sending;
    // What it takes to ask again is let go with the head, unless the producer holds it.
    let (of, its) = (&app, &handle);
    // It is followed to its end.
    let traced = attempts.generation();
    let traced = traced.as_deref();
    let call = async move {
        let send = attempts.answer(first, body);
        let answer = match key {
            // A backend with a queue may take minutes for its head: longer than a claim lives by itself.
            Some(key) => {
                let every = of.settings().journal.claim / RENEWALS;
                idempotency::keep(&*of.shared.journal, key, its, every, send).await
            }
            None => send.await,
        };
        if let (Some(key), Some(body)) = (key, its.body_digest()) {
            // Compared again with the running generation anyway; this is for when that is over.
            let _ = of
                .shared
                .journal
                .claim_body(key.0, its.spec().id, body, steady_now())
                .await;
        }
        let judged = judge(answer, &attempts);
        if let (Some(traced), Answer::Other(answer)) = (traced, &judged) {
            traced.is_none(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        }
        judged
    };
    // The client may have gone meanwhile; then nobody needs to be told.
    let run = pin!(producer.run(call, onward, |told| drop(tell.send(told))));
    let Some(key) = key else {
        return run.await;
    };
    let free = || async {
        let _ = app.shared.journal.release(key.0, handle.spec().id).await;
    };
    // Nobody can attach to what has no log. That it has none shows here only; elsewhere the claim would be waited for.
    let free_if_degraded = async {
        if handle.decided().await == Head::Streaming(Durability::Degraded) {
            free().await;
        }
    };
    tokio::join!(run, free_if_degraded);
    // What another replica goes on with keeps its key.
    if handle.head() == Head::Dropped || (handle.has_failed() && !handle.is_lost()) {
        free().await;
    }
}

/// How often a claim is renewed in the time after which it would lapse.
const RENEWALS: u32 = 3;

/// An event stream becomes a generation; everything else is passed through or told.
fn judge(
    answer: Result<Response<Source>, UpstreamError>,
    attempts: &Attempts,
) -> Answer<AttemptSource, HeadOf, Other> {
    let Spec { id, request_id, .. } = attempts.handle().spec();
    let response = match answer {
        Ok(response) => response,
        Err(error) => {
            return Answer::Other(Err(forward::unanswered(&error, request_id, Some(*id))));
        }
    };
    if response.status() != StatusCode::OK || !head::is_event_stream(response.headers()) {
        return Answer::Other(Ok(response));
    }
    let Some(coding) = coding(response.headers()) else {
        let message = "the backend sent an event stream in a content coding that was not asked for";
        return Answer::Other(Err(Error::new(ErrorCode::BackendBadResponse, message)));
    };
    let (mut parts, source) = response.into_parts();
    Answer::Stream {
        leg: attempts.leg(),
        source: AttemptSource::new(&mut parts, source, coding),
        keep: cross_origin::kept(&parts.headers),
        head: (parts.status, parts.headers),
    }
}

/// The coding of a body, if it has one. `None`: it is one that cannot be undone.
pub(crate) fn coding(headers: &HeaderMap) -> Option<Option<Coding>> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = codings.next().map(HeaderValue::as_bytes);
    match (coding.map(Coding::parse), codings.next()) {
        (None, _) | (Some(Ok(Coding::Identity)), None) => Some(None),
        (Some(Ok(coding)), None) => Some(Some(coding)),
        // Several fields are several codings, one upon the other.
        (Some(Err(_)), _) | (_, Some(_)) => None,
    }
}
