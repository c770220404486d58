//! The console: a page for operators on the admin listener (protocol.md 12.5).
//!
//! It is three files that hold nothing of anybody, so whoever reaches the listener may load them. What it shows it asks of
//! `/admin/*`, like everybody else.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response};

use crate::body::Body;

/// A file of it, by its path.
pub(crate) fn file(path: &str) -> Option<Response<Body>> {
    let (media, text) = match path {
        "/console" => (
            "text/html; charset=utf-8",
            include_str!("console/index.html"),
        ),
        "/console/app.js" => (
            "text/javascript; charset=utf-8",
            include_str!("console/app.js"),
        ),
        "/console/style.css" => ("text/css; charset=utf-8", include_str!("console/style.css")),
        _ => return None,
    };
    let mut response = Response::new(Body::full(text));
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    confine(head);
    Some(response)
}

/// Nothing from elsewhere is loaded or asked, nobody frames it, and it is not kept: the next version is asked for at once.
fn confine(head: &mut HeaderMap) {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    head.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    head.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    head.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}
