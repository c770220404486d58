//! Which requests are ours, by their path (protocol.md 4.1), and how the answers to all others are read (7.1).

use http::{HeaderMap, Method, Uri};
use streamweld_dialect::{Dialect, detect, is_durable_mcp};

use crate::config::GenerationConfig;

/// Where a request on the data listener goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/v1/streams/{id}`; the id is one segment of 26 characters and not checked yet.
    State(&'a str),
    /// `/v1/streams/{id}/events`.
    Events(&'a str),
    /// `/v1/streams/{id}/stop`.
    Stop(&'a str),
    /// Another path below `/v1/streams/{id}/`, or a reserved one.
    Unknown,
    /// Not ours.
    Backend,
}

impl<'a> Route<'a> {
    pub(crate) fn of(path: &'a str) -> Self {
        let Some(rest) = path.strip_prefix("/v1/streams/") else {
            return Self::Backend;
        };
        if rest == "watch" {
            return Self::Unknown;
        }
        let (id, below) = rest
            .split_once('/')
            .map_or((rest, None), |(id, below)| (id, Some(below)));
        // Counted in bytes: an id that is ours is ASCII, and so is any spelling that could be meant for one.
        if id.len() != 26 {
            return Self::Backend;
        }
        match below {
            None => Self::State(id),
            Some("events") => Self::Events(id),
            Some("stop") => Self::Stop(id),
            Some(_) => Self::Unknown,
        }
    }
}

/// The dialect of the answer to a request. `None`: it passes through, whatever it is.
pub(crate) fn dialect(
    config: &GenerationConfig,
    method: &Method,
    target: &Uri,
    headers: &HeaderMap,
) -> Option<Dialect> {
    let path = target.path();
    let told = config
        .dialects
        .iter()
        .find(|route| matches(&route.path, path));
    match told.map(|route| route.dialect) {
        Some(Some(Dialect::Mcp)) => is_durable_mcp(headers).then_some(Dialect::Mcp),
        Some(told) => told,
        None => detect(method, path, target.query(), headers),
    }
}

/// Whether `path` is one of the GET paths that are made durable.
pub(crate) fn is_durable_get(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, path))
}

/// A pattern is a path, or a prefix that ends in `*`.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DialectRoute;

    const ID: &str = "01jcv5t0q4e8x2m7n9p3r6s1ab";

    #[test]
    fn our_paths() {
        assert_eq!(Route::of(&format!("/v1/streams/{ID}")), Route::State(ID));
        assert_eq!(
            Route::of(&format!("/v1/streams/{ID}/events")),
            Route::Events(ID)
        );
        assert_eq!(
            Route::of(&format!("/v1/streams/{ID}/stop")),
            Route::Stop(ID)
        );
        assert_eq!(Route::of(&format!("/v1/streams/{ID}/")), Route::Unknown);
        assert_eq!(
            Route::of(&format!("/v1/streams/{ID}/stop/now")),
            Route::Unknown
        );
        assert_eq!(Route::of("/v1/streams/watch"), Route::Unknown);
    }

    #[test]
    fn an_id_of_the_right_length_is_ours_even_when_it_is_wrong() {
        let upper = ID.to_ascii_uppercase();
        assert_eq!(
            Route::of(&format!("/v1/streams/{upper}")),
            Route::State(&upper)
        );
    }

    #[test]
    fn everything_else_is_the_backends() {
        for path in [
            "/",
            "/v1/streams",
            "/v1/streams/",
            "/v1/streams/lookup",
            "/v1/chat/completions",
            "/v1/streams/abc/events",
        ] {
            assert_eq!(Route::of(path), Route::Backend, "{path}");
        }
    }

    #[test]
    fn the_first_route_that_matches_stands_above_what_is_detected() {
        let route = |path: &str, dialect| DialectRoute {
            path: path.to_owned(),
            dialect,
        };
        let config = GenerationConfig {
            dialects: vec![
                route("/app/tools", Some(Dialect::Mcp)),
                route("/app/*", Some(Dialect::OpenAiChat)),
                route("/v1/messages", None),
            ],
            ..GenerationConfig::default()
        };
        let mut headers = HeaderMap::new();
        let check = |path: &'static str, headers: &HeaderMap, expected| {
            let target = Uri::from_static(path);
            assert_eq!(
                dialect(&config, &Method::POST, &target, headers),
                expected,
                "{path}"
            );
        };
        check("/app/tools", &headers, Some(Dialect::Mcp));
        check("/app/v1/messages", &headers, Some(Dialect::OpenAiChat));
        check("/v1/messages", &headers, None);
        check(
            "/v2/v1/messages",
            &headers,
            Some(Dialect::AnthropicMessages),
        );
        check("/other", &headers, Some(Dialect::Generic));
        headers.insert(
            "mcp-protocol-version",
            http::HeaderValue::from_static("2026-07-28"),
        );
        check("/app/tools", &headers, None);
        check("/app/other", &headers, Some(Dialect::OpenAiChat));
        check("/other", &headers, None);
    }

    #[test]
    fn durable_paths_are_exact_or_a_prefix() {
        let patterns = ["/feed".to_owned(), "/live/*".to_owned()];
        assert!(is_durable_get(&patterns, "/feed"));
        assert!(!is_durable_get(&patterns, "/feed/2"));
        assert!(is_durable_get(&patterns, "/live/1"));
        assert!(!is_durable_get(&patterns, "/live"));
    }
}
