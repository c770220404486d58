//! From a request's head to its dialect.
//!
//! The fields of MCP decide first, then the end of the path, so prefixes (`/v1`, a deployment, a gateway's route) do not
//! matter; of Gemini also the query, without which its answer is one JSON list.
//! It says only how a stream *would* be read; whether there is one is for the response to say.

use http::{HeaderMap, HeaderName, Method};

use crate::{Dialect, RequestShape};

const MCP_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The last version in which a lost connection is no cancel.
const LAST_DURABLE_MCP: &str = "2025-11-25";

/// The dialect of a request, by the two parts of its target and its fields. `None`: its answer must not be made
/// durable, because a client that closes it means to cancel.
pub fn detect(
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Dialect> {
    let is_mcp = headers.contains_key(MCP_VERSION) || headers.contains_key(MCP_SESSION);
    if is_mcp {
        return is_durable_mcp(headers).then_some(Dialect::Mcp);
    }
    Some(by_target(method, path, query))
}

/// Whether a request of MCP is of a version whose streams may be made durable: from 2026-07-28 on a client that closes
/// one cancels, so a version that is not known to be older is not. Without the field it is 2025-03-26, by the standard.
pub fn is_durable_mcp(headers: &HeaderMap) -> bool {
    let is_old = |version: &[u8]| is_date(version) && version <= LAST_DURABLE_MCP.as_bytes();
    headers
        .get_all(MCP_VERSION)
        .iter()
        .all(|version| is_old(version.as_bytes()))
}

/// `2025-11-25` and the like.
fn is_date(version: &[u8]) -> bool {
    let is_written = version.len() == LAST_DURABLE_MCP.len()
        && version.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_written
        && (b"01"..=b"12").contains(&&[version[5], version[6]])
        && (b"01"..=b"31").contains(&&[version[8], version[9]])
}

fn by_target(method: &Method, path: &str, query: Option<&str>) -> Dialect {
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
        let detected = detect(&method, path, query, &HeaderMap::new());
        assert_eq!(detected, Some(expected), "{method} {target}");
    }

    #[track_caller]
    fn check_mcp(fields: &[(&HeaderName, &str)], expected: Option<Dialect>) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        for method in [Method::POST, Method::GET] {
            for path in ["/mcp", "/v1/messages"] {
                assert_eq!(detect(&method, path, None, &headers), expected);
            }
        }
    }

    #[test]
    fn the_version_decides_whether_mcp_is_durable() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            check_mcp(&[(&MCP_VERSION, version)], Some(Dialect::Mcp));
            check_mcp(
                &[(&MCP_VERSION, version), (&MCP_SESSION, "s")],
                Some(Dialect::Mcp),
            );
        }
        // Without a version it is an old one.
        check_mcp(&[(&MCP_SESSION, "s")], Some(Dialect::Mcp));
        for version in [
            "2025-11-26",
            "2026-07-28",
            "2027-01-01",
            "DRAFT-2025",
            "2025-11",
            "0000-00-00",
            "2025-13-01",
            "2025-01-32",
            "",
            "2025-1-250",
        ] {
            check_mcp(&[(&MCP_VERSION, version)], None);
            check_mcp(
                &[(&MCP_VERSION, "2025-11-25"), (&MCP_VERSION, version)],
                None,
            );
        }
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
