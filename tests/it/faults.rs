//! What backends, networks and clients do to a stream, one story for each fault. The numbers are those of the list of
//! faults that this project tests itself against.
//!
//! In each story, whoever reads sees every event once and in order, and one terminal; `[DONE]` only after a real
//! finish.

mod codings;
mod engine;
mod framing;
mod readers;

use std::time::Duration;

use serde_json::Value;
use streamweld_mock::Script;
use streamweld_tests::{Client, Setup, patience};
use streamweld_upstream::Backend;

/// Waits until a generation is in this state.
async fn reaches(client: &Client, id: &str, status: &str) -> Value {
    patience(async {
        loop {
            let state = client.get(&format!("/v1/streams/{id}")).await.json().await;
            if state["status"] == status {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn stop(client: &Client, id: &str) -> (u16, Value) {
    let response = client
        .send("POST", &format!("/v1/streams/{id}/stop"), "")
        .await;
    (response.status, response.json().await)
}

/// A server in front of the backend at this URL.
fn in_front_of(url: &str) -> Setup {
    let url = url.parse().expect("a URL");
    Setup::new(Script::new())
        .config(move |config| config.backends = vec![Backend::named("llm", url).into()])
}
