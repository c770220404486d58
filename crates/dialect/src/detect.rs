//! From a request's method and target to its dialect.
//!
//! The end of the path decides, so prefixes (`/v1`, a deployment, a gateway's route) do not matter; of
//! Gemini also the query, without which its answer is one JSON list.
//! It says only how a stream *would* be read; whether there is one is for the response to say.

use http::Method;

use crate::{Dialect, RequestShape};

/// The dialect of a request, by the two parts of its target.
pub fn detect(method: &Method, path: &str, query: Option<&str>) -> Dialect {
    if method != Method::POST {
        return Dialect::Generic;
    }
    // The longer ending first: every chat path also ends like a legacy one.
    if path.ends_with("/chat/completions") {
        Dialect::OpenAiChat
    } else if path.ends_with("/completions") {
        Dialect::OpenAiCompletions
    } else if path.ends_with("/responses") {
        Dialect::OpenAiResponses
    } else if path.ends_with("/messages") {
        Dialect::AnthropicMessages
    } else if path.ends_with(GEMINI_METHOD) && asks_for_events(query) {
        Dialect::Gemini
    } else {
        Dialect::Generic
    }
}

/// The model that the path of a request names, which is so in Gemini's alone.
pub fn model_in_path(dialect: Dialect, path: &str) -> Option<&str> {
    if dialect != Dialect::Gemini {
        return None;
    }
    let (_, model) = path.strip_suffix(GEMINI_METHOD)?.rsplit_once('/')?;
    (1..=RequestShape::MODEL_LIMIT)
        .contains(&model.len())
        .then_some(model)
}

const GEMINI_METHOD: &str = ":streamGenerateContent";

fn asks_for_events(query: Option<&str>) -> bool {
    let mut parameters = query.unwrap_or_default().split('&');
    parameters.any(|parameter| parameter == "alt=sse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: Method, target: &str, expected: Dialect) {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        assert_eq!(detect(&method, path, query), expected, "{method} {target}");
    }

    #[test]
    fn the_end_of_the_path_decides() {
        check(Method::POST, "/v1/chat/completions", Dialect::OpenAiChat);
        check(
            Method::POST,
            "/openai/deployments/m/chat/completions",
            Dialect::OpenAiChat,
        );
        check(Method::POST, "/v1/completions", Dialect::OpenAiCompletions);
        check(Method::POST, "/v1/responses", Dialect::OpenAiResponses);
        check(
            Method::POST,
            "/openai/responses?api-version=1",
            Dialect::OpenAiResponses,
        );
        check(Method::POST, "/v1/messages", Dialect::AnthropicMessages);
        check(
            Method::POST,
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            Dialect::Gemini,
        );
        check(
            Method::POST,
            "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?key=k&alt=sse&x",
            Dialect::Gemini,
        );
    }

    #[test]
    fn the_path_of_gemini_names_the_model() {
        let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
        assert_eq!(
            model_in_path(Dialect::Gemini, path),
            Some("gemini-2.5-flash")
        );
        assert_eq!(model_in_path(Dialect::Generic, path), None);
        let long = format!("/{}:streamGenerateContent", "m".repeat(257));
        for path in ["/:streamGenerateContent", ":streamGenerateContent", &long] {
            assert_eq!(model_in_path(Dialect::Gemini, path), None, "{path}");
        }
    }

    #[test]
    fn everything_else_is_generic() {
        check(Method::GET, "/v1/chat/completions", Dialect::Generic);
        check(Method::GET, "/v1/responses", Dialect::Generic);
        check(Method::POST, "/v1/responses/r/cancel", Dialect::Generic);
        check(
            Method::POST,
            "/v1beta/models/m:streamGenerateContent",
            Dialect::Generic,
        );
        check(
            Method::POST,
            "/v1beta/models/m:streamGenerateContent?alt=json",
            Dialect::Generic,
        );
        check(
            Method::POST,
            "/v1beta/models/m:generateContent?alt=sse",
            Dialect::Generic,
        );
        check(Method::POST, "/v1/messages/count_tokens", Dialect::Generic);
        check(Method::POST, "/v1/mycompletions", Dialect::Generic);
        check(Method::POST, "/completion", Dialect::Generic);
        check(Method::POST, "", Dialect::Generic);
    }
}
