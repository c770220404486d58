//! Read sessions: from where, as far and in the form that was asked for (protocol.md 6.9).

mod bounds;
mod forms;
mod gaps;
mod joins;
mod refused;
mod replicas;
mod shutdown;
mod starts;

use serde_json::Value;
use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{Block, CHAT, Client, End, Harness, Response, blocks, wait_end};

/// The request that makes a generation, again.
const AGAIN: (&str, &str) = ("/v1/chat/completions", CHAT);

/// A form of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Events,
    Batch,
    Json,
    Lines,
}

impl Form {
    const ALL: [Self; 4] = [Self::Events, Self::Batch, Self::Json, Self::Lines];

    /// The query that asks for it, with what is told of the session.
    fn query(self) -> &'static str {
        match self {
            Self::Events => "format=sse&events=session",
            Self::Batch => "format=batch",
            Self::Json => "format=json",
            Self::Lines => "format=ndjson",
        }
    }

    /// What one response of this form shows.
    fn read(self, body: &[u8]) -> Seen {
        let mut seen = Seen::default();
        match self {
            Self::Events => blocks(body).iter().for_each(|block| seen.block(block)),
            Self::Batch => blocks(body).iter().for_each(|block| seen.batch(block)),
            Self::Json => seen.answer(&serde_json::from_slice(body).expect("one answer")),
            Self::Lines => {
                for line in body.split_inclusive(|&byte| byte == b'\n') {
                    seen.line(&serde_json::from_slice(line).expect("a line of JSON"));
                }
            }
        }
        seen
    }
}

/// What a session has shown, whatever its form.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Its entries: sequence, cursor and data.
    entries: Vec<(u64, String, String)>,
    /// What was told of it, in order: the name, what it says, and how many entries came before.
    told: Vec<(String, Value, usize)>,
}

impl Seen {
    fn seqs(&self) -> Vec<u64> {
        self.entries.iter().map(|(seq, ..)| *seq).collect()
    }

    fn data(&self) -> Vec<&str> {
        self.entries.iter().map(|(.., data)| &**data).collect()
    }

    /// What was told under this name, the first time.
    #[track_caller]
    fn told(&self, name: &str) -> &Value {
        let found = self.told.iter().find(|(told, ..)| told == name);
        &found
            .unwrap_or_else(|| panic!("no `{name}`: {:?}", self.told))
            .1
    }

    #[track_caller]
    fn reason(&self) -> &str {
        self.told("closing")["reason"].as_str().expect("a reason")
    }

    fn has(&self, name: &str) -> bool {
        self.told.iter().any(|(told, ..)| told == name)
    }

    fn tell(&mut self, name: &str, value: Value) {
        let before = self.entries.len();
        self.told.push((name.to_owned(), value, before));
    }

    fn block(&mut self, block: &Block) {
        let Some(data) = &block.data else {
            return;
        };
        match block
            .event
            .as_deref()
            .and_then(|it| it.strip_prefix("streamweld."))
        {
            Some(name) => self.tell(name, serde_json::from_str(data).expect("JSON")),
            // How a dialect ends may be without an id.
            None if block.id.is_none() => {}
            None => {
                let cursor = block.id.clone().expect("a cursor");
                let seq = cursor.split(':').nth(1).and_then(|seq| seq.parse().ok());
                self.entries
                    .push((seq.expect("a sequence"), cursor, data.clone()));
            }
        }
    }

    fn batch(&mut self, block: &Block) {
        if block.event.as_deref() != Some("streamweld.batch") {
            return self.block(block);
        }
        let data = block.data.as_deref().expect("entries");
        let batch: Value = serde_json::from_str(data).expect("JSON");
        self.list(&batch["entries"]);
        let last = self.entries.last().expect("no batch is empty");
        assert_eq!(block.id.as_deref(), Some(&*last.1));
    }

    fn answer(&mut self, answer: &Value) {
        assert_eq!(answer["object"], "streamweld.entries");
        self.tell("session", answer["session"].clone());
        self.list(&answer["entries"]);
        for name in ["replay_limit", "closing"] {
            if let Some(value) = answer.get(name) {
                self.tell(name, value.clone());
            }
        }
    }

    fn line(&mut self, line: &Value) {
        match line["type"].as_str().expect("a type") {
            "entry" => self.entry(line),
            name => self.tell(name, line.clone()),
        }
    }

    fn list(&mut self, entries: &Value) {
        for entry in entries.as_array().expect("a list") {
            self.entry(entry);
        }
    }

    fn entry(&mut self, entry: &Value) {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        if entry["kind"] == "event" {
            let seq = entry["seq"].as_u64().expect("a sequence");
            self.entries.push((seq, text("cursor"), text("data")));
        }
    }
}

fn target(id: &str, query: &str) -> String {
    format!("/v1/streams/{id}/events?{query}")
}

async fn ask(client: &Client, id: &str, query: &str) -> Response {
    client.get(&target(id, query)).await
}

/// A session to its clean end.
async fn read(client: &Client, id: &str, form: Form, query: &str) -> Seen {
    let response = ask(client, id, &format!("{}&{query}", form.query())).await;
    assert_eq!(response.status, 200, "{form:?} {query}");
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper, "{form:?} {query}");
    form.read(&body)
}

/// An answer that has ended, with its events as they are shown: the first is entry 2.
async fn ended(harness: &Harness, script: &Script) -> (String, Vec<String>) {
    let response = harness.client.durable_chat().await;
    let id = response.id();
    response.all().await;
    wait_end(&harness.client, &id).await;
    (id, data(script))
}

/// What its events are.
fn data(script: &Script) -> Vec<String> {
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    let events = script.expected(&ask);
    let text = |event: &bytes::Bytes| blocks(event)[0].data.clone().expect("data");
    events.iter().map(text).collect()
}
