//! What is not a generation passes through as it is (protocol.md 4.1, 4.2).

mod bodies;
mod feeds;
mod fields;
mod targets;
mod upgrades;

use serde_json::Value;
use streamweld_tests::Response;

/// What the mock saw of a request to `/echo…`.
async fn echo(response: Response) -> Value {
    assert_eq!(response.status, 200);
    response.json().await
}

fn headers(echo: &Value) -> Vec<(String, String)> {
    serde_json::from_value(echo["headers"].clone()).expect("a list of fields")
}

fn all<'a>(headers: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    headers
        .iter()
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect()
}
