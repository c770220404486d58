//! Two hundred cuts at random bytes, spread over many streams, and what a client must have seen all the same: every
//! event once and in order, without a second request to the backend.
//!
//! Where the cuts fall follows from a seed, which a failure shows; `CUTS_SEED` sets another.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Cut, Dialect, FaultRelay, RelayPlan, RelayStep, Script};
use streamweld_server::Config;
use streamweld_tests::{CHAT, Client, Harness, Setup};

use super::program::Program;
use crate::rounds::Dice;

/// How many streams there are, and how often each is cut.
pub(super) const STREAMS: usize = 40;
pub(super) const CUTS: usize = 5;

/// Answers that are still written while the first cuts fall, and longer than all that passes before the last one.
pub(super) fn script() -> Script {
    Script::tokens(60)
        .id("fixed")
        .pace(Duration::from_millis(20))
}

/// A server that hands out resume URLs.
pub(super) async fn signing(script: Script) -> Harness {
    Setup::new(script).config(sign).start().await
}

pub(super) fn sign(config: &mut Config) {
    config.edge.resume_urls.keys = ["k".repeat(32)].into_iter().collect();
}

/// A generation of somebody with a credential, and the URL by which others read it.
pub(super) async fn lent(client: &Client, dialect: Dialect) -> String {
    let maker = client.with("authorization", "Bearer secret");
    // Or it would be taken for the one before, which is read by nobody yet.
    let maker = maker.with("x-stainless-retry-count", "0");
    let response = maker.send("POST", dialect.path(), CHAT).await;
    let url = response.header("x-streamweld-resume-url");
    url.expect("a resume URL").to_owned()
}

/// Where cuts fall.
pub(super) struct Places {
    seed: u64,
    dice: Dice,
}

impl Places {
    pub(super) fn new() -> Self {
        let seed = std::env::var("CUTS_SEED").map_or(1, |seed| seed.parse().expect("a number"));
        let dice = Dice(seed);
        Self { seed, dice }
    }

    /// A relay that cuts so many connections behind a random byte of their answers, heads included, up to `most`.
    pub(super) async fn relay(
        &mut self,
        target: SocketAddr,
        cuts: usize,
        most: usize,
    ) -> FaultRelay {
        let relay = FaultRelay::start(target).await.expect("a port");
        for _ in 0..cuts {
            let pass = self.dice.up_to(most) as u64;
            let cut = [Cut::Fin, Cut::Rst][self.dice.up_to(1)];
            relay.push_plan(
                RelayPlan::new()
                    .to_client(RelayStep::Pass(pass))
                    .to_client(RelayStep::Cut(cut)),
            );
        }
        relay
    }

    /// One for each stream, which cuts it so often.
    pub(super) async fn relays(&mut self, target: SocketAddr, cuts: usize) -> Vec<FaultRelay> {
        let mut relays = Vec::new();
        for _ in 0..STREAMS {
            relays.push(self.relay(target, cuts, 2000).await);
        }
        relays
    }
}

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CUTS_SEED={}", self.seed)
    }
}

/// What a client saw of one stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// Data and id of each event.
    pub(super) events: Vec<(String, String)>,
    /// The `Last-Event-ID` of each request.
    pub(super) cursors: Vec<Option<String>>,
    pub(super) statuses: Vec<u64>,
}

impl Stream {
    pub(super) fn of(line: &Value) -> Self {
        let list = |name: &str| line[name].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            events: list("events")
                .map(|pair| {
                    let (data, id) = (text(&pair[0]), text(&pair[1]));
                    (data.expect("text"), id.expect("an id"))
                })
                .collect(),
            cursors: list("cursors").map(text).collect(),
            statuses: list("statuses").filter_map(Value::as_u64).collect(),
        }
    }

    pub(super) fn data(&self) -> Vec<&str> {
        self.events.iter().map(|(data, _)| data.as_str()).collect()
    }

    /// Where in the answer the events stand whose ids it came back with, though it had not seen them.
    pub(super) fn torn(&self) -> HashSet<usize> {
        let seen: HashSet<&str> = self.events.iter().map(|(_, id)| id.as_str()).collect();
        let cursors = self.cursors.iter().flatten().map(String::as_str);
        let unseen = cursors.filter(|cursor| !seen.contains(cursor));
        unseen.map(|cursor| seq(cursor) - FIRST).collect()
    }

    /// It has seen all of this, each event once, and nothing else.
    #[track_caller]
    pub(super) fn assert_exact(&self, all: &[String], places: &Places) {
        assert_eq!(self.data(), all, "{places:?}: {self:?}");
        let seqs: Vec<usize> = self.events.iter().map(|(_, id)| seq(id)).collect();
        let whole: Vec<usize> = (FIRST..FIRST + all.len()).collect();
        assert_eq!(seqs, whole, "{places:?}");
    }
}

/// Each of them has seen all of this, and was told by a `204` that there is no more.
#[track_caller]
pub(super) fn assert_all_exact(streams: &[Stream], all: &[String], places: &Places) {
    for stream in streams {
        stream.assert_exact(all, places);
        assert_eq!(stream.cursors.len(), CUTS + 2, "{places:?}: {stream:?}");
        assert_eq!(stream.statuses.last(), Some(&204), "{places:?}: {stream:?}");
    }
    assert_eq!(streams.len(), STREAMS, "{places:?}");
}

/// The sequence of the first event.
const FIRST: usize = 2;

fn seq(id: &str) -> usize {
    id.split_once(':').expect("ours").1.parse().expect("a seq")
}

/// Runs `many.mjs` with one of its clients. Gives that client as it calls itself, and what it saw of each stream.
pub(super) async fn run(name: &str, streams: &[Value]) -> (String, Vec<Stream>) {
    let anywhere = ([127, 0, 0, 1], 0).into();
    let streams = json!(streams).to_string();
    let program = Program::start("many.mjs", anywhere, &[name, &streams]).await;
    let client = program.client.clone();
    let mut told = program.ended().await;
    told.retain(|line| line.get("stream").is_some());
    told.sort_by_key(|line| line["stream"].as_u64());
    let seen: Vec<Stream> = told.iter().map(Stream::of).collect();
    (client, seen)
}

/// The URLs of generations that run, each behind a relay of its own.
pub(super) async fn urls(harness: &Harness, relays: &[FaultRelay]) -> Vec<Value> {
    let mut streams = Vec::new();
    for relay in relays {
        let url = lent(&harness.client, Dialect::OpenAiChat).await;
        streams.push(json!({ "url": format!("{}{url}", relay.url()) }));
    }
    streams
}

/// Chats to be asked, each behind a relay of its own.
pub(super) fn chats(relays: &[FaultRelay]) -> Vec<Value> {
    let chat = |(number, relay): (usize, &FaultRelay)| {
        let url = format!("{}{}", relay.url(), Dialect::OpenAiChat.path());
        json!({ "url": url, "body": CHAT, "key": format!("chat-{number}") })
    };
    relays.iter().enumerate().map(chat).collect()
}
