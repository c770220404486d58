//! What somebody may try who means harm, over real sockets and in both directions (docs/security.md).
//!
//! What other stories hold already is not told again here: docs/security.md names the tests of each attack, wherever
//! they stand. A test that has the number of an attack in its name is in its row.

mod backend;
mod contents;
mod floods;
mod hosts;
mod http2;
mod keys;
mod labels;
mod limits;
mod lines;
mod listeners;
mod pages;
mod panics;
mod secrets;
mod strangers;

use std::time::Duration;

use streamweld_mock::{Dialect, Script};
use streamweld_tests::{Client, End, Harness, Process, ask, events, patience};
use tokio::time::sleep;

/// Whoever means well is served as ever.
async fn assert_serves(client: &Client) {
    let (body, end) = ask(client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
}

/// Waits until something is so.
async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let reached = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    patience(reached).await;
}

async fn start() -> Harness {
    Harness::start(Script::tokens(3)).await
}

/// The binary in front of a mock, with these arguments beside.
async fn process(script: Script, arguments: &[&str]) -> (streamweld_mock::Mock, Process) {
    let mock = streamweld_mock::Mock::start(script).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let process = Process::serve(&[&[backend.as_str()], arguments].concat());
    (mock, process)
}
