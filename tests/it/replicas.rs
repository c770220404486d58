//! Several replicas over one journal (protocol.md 8.5): to a client it makes no difference which of them answers.

/// Each of these stories is told over journals that are linked in this process, and over a real Redis.
macro_rules! over_both {
    ($($story:ident)*) => {
        mod linked {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story(Over::Link).await;
                }
            )*
        }

        mod redis {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story(Over::Redis).await;
                }
            )*
        }
    };
}

mod keys;
mod readers;
mod reading;
mod stopping;

use std::time::Duration;

use streamweld_mock::{Ask, Dialect, Script};
use streamweld_server::Config;
use streamweld_tests::{CHAT, Client, End, Pair, Response, numbered, patience, wait_seq};
use tokio::net::TcpStream;

const PATH: &str = "/v1/chat/completions";

/// Answers of so many words that stand still after `events` events, until the gate `go` opens.
fn gated(tokens: usize, events: usize) -> Script {
    Script::tokens(tokens).id("fixed").gate_after(events, "go")
}

/// What an uninterrupted reader of an answer to [`CHAT`] is given.
fn whole(script: &Script, id: &str) -> Vec<u8> {
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    numbered(id, &script.expected(&ask))
}

/// Short enough to be waited for.
fn short_hold(config: &mut Config) {
    config.edge.hold = Duration::from_millis(200);
}

async fn stop(client: &Client, id: &str) -> Response {
    let path = format!("/v1/streams/{id}/stop");
    client.send("POST", &path, "").await
}

/// Begins an answer at the first replica and reads so many events. Gives its id and its reader.
async fn begin(pair: &Pair, client: &Client, events: usize) -> (String, Response) {
    let mut response = client.chat().await;
    assert_eq!(response.status, 200);
    let id = response.id();
    response.body.blocks(events).await;
    wait_seq(client, &id, events as u64 + 1).await;
    assert_eq!(pair.mock.recorder().count(), 1);
    (id, response)
}

async fn answer(stream: TcpStream) -> (String, Vec<u8>) {
    let response = patience(Response::read(stream)).await.expect("an answer");
    assert_eq!(response.status, 200);
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    (id, body)
}
