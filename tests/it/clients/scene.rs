//! Servers, what they are expected to show, and networks that cut.

use std::net::SocketAddr;

use streamweld_mock::{Cut, Dialect, FaultRelay, RelayPlan, RelayStep, Request, Script};
use streamweld_tests::{Block, CHAT, Harness, Setup, blocks, patience};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What an application has to listen for beside `message`.
pub(super) const ANTHROPIC_EVENTS: [&str; 4] = [
    "message_start",
    "content_block_start",
    "ping",
    "content_block_delta",
];

/// The data of the events that the backend's answer to `request` holds.
pub(super) fn expected(script: &Script, request: &Request, dialect: Dialect) -> Vec<String> {
    let wire = script.expected(&request.ask(dialect)).concat();
    blocks(&wire)
        .into_iter()
        .filter_map(|block| block.data)
        .collect()
}

/// Cuts the next connections after so many bytes of their answers.
pub(super) async fn cutting(target: SocketAddr, after: &[u64]) -> FaultRelay {
    let relay = FaultRelay::start(target).await.expect("a port");
    for (number, bytes) in after.iter().enumerate() {
        // A reset takes what was not read yet with it; the first answer has to leave a cursor behind.
        let cut = if number % 2 == 0 { Cut::Fin } else { Cut::Rst };
        relay.push_plan(
            RelayPlan::new()
                .to_client(RelayStep::Pass(*bytes))
                .to_client(RelayStep::Cut(cut)),
        );
    }
    relay
}

/// The first request that reached the backend.
pub(super) fn first(harness: &Harness) -> Request {
    harness.mock.recorder().request(0).expect("it came")
}

/// A server for which `/feed` is a durable GET route.
pub(super) async fn with_feed(script: &Script) -> Harness {
    Setup::new(script.clone())
        .config(|config| config.generation.durable_get = vec!["/feed".to_owned()])
        .start()
        .await
}

/// A generation that nobody reads any more.
pub(super) async fn left_alone(harness: &Harness, dialect: Dialect) -> String {
    let response = harness.client.send("POST", dialect.path(), CHAT).await;
    response.id()
}

pub(super) fn events_of(id: &str) -> String {
    format!("/v1/streams/{id}/events")
}

/// A relay that closes the first connection in the replay that `head` asks for, right behind the id line of `block`.
pub(super) async fn cut_behind(harness: &Harness, head: &str, block: &Block) -> FaultRelay {
    let mut stream = TcpStream::connect(harness.client.addr)
        .await
        .expect("connects");
    let request = format!("{head}host: {}\r\n\r\n", harness.client.addr);
    stream.write_all(request.as_bytes()).await.expect("is sent");
    let line = format!("id: {}\n", block.id.as_deref().expect("an id"));
    let mut answer = Vec::new();
    // A replay is the same bytes each time, head and framing included.
    let behind = loop {
        let found = answer
            .windows(line.len())
            .position(|bytes| bytes == line.as_bytes());
        match found {
            Some(at) => break at + line.len(),
            None => {
                let read = patience(stream.read_buf(&mut answer)).await;
                assert!(
                    read.expect("it can be read") > 0,
                    "the answer has the block"
                );
            }
        }
    };
    let relay = FaultRelay::start(harness.client.addr)
        .await
        .expect("a port");
    relay.push_plan(
        RelayPlan::new()
            .to_client(RelayStep::Pass(behind as u64))
            .to_client(RelayStep::Cut(Cut::Fin)),
    );
    relay
}
