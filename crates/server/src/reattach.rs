//! A background response that broke off goes on where it was (protocol.md 8.6).
//!
//! The backend goes on with such a response without anybody who reads it, and gives the rest of it to whoever asks. So it is
//! asked for that, and not for the answer again. What it gives is believed only when its first event is the very next one.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use streamweld_generation::{Again, ByteSource, Durability, Handle, Head, Read};
use streamweld_journal::{Seq, Window};
use streamweld_sse::{Decoder, Limits};
use tokio::time::sleep;

use crate::app::App;
use crate::attempts::{Attempts, seen};
use crate::counted::number_of;
use crate::dispatch;
use crate::head;
use crate::request_body::RequestBody;
use crate::responses::{first_id, id_of};
use crate::source::AttemptSource;

/// How long each try waits. A backend whose connections were cut is mostly there at once; one that was restarted is not.
const WAITS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// How the answer to this request goes on, if it breaks off.
pub(crate) fn again(
    app: &Arc<App>,
    handle: &Arc<Handle>,
    attempts: &Arc<Attempts>,
) -> Again<AttemptSource> {
    let (app, handle) = (Arc::clone(app), Arc::clone(handle));
    let request = attempts.request();
    let (target, headers) = (request.uri().clone(), about_no_body(request.headers()));
    let attempts = Arc::clone(attempts);
    Box::new(move || {
        // What is not journaled has no readers that could come back for the rest.
        if !handle.is_background() || handle.head() != Head::Streaming(Durability::Durable) {
            return None;
        }
        let number = last_number(handle.window())?;
        let (app, handle) = (Arc::clone(&app), Arc::clone(&handle));
        let (target, headers) = (target.clone(), headers.clone());
        let attempts = Arc::clone(&attempts);
        Some(Box::pin(async move {
            let id = first_id(handle.window()).await?;
            let mut request = Request::new(());
            *request.method_mut() = Method::GET;
            *request.uri_mut() = rest_of(&target, &id, number)?;
            *request.headers_mut() = headers;
            let rest = rest(&app, &attempts, &handle, &request, &id, number).await;
            let stream_id = handle.spec().id;
            if rest.is_some() {
                tracing::info!(%stream_id, "a background response goes on after a cut");
            } else {
                tracing::debug!(%stream_id, "the backend does not give the rest of a response");
            }
            rest
        }))
    })
}

/// The fields of a request that are not about its body, nor about this one request.
fn about_no_body(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [
        CONTENT_TYPE,
        CONTENT_LENGTH,
        CONTENT_ENCODING,
        head::IDEMPOTENCY_KEY,
        head::LAST_EVENT_ID,
        head::RETRY_COUNT,
    ] {
        headers.remove(name);
    }
    headers
}

/// The number of the last event, where it has one.
fn last_number(window: &Window) -> Option<u64> {
    let before = Seq::new(window.received().get().saturating_sub(1));
    let block = window.staged(before).runs.concat();
    let max_event = block.len();
    let mut decoder = Decoder::new(Limits { max_event });
    let event = decoder.decode(&mut &block[..]).ok()??;
    number_of(&event)
}

/// Where the rest is.
fn rest_of(target: &Uri, id: &str, number: u64) -> Option<Uri> {
    let query = target
        .query()
        .map_or(String::new(), |query| format!("{query}&"));
    let path = target.path();
    let target = format!("{path}/{id}?{query}stream=true&starting_after={number}");
    // An id that no path can hold names nothing.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let is_name = id.bytes().all(is_plain) && id.bytes().any(|byte| byte.is_ascii_alphanumeric());
    let target: PathAndQuery = is_name.then(|| target.parse().ok())??;
    Some(Uri::from(target))
}

async fn rest(
    app: &App,
    attempts: &Attempts,
    handle: &Handle,
    request: &Request<()>,
    id: &str,
    number: u64,
) -> Option<AttemptSource> {
    for wait in WAITS {
        sleep(wait).await;
        match ask(app, attempts, request, id, number).await {
            Ok(source) => {
                handle.attempt(&handle.backend());
                return Some(source);
            }
            Err(No::Refused) => return None,
            Err(No::NotNow) => {
                tracing::debug!(stream_id = %handle.spec().id, "no answer to the wish for a rest");
            }
        }
    }
    None
}

/// Why there is no rest.
enum No {
    /// The backend has none, or it is another's.
    Refused,
    /// It may be there the next time.
    NotNow,
}

async fn ask(
    app: &App,
    attempts: &Attempts,
    request: &Request<()>,
    id: &str,
    number: u64,
) -> Result<AttemptSource, No> {
    let mut request = request.clone().map(|()| RequestBody::empty());
    // Nobody else has it.
    let permit = attempts.again_there().ok_or(No::Refused)?;
    let next = attempts.handle().attempts() + 1;
    let attempt = attempts.traced(permit.member(), next, request.headers_mut());
    let Ok(response) = seen(attempt, app.send(permit, request).await) else {
        return Err(No::NotNow);
    };
    if response.status().is_server_error() {
        return Err(No::NotNow);
    }
    let is_stream =
        response.status() == StatusCode::OK && head::is_event_stream(response.headers());
    let Some(coding) = dispatch::coding(response.headers()).filter(|_| is_stream) else {
        return Err(No::Refused);
    };
    let source = AttemptSource::of(response, coding);
    follows(source, id, number, app.settings().generation.max_event).await
}

/// Reads up to the end of the first event, which has to be the next one of the same response.
async fn follows(
    mut source: AttemptSource,
    id: &str,
    number: u64,
    max_event: usize,
) -> Result<AttemptSource, No> {
    let mut decoder = Decoder::new(Limits { max_event });
    let mut ahead = Vec::new();
    // What is no event is not counted by the decoder.
    while ahead.len() <= max_event.saturating_mul(2) {
        let before = ahead.len();
        let read = poll_fn(|cx| source.poll_read(cx, &mut |bytes| ahead.extend_from_slice(bytes)));
        match read.await {
            Read::Data => {}
            Read::End | Read::Cut(_) => return Err(No::NotNow),
            Read::Unusable(..) => return Err(No::Refused),
        }
        match decoder.decode(&mut &ahead[before..]) {
            Ok(Some(event)) => {
                let is_next = number_of(&event) == number.checked_add(1);
                let is_same = id_of(&event).is_none_or(|other| other == id);
                if is_next && is_same {
                    return Ok(source.behind(ahead));
                }
                return Err(No::Refused);
            }
            Ok(None) => {}
            Err(_) => return Err(No::Refused),
        }
    }
    Err(No::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, id: &str, expected: Option<&str>) {
        let rest = rest_of(&target.parse().unwrap(), id, 7);
        assert_eq!(rest.map(|rest| rest.to_string()).as_deref(), expected);
    }

    #[test]
    fn the_rest_lies_below_the_path_of_the_request() {
        let all = Some("/v1/responses/resp_1?stream=true&starting_after=7");
        check("/v1/responses", "resp_1", all);
        let query = Some("/openai/responses/a.b~c-d?api-version=1&stream=true&starting_after=7");
        check("/openai/responses?api-version=1", "a.b~c-d", query);
    }

    #[test]
    fn an_id_that_could_lead_elsewhere_leads_nowhere() {
        for id in [
            "", ".", "..", "../admin", "a/b", "a?b", "a#b", "a%2fb", "a b", "é",
        ] {
            check("/v1/responses", id, None);
        }
    }
}
