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
