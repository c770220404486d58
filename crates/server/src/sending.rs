//! A request on its way to a backend that may have a credential of its own.

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use streamweld_upstream::fleet::{Credential, Permit};
use streamweld_upstream::{Source, UpstreamError};

use crate::app::App;
use crate::request_body::RequestBody;

/// The one credential that the backend itself has given.
const SESSION: &str = "mcp-session-id";

impl App {
    /// Sends a request. To a backend with a credential of its own nothing goes by which callers prove themselves.
    pub(crate) async fn send(
        &self,
        permit: Permit,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Source>, UpstreamError> {
        if matches!(permit.member().credential(), Credential::Owned(_)) {
            for name in self.credentials.names().filter(|name| *name != SESSION) {
                request.headers_mut().remove(name);
            }
            if let Some(uri) = without_key(request.uri()) {
                *request.uri_mut() = uri;
            }
        }
        permit.send(&self.client, request).await
    }
}

/// The same target without the key that Gemini's clients may write there. `None`: there is none.
pub(crate) fn without_key(uri: &Uri) -> Option<Uri> {
    let is_key = |part: &&str| *part == "key" || part.starts_with("key=");
    let query = uri.query()?;
    if !query.split('&').any(|part| is_key(&part)) {
        return None;
    }
    let rest: Vec<&str> = query.split('&').filter(|part| !is_key(part)).collect();
    let target = match rest.is_empty() {
        true => uri.path().to_owned(),
        false => format!("{}?{}", uri.path(), rest.join("&")),
    };
    let target: PathAndQuery = target.parse().expect("a part of a target is one");
    Some(Uri::from(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_query_is_taken_out() {
        for (target, expected) in [
            ("/a?alt=sse&key=k", Some("/a?alt=sse")),
            ("/a?key=k", Some("/a")),
            ("/a?key=k&b=1&key", Some("/a?b=1")),
            ("/a?monkey=1&keys=2", None),
            ("/a", None),
        ] {
            let without = without_key(&target.parse().unwrap());
            let without = without.map(|uri| uri.to_string());
            assert_eq!(without.as_deref(), expected, "{target}");
        }
    }
}
