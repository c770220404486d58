//! One answer whose engine goes away in the middle of it.

use std::time::{Duration, Instant};

use serde_json::Value;
use streamweld_generation::migration::Policy;
use streamweld_mock::{Cut, FaultRelay};
use streamweld_server::Config;
use streamweld_tests::{Client, End, Replica, blocks, state, wait_end};
use streamweld_upstream::fleet;

use crate::answer::{Answer, Own, read, seen};
use crate::engine::Engine;
use crate::tasks::Task;

/// How an engine goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Its process group is killed.
    Kill,
    /// It is told to end, and takes its time.
    Term,
    /// The connection to it is cut; the engine is well.
    Cut,
}

/// What was seen of one answer.
pub(crate) struct Round {
    /// The body as it came.
    pub(crate) body: Vec<u8>,
    pub(crate) shown: Answer,
    pub(crate) own: Own,
    pub(crate) end: End,
    /// The text that had come when the engine went away.
    pub(crate) before: String,
    /// The longest time without an event from then on.
    pub(crate) silence: Duration,
    /// How each move went on.
    pub(crate) moves: Vec<String>,
    /// What each gate said that refused.
    pub(crate) refused: Vec<(String, String)>,
    /// The text that the journal has.
    pub(crate) journaled: String,
    /// Which of the engines went away first.
    pub(crate) victim: usize,
}

const NAMES: [&str; 2] = ["a", "b"];

/// Asks for `task` and has the engine that is at it go away when so many events have come, each time.
pub(crate) async fn round(
    engines: &[Engine; 2],
    task: &Task,
    temperature: f32,
    after: &[usize],
    manner: Manner,
) -> Round {
    let relays = [relay(&engines[0]).await, relay(&engines[1]).await];
    let urls = match manner {
        Manner::Cut => relays.each_ref().map(FaultRelay::url),
        Manner::Kill | Manner::Term => engines.each_ref().map(|it| format!("http://{}", it.addr)),
    };
    let replica = Replica::in_front_of(twins(&urls, engines[0].kind), by_prefill).await;
    let client = &replica.client;
    let mut response = client
        .send("POST", task.path, &task.body(temperature))
        .await;
    assert_eq!(response.status, 200, "{}", task.name());
    let id = response.id();
    let (mut body, mut before) = (Vec::new(), Vec::new());
    let (mut victim, mut silence) = (None, Duration::ZERO);
    let mut left = after.iter().peekable();
    loop {
        let asked = Instant::now();
        let Some(chunk) = response.body.chunk().await else {
            break;
        };
        silence = silence.max(asked.elapsed());
        body.extend(chunk);
        if left.next_if(|next| seen(&body) >= **next).is_none() {
            continue;
        }
        let at = at_work(client, &id).await;
        match manner {
            Manner::Kill => engines[at].signal("KILL"),
            Manner::Term => engines[at].signal("TERM"),
            Manner::Cut => relays[at].cut_connections(Cut::Fin),
        }
        before = whole_blocks(&body);
        silence = Duration::ZERO;
        victim = victim.or(Some(at));
    }
    let end = response.body.end().expect("it has ended");
    wait_end(client, &id).await;
    let log = format!("/v1/streams/{id}/events?events=control");
    let (log, _) = client.get(&log).await.all().await;
    let (plain, _) = client.events(&id).await.all().await;
    let (shown, own) = read(&body);
    Round {
        moves: entries(&log, "streamweld.migration", |entry| text(&entry["method"])),
        refused: entries(&log, "streamweld.warning", |entry| {
            (text(&entry["gate"]), text(&entry["message"]))
        }),
        journaled: read(&plain).0.text,
        before: read(&before).0.text,
        body,
        shown,
        own,
        end,
        silence,
        victim: victim.unwrap_or(0),
    }
}

/// Both engines, in one group.
fn twins(urls: &[String; 2], kind: fleet::Engine) -> Vec<fleet::Spec> {
    let twin = |(name, url): (&str, &String)| {
        let url = url.parse().expect("a plain URL");
        fleet::Spec {
            group: Some("twins".to_owned()),
            ..fleet::Spec::new(name, url, kind)
        }
    };
    NAMES.into_iter().zip(urls).map(twin).collect()
}

/// Which of the engines an answer comes from now.
async fn at_work(client: &Client, id: &str) -> usize {
    let state = state(client, id).await;
    let asked = state["backends"].as_array().and_then(|asked| asked.last());
    let at = NAMES
        .iter()
        .position(|name| asked.is_some_and(|asked| asked == name));
    at.expect("one of them was asked")
}

/// The answer as an engine gives it when nobody disturbs it, and how many events it has before its last.
pub(crate) async fn undisturbed(engine: &Engine, task: &Task) -> (Answer, usize) {
    let client = Client::new(engine.addr);
    let (body, end) = client
        .send("POST", task.path, &task.body(0.0))
        .await
        .all()
        .await;
    assert_eq!(end, End::Proper, "{}", task.name());
    let (answer, own) = read(&body);
    assert!(
        own.errors.is_empty() && answer.ends == 1,
        "{}: {answer:?}",
        task.name()
    );
    (answer, own.open)
}

fn by_prefill(config: &mut Config) {
    let migration = &mut config.migration;
    migration.groups.insert("twins".to_owned(), Policy::Prefill);
    // Each round has a server of its own, and an examination takes these engines longer than a round.
    migration.vouched.insert("twins".to_owned());
}

async fn relay(engine: &Engine) -> FaultRelay {
    FaultRelay::start(engine.addr).await.expect("a port")
}

/// What was read, up to the end of the last event.
fn whole_blocks(body: &[u8]) -> Vec<u8> {
    let end = body.windows(2).rposition(|pair| pair == b"\n\n");
    body[..end.map_or(0, |end| end + 2)].to_vec()
}

fn entries<T>(log: &[u8], kind: &str, of: impl Fn(Value) -> T) -> Vec<T> {
    let entries = blocks(log)
        .into_iter()
        .filter(|block| block.event.as_deref() == Some(kind));
    let data = entries.filter_map(|block| serde_json::from_str(&block.data?).ok());
    data.map(of).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
