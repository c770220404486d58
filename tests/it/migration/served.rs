//! Engines of one group behind a server that is a process of its own, as operators have it.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, End, GROUP, Process, Response, blocks, patience};
use tokio::time::sleep;

use super::answer::{Answer, CHAT, request};

/// How often one looks.
const LOOK: Duration = Duration::from_millis(10);

/// A served process, and the engines behind it, named `a`, `b` and so on. Server and engines have their descriptors apart.
pub(super) struct Served {
    pub(super) client: Client,
    pub(super) admin: Client,
    pub(super) mocks: Vec<Mock>,
    _process: Process,
}

impl Served {
    /// So many that say this, of a group that may go on by ids.
    pub(super) async fn start(script: &Script, count: usize) -> Self {
        let mut mocks = Vec::new();
        for _ in 0..count {
            mocks.push(Mock::start(script.clone()).await.expect("a port"));
        }
        let named = mocks.iter().zip('a'..);
        let backends = named.map(|(mock, name)| {
            let url = mock.url();
            format!("--backend={url},name={name},engine=vllm,group={GROUP}")
        });
        let mut arguments: Vec<String> = backends.collect();
        arguments.push(format!("--vouched={GROUP}"));
        // Nobody is down by chance while a story is told.
        arguments.push("--health-every=1h".to_owned());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut process = Process::serve(&arguments);
        Self {
            client: process.client().await,
            admin: process.admin().await,
            mocks,
            _process: process,
        }
    }

    /// Runs a command that asks it. Gives the exit code and what it has said.
    pub(super) async fn command(&self, arguments: &[&str]) -> (i32, String) {
        let admin = format!("http://{}", self.admin.addr);
        let ran = Process::run_with(arguments, &[("STREAMWELD_ADMIN", &admin)]);
        let (status, output) = ran.ended().await;
        (status.code().expect("an exit code"), output)
    }
}

/// An answer that has begun, and has been read so far.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) shown: Vec<u8>,
    pub(super) response: Response,
}

impl Begun {
    /// Asks with these members, and reads so many events.
    pub(super) async fn chat(client: &Client, more: &Value, events: usize) -> Self {
        let body = request(CHAT, more).to_string();
        let mut response = client.send("POST", CHAT, &body).await;
        assert_eq!(response.status, 200);
        let shown = response.body.blocks(events).await;
        let id = response.id();
        Self {
            id,
            shown,
            response,
        }
    }

    /// What every reader of it has been shown in the end, and how the body ended.
    pub(super) async fn ended(mut self) -> (Answer, End) {
        let (rest, end) = self.response.body.rest().await;
        self.shown.extend(rest);
        (Answer::of(&self.shown), end)
    }
}

/// Tools that may be called, with which an answer does not move.
pub(super) fn with_tools() -> Value {
    json!({"tools": [{"type": "function", "function": {"name": "f"}}]})
}

/// Asks the admin listener. Gives the status with the answer.
pub(super) async fn post(admin: &Client, path: &str) -> (u16, Value) {
    let response = admin.send("POST", path, "").await;
    (response.status, response.json().await)
}

/// What the server says of a backend, once this holds.
pub(super) async fn backend(admin: &Client, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/admin/backends/{name}");
    let until = async {
        loop {
            let shown = admin.get(&path).await.json().await;
            if holds(&shown) {
                return shown;
            }
            sleep(LOOK).await;
        }
    };
    patience(until).await
}

/// What a generation that has ended tells of its moves, in order.
pub(super) async fn moves(client: &Client, id: &str) -> Vec<Value> {
    let control = client.with("x-streamweld-events", "control");
    let (shown, _) = control.events(id).await.all().await;
    let mut moves = blocks(&shown);
    moves.retain(|block| block.event.as_deref() == Some("streamweld.migration"));
    let payloads = moves.iter().map(|block| block.data.as_deref());
    payloads
        .map(|data| serde_json::from_str(data.expect("data")).expect("JSON"))
        .collect()
}
