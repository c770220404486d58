//! Header fields between two connections: what stays on its hop, and what a durable response says.

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    COOKIE, ETAG, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use streamweld_generation::{CredentialHeaders, Durability};
use streamweld_journal::{Level, StreamId};

use crate::cross_origin::expose_ours;

pub(crate) const STREAM_ID: HeaderName = HeaderName::from_static("x-streamweld-stream-id");
pub(crate) const DURABILITY: HeaderName = HeaderName::from_static("x-streamweld-durability");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-streamweld-request-id");
pub(crate) const RESUME_URL: HeaderName = HeaderName::from_static("x-streamweld-resume-url");
pub(crate) const CAPABILITY: HeaderName = HeaderName::from_static("x-streamweld-capability");
pub(crate) const EVENTS: HeaderName = HeaderName::from_static("x-streamweld-events");
pub(crate) const ORPHAN_POLICY: HeaderName = HeaderName::from_static("x-streamweld-orphan-policy");
pub(crate) const IDEMPOTENCY_KEY_OURS: HeaderName =
    HeaderName::from_static("x-streamweld-idempotency-key");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// What became of what a session asked for.
pub(crate) const VERDICT: HeaderName = HeaderName::from_static("x-streamweld-verdict");
/// The last entry that there is.
pub(crate) const TAIL: HeaderName = HeaderName::from_static("x-streamweld-tail");
pub(crate) const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Removes what RFC 9110 7.6.1 keeps on one hop: the fixed set, and what `Connection` names.
///
/// A client cannot use `Connection` to take away what a proxy or backend decides by: its credential, the target host,
/// or the framing.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap, credentials: &CredentialHeaders) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(|name| {
            !matches!(*name, HOST | CONTENT_LENGTH | COOKIE)
                && !credentials.names().any(|kept| kept == name.as_str())
        })
        .collect();
    for name in named {
        headers.remove(name);
    }
    let trailers = headers.get(TE).is_some_and(|te| {
        te.to_str().is_ok_and(|te| {
            te.split(',')
                .any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
        })
    });
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes what is between this proxy and its client only: our own fields, which a backend (another proxy like this, say)
/// must not set for us, and `Expect`, which was answered here.
pub(crate) fn strip_ours(headers: &mut HeaderMap) {
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-streamweld-"))
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
    headers.remove(EXPECT);
}

/// How durable a response is: the level too, where the journal is outside of this process.
fn named(durability: Durability, level: Option<Level>) -> HeaderValue {
    match (durability, level) {
        (Durability::Degraded, _) => HeaderValue::from_static("degraded"),
        (Durability::Durable, None) => HeaderValue::from_static("durable"),
        (Durability::Durable, Some(level)) => ascii(&format!("durable; level={level}")),
    }
}

/// The head of a durable response, from the backend's own fields (none for a reader that attached).
pub(crate) fn durable(
    mut headers: HeaderMap,
    stream: StreamId,
    durability: Durability,
    level: Option<Level>,
) -> HeaderMap {
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, ETAG, ACCEPT_RANGES] {
        headers.remove(name);
    }
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    }
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-store, no-transform"),
    );
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    match durability {
        Durability::Durable => _ = headers.insert(STREAM_ID, ascii(&stream.to_string())),
        Durability::Degraded => _ = headers.remove(STREAM_ID),
    }
    headers.insert(DURABILITY, named(durability, level));
    expose_ours(&mut headers);
    headers
}

/// A header value from text that is known to be visible ASCII.
pub(crate) fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("ids are visible ASCII")
}

/// Whether this is the media type of an event stream, whatever its parameters.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)))
            .collect()
    }

    #[track_caller]
    fn check(before: &[(&'static str, &'static str)], after: &[(&'static str, &'static str)]) {
        let mut map = headers(before);
        strip_hop_by_hop(&mut map, &CredentialHeaders::default());
        assert_eq!(map, headers(after));
    }

    #[test]
    fn the_fixed_set_stays_on_its_hop() {
        check(
            &[
                ("connection", "keep-alive"),
                ("keep-alive", "5"),
                ("upgrade", "h2c"),
                ("te", "gzip"),
                ("x-a", "1"),
            ],
            &[("x-a", "1")],
        );
    }

    #[test]
    fn te_trailers_stays() {
        check(&[("te", "gzip, Trailers")], &[("te", "trailers")]);
    }

    #[test]
    fn what_connection_names_stays_on_its_hop() {
        check(
            &[
                ("connection", "X-Hop, close"),
                ("x-hop", "1"),
                ("x-end", "2"),
            ],
            &[("x-end", "2")],
        );
    }

    #[test]
    fn connection_cannot_take_a_credential_away() {
        check(
            &[
                ("connection", "authorization, x-api-key, host, cookie"),
                ("authorization", "Bearer a"),
                ("x-api-key", "k"),
                ("host", "h"),
                ("cookie", "c"),
            ],
            &[
                ("authorization", "Bearer a"),
                ("x-api-key", "k"),
                ("host", "h"),
                ("cookie", "c"),
            ],
        );
    }

    #[test]
    fn event_streams_are_known_by_their_media_type() {
        for yes in [
            "text/event-stream",
            "text/event-stream; charset=utf-8",
            "Text/Event-Stream;x=1",
        ] {
            assert!(is_event_stream(&headers(&[("content-type", yes)])), "{yes}");
        }
        for no in ["text/event-streams", "application/json", ""] {
            assert!(!is_event_stream(&headers(&[("content-type", no)])), "{no}");
        }
    }
}
