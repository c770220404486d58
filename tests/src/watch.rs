//! Looking at a generation from outside until it is as the story needs it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::client::{Client, patience};

/// The state of a generation (protocol.md 6.6).
///
/// # Panics
/// When the answer is no JSON.
pub async fn state(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/streams/{id}")).await.json().await
}

/// The value of one line of the metrics; 0 where there is none.
///
/// # Panics
/// When the admin listener has no metrics to read.
pub async fn metric(admin: &Client, line: &str) -> i64 {
    let response = admin.get("/metrics").await;
    assert_eq!(response.status, 200);
    let metrics = String::from_utf8(response.all().await.0).expect("text");
    metrics
        .lines()
        .find_map(|found| found.strip_prefix(line)?.strip_prefix(' '))
        .map_or(0, |value| value.parse().expect("a number"))
}

/// Asks for the state until something about it holds.
///
/// # Panics
/// When it never does.
pub async fn wait_state(client: &Client, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let until = async {
        loop {
            let state = state(client, id).await;
            if holds(&state) {
                return state;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    patience(until).await
}

/// Waits until entry `seq` is committed.
pub async fn wait_seq(client: &Client, id: &str, seq: u64) -> Value {
    wait_state(client, id, |state| state["last_seq"].as_u64() >= Some(seq)).await
}

/// Waits until a generation has ended.
pub async fn wait_end(client: &Client, id: &str) -> Value {
    wait_state(client, id, |state| !state["terminal"].is_null()).await
}
