//! A real Redis that fails below two replicas (protocol.md 8.5, 10): what those who read on either are given.
//!
//! Each story says what every reader holds in the end, to the byte where ids are promised. Times that a fault has to
//! outlast are made short by configuration; nothing waits for anything but a condition, unless the time itself is
//! what a story is about.

mod away;
mod bounded;
mod cluster;
mod cut;
mod descriptors;
mod disk;
mod distant;
mod killed;
mod levels;
mod lost;
mod memory;
mod password;
mod replaced;
mod rounds;
mod sentinel;
mod signalled;
mod silent;
mod swallowed;
mod tail;
mod torn_file;

use std::time::Duration;

use streamweld_journal_redis::testing::Setup;
use streamweld_mock::{Ask, Dialect, Outcome, Script};
use streamweld_tests::{
    Block, CHAT, Client, End, Over, Pair, PairSetup, Response, blocks, ends, metric, numbered,
    patience, wait_seq,
};
use tokio::time::sleep;

const PATH: &str = "/v1/chat/completions";

/// Two replicas over a Redis whose silence is soon noticed.
fn setup(script: Script) -> PairSetup {
    setup_over(Over::Redis, script)
}

fn setup_over(over: Over, script: Script) -> PairSetup {
    PairSetup::new(over, script).redis(|redis| {
        redis.timing.answer = Duration::from_millis(200);
        redis.timing.connect = Duration::from_millis(500);
        redis.timing.ping = Duration::from_millis(500);
        // What has ended is read from Redis, and not from what a replica still has of it.
        redis.cached = Duration::from_millis(1);
    })
}

/// A server that has everything again when it was killed. What it has written is the kernel's then; it does not wait
/// for the disk, which may take longer than an answer may in these stories.
fn with_a_file() -> Setup {
    Setup::new()
        .config("appendonly", "yes")
        .config("appendfsync", "no")
}

/// Readers at the owner are shown what is not committed soon, or in no story's time.
fn patient(setup: PairSetup, patience: Duration) -> PairSetup {
    setup.heal(|heal| heal.patience = patience)
}

const AT_ONCE: Duration = Duration::from_millis(50);
const NEVER: Duration = Duration::from_secs(300);

/// An answer that stands still after `events` events until the gate `go` opens, and again after twice as many until
/// `end` opens.
fn in_three(events: usize) -> Script {
    Script::tokens(events * 3)
        .id("fixed")
        .gate_after(events, "go")
        .gate_after(events * 2, "end")
}

/// An answer to [`CHAT`] that is read from its start in three places.
struct Told {
    id: String,
    /// What each of them is given without any fault.
    whole: Vec<u8>,
    /// Whoever asked, at the owner.
    first: Reading,
    /// At the owner too, by the events URL.
    second: Reading,
    /// At the other replica.
    third: Reading,
}

/// One of them, with what it holds.
struct Reading {
    response: Response,
    held: Vec<u8>,
}

impl Reading {
    async fn begin(response: Response, events: usize) -> Self {
        assert_eq!(response.status, 200);
        let mut reader = Self {
            response,
            held: Vec::new(),
        };
        reader.more(events).await;
        reader
    }

    /// Reads so many events more.
    async fn more(&mut self, events: usize) -> Vec<Block> {
        let more = self.response.body.blocks(events).await;
        self.held.extend_from_slice(&more);
        blocks(&more)
    }

    /// Reads to its end. Gives all it was given.
    async fn rest(mut self) -> (Vec<u8>, End) {
        let (rest, end) = self.response.body.rest().await;
        self.held.extend(rest);
        (self.held, end)
    }
}

impl Told {
    /// Reads all of it to its end, and with it whoever came late at the second replica. Those at the first were shown a part
    /// without ids, and have them again; those at the second were given everything under its id. Gives its id, and what
    /// each is given without any fault.
    async fn ends_healed(self, late: Reading) -> (String, Vec<u8>) {
        for reading in [self.first, self.second] {
            let (body, end) = reading.rest().await;
            assert_eq!(end, End::Proper);
            assert_all(&body, &self.whole);
            assert_eq!(blocks(&body).last(), blocks(&self.whole).last());
        }
        for reading in [self.third, late] {
            assert!(reading.rest().await == (self.whole.clone(), End::Proper));
        }
        (self.id, self.whole)
    }

    /// Begins it at the first replica; each of the three has read `events` events then.
    async fn begin(pair: &Pair, script: &Script, events: usize) -> Self {
        Self::of(pair, script, pair.one.client.chat().await, events).await
    }

    /// The same with the answer of whoever asked.
    async fn of(pair: &Pair, script: &Script, response: Response, events: usize) -> Self {
        let first = Reading::begin(response, events).await;
        let id = first.response.id();
        wait_seq(&pair.one.client, &id, events as u64 + 1).await;
        let second = Reading::begin(pair.one.client.events(&id).await, events).await;
        let third = Reading::begin(pair.other.client.events(&id).await, events).await;
        Self {
            whole: whole(script, &id),
            id,
            first,
            second,
            third,
        }
    }

    fn key(&self, kind: &str) -> String {
        key(&self.id, kind)
    }
}

/// The name of a key of a generation in Redis (docs/journal.md).
fn key(id: &str, kind: &str) -> String {
    format!("streamweld:{{{id}}}:{kind}")
}

/// What an uninterrupted reader of an answer to [`CHAT`] is given.
fn whole(script: &Script, id: &str) -> Vec<u8> {
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    numbered(id, &script.expected(&ask))
}

/// All of `whole` was given, and each event at its place; whichever has an id has that of its place.
#[track_caller]
fn assert_all(given: &[u8], whole: &[u8]) {
    let (given, whole) = (blocks(given), blocks(whole));
    assert_eq!(given.len(), whole.len());
    for (given, whole) in given.iter().zip(&whole) {
        assert_eq!(given.data, whole.data);
        assert!(given.id.is_none() || given.id == whole.id);
    }
}

/// So many events of `whole` were given, and then that the rest is missing.
#[track_caller]
fn assert_cut(given: &[u8], whole: &[u8], events: usize) {
    let mut given = blocks(given);
    let form = given.pop().expect("the form");
    assert_eq!(given, blocks(whole)[..events]);
    let data = form.data.expect("data");
    assert!(data.contains("journal_incomplete"), "{data}");
    assert_eq!(form.id, None);
}

#[track_caller]
fn assert_no_ids(blocks: &[Block]) {
    assert!(blocks.iter().all(|block| block.id.is_none()), "{blocks:?}");
}

/// Both replicas show all of it to whoever comes now, from the start and from the middle.
async fn assert_stands(pair: &Pair, id: &str, whole: &[u8]) {
    let middle = ends(whole).len() / 2;
    for client in [&pair.one.client, &pair.other.client] {
        let (body, end) = client.events(id).await.all().await;
        assert_eq!(end, End::Proper);
        assert!(body == whole, "not what was said");
        let cursor = format!("{id}:{}", middle + 1);
        let (body, end) = client
            .with("last-event-id", &cursor)
            .chat()
            .await
            .all()
            .await;
        assert_eq!(end, End::Proper);
        assert!(body == whole[ends(whole)[middle - 1]..]);
    }
}

/// Waits until the first request to the backend is over: it was this side that closed it.
async fn assert_let_go(pair: &Pair) {
    let closed = pair.mock.recorder().wait_closed(0).await;
    let outcome = closed.expect("it is closed").outcome;
    assert!([Outcome::ClientClosed, Outcome::ClientReset].contains(&outcome));
}

/// Both replicas know nothing of it, by any way.
async fn assert_unknown(pair: &Pair, id: &str) {
    let unknown = (404, "stream_not_found".to_owned());
    for client in [&pair.one.client, &pair.other.client] {
        let cursor = client.with("last-event-id", &format!("{id}:3"));
        for response in [
            client.events(id).await,
            client.get(&format!("/v1/streams/{id}")).await,
            cursor.chat().await,
        ] {
            assert_eq!(response.error_code().await, unknown);
        }
    }
}

/// Redis holds nothing but who is alive.
async fn assert_no_log(pair: &mut Pair) {
    let keys = pair.redis().cli(&["KEYS", "*"]).await;
    let left: Vec<&str> = keys
        .lines()
        .filter(|key| !key.contains("{presence}"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// All of an answer that has no log.
async fn degraded(response: Response) -> (Vec<u8>, End) {
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    response.all().await
}

/// Waits until a line of the metrics has come to `least`.
async fn wait_metric(admin: &Client, line: &str, least: i64) {
    let reached = async {
        while metric(admin, line).await < least {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(reached).await;
}

fn failures(reason: &str) -> String {
    format!(r#"streamweld_append_failures_total{{reason="{reason}"}}"#)
}
