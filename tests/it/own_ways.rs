//! Resuming in the dialect's own way (protocol.md 6.1, 6.8): by the number that an event of a response has, and by the
//! count of events that were seen, for clients that know nothing of ids of ours.

mod counts;
mod lives;
mod numbers;
mod whose;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use streamweld_generation::OrphanPolicy;
use streamweld_journal::Memory;
use streamweld_journal::faulty::{Faulty, Op};
use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Over, Pair, Response, Setup, ask, blocks, ends, numbered, patience,
    question, state, wait_end, wait_seq,
};
use tokio::time::timeout;

const RESPONSES: Dialect = Dialect::OpenAiResponses;
/// Long enough to be a secret of its own.
const NAME: &str = "resp_0123456789abcdef0123456789abcdef";

fn script() -> Script {
    Script::text("Good morning to you").id(NAME)
}

fn events(script: &Script, dialect: Dialect) -> Vec<Bytes> {
    script.expected(&Ask::read(dialect, CHAT.as_bytes(), 1))
}

async fn respond(client: &Client) -> Response {
    client.send("POST", RESPONSES.path(), CHAT).await
}

/// What the SDKs of OpenAI send.
async fn retrieve(client: &Client, after: impl std::fmt::Display) -> Response {
    let target = format!("/v1/responses/{NAME}?stream=true&starting_after={after}");
    client.get(&target).await
}

/// An answer of the backend, whose word it is that there is no such response.
async fn assert_the_backends(harness: &Harness, answer: Response) {
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("x-streamweld-stream-id"), None);
    let error = answer.json().await;
    assert_ne!(error["error"]["type"], "streamweld_error");
    let last = harness.mock.recorder().count() - 1;
    let request = harness.mock.recorder().request(last).expect("it came");
    assert_eq!(request.method, "GET");
}

fn short_hold(harness: Setup) -> Setup {
    harness.config(|config| config.edge.hold = Duration::from_millis(200))
}

#[track_caller]
fn number(data: Option<String>) -> Value {
    let data: Value = serde_json::from_str(&data.expect("data")).expect("JSON");
    data["sequence_number"].clone()
}
