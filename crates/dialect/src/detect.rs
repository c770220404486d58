//! From a request's method and path to its dialect.
//!
//! The end of the path decides, so prefixes (`/v1`, a deployment, a gateway's route) do not matter.
//! It says only how a stream *would* be read; whether there is one is for the response to say.

use http::Method;

use crate::Dialect;

/// The dialect of a request. `path` is without its query.
pub fn detect(method: &Method, path: &str) -> Dialect {
    if method != Method::POST {
        return Dialect::Generic;
    }
    // The longer ending first: every chat path also ends like a legacy one.
    if path.ends_with("/chat/completions") {
        Dialect::OpenAiChat
    } else if path.ends_with("/completions") {
        Dialect::OpenAiCompletions
    } else if path.ends_with("/messages") {
        Dialect::AnthropicMessages
    } else {
        Dialect::Generic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: Method, path: &str, expected: Dialect) {
        assert_eq!(detect(&method, path), expected, "{method} {path}");
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
        check(Method::POST, "/v1/messages", Dialect::AnthropicMessages);
    }

    #[test]
    fn everything_else_is_generic() {
        check(Method::GET, "/v1/chat/completions", Dialect::Generic);
        check(Method::POST, "/v1/responses", Dialect::Generic);
        check(Method::POST, "/v1/messages/count_tokens", Dialect::Generic);
        check(Method::POST, "/v1/mycompletions", Dialect::Generic);
        check(Method::POST, "/completion", Dialect::Generic);
        check(Method::POST, "", Dialect::Generic);
    }
}
