//! Readers that fall behind, or come back to, what no ring holds any more (protocol.md 6.3): with a journal in Redis
//! they are given it all the same, on every replica; in memory they are told.

mod losses;
mod paging;

use std::time::Duration;

use streamweld_journal_redis::testing::Server as Redis;
use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{
    Body, CHAT, Client, End, Over, Pair, PairSetup, Response, blocks, ends, get_slowly, numbered,
    wait_end,
};

const PATH: &str = "/v1/chat/completions";

/// What each replica may hold of an answer.
const RING: usize = 64 << 10;

/// An answer of large events: more than both ends of a connection buffer for a reader that takes nothing.
const LARGE: usize = 200;

/// Two events, then as many as fit nowhere, as fast as they can be written; and an end that is waited for.
fn flood() -> Script {
    let mut script = Script::tokens(4)
        .id("fixed")
        .gate_after(2, "reader")
        .gate_after(4, "end");
    for _ in 0..LARGE {
        script = script.huge_event_after(3, 64 << 10);
    }
    script
}

/// As much, of which the next part comes when its gate is opened.
fn parts() -> Script {
    (0..PARTS).fold(Script::tokens(PARTS + 1).id("fixed"), |mut script, part| {
        script = script.gate_after(part + 1, part.to_string());
        for _ in 0..5 {
            script = script.huge_event_after(part + 1, 64 << 10);
        }
        script
    })
}

const PARTS: usize = 40;

/// Many small events.
fn long() -> Script {
    Script::tokens(2_000).id("fixed").gate_after(2_000, "end")
}

fn setup(script: Script) -> PairSetup {
    PairSetup::new(Over::Redis, script)
        .config(|config| {
            config.journal.per_generation = RING;
            config.edge.hold = Duration::from_secs(2);
        })
        // Nobody is shown anything without ids because the machine is busy.
        .heal(|heal| heal.patience = Duration::from_secs(300))
        .redis(|redis| {
            redis.timing.answer = Duration::from_millis(500);
            redis.timing.connect = Duration::from_millis(500);
            redis.timing.ping = Duration::from_millis(500);
            // What has ended is read from Redis, and not from what a replica still has of it.
            redis.cached = Duration::from_millis(1);
        })
}

/// What an uninterrupted reader is given.
fn whole(script: &Script, id: &str) -> Vec<u8> {
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    numbered(id, &script.expected(&ask))
}

/// What comes behind entry `seq`.
fn behind<'a>(whole: &'a [u8], places: &[usize], seq: u64) -> &'a [u8] {
    match usize::try_from(seq).expect("small").checked_sub(2) {
        None => whole,
        Some(event) => &whole[places[event]..],
    }
}

fn events(id: &str) -> String {
    format!("/v1/streams/{id}/events")
}

/// Reads so many bytes, which are the first of `expected`.
async fn follow(body: &mut Body, expected: &[u8], mut at: usize, until: usize) -> usize {
    while at < until {
        let chunk = body.chunk().await.expect("it goes on");
        if chunk == b":\n" {
            continue;
        }
        assert!(expected[at..].starts_with(&chunk), "differs after {at}");
        at += chunk.len();
    }
    at
}

/// Reads to the end, which is as expected.
async fn rest(body: &mut Body, expected: &[u8], at: usize) {
    let at = follow(body, expected, at, expected.len()).await;
    assert_eq!(at, expected.len());
    assert_eq!(body.rest().await, (Vec::new(), End::Proper));
}

/// What the ring of a replica holds of a generation that it owns, as an operator sees it in the list.
async fn in_ring(admin: &Client, id: &str) -> u64 {
    let list = admin.get("/admin/streams").await.json().await;
    let mut listed = list["data"].as_array().expect("a list").iter();
    let found = listed.find(|state| state["stream_id"] == id);
    found.expect("is listed")["earliest_seq"]
        .as_u64()
        .expect("a number")
}

fn log(id: &str) -> String {
    format!("streamweld:{{{id}}}:log")
}

/// Asks for a flood at the first replica, and lets it come when a slow reader has come to `at`.
async fn flooded(pair: &Pair, at: &Client) -> (Response, String, Vec<u8>, Response) {
    let mut first = pair.one.client.chat().await;
    let id = first.id();
    let expected = whole(&flood(), &id);
    let read = follow(&mut first.body, &expected, 0, ends(&expected[..2000])[1]).await;
    assert_eq!(blocks(&expected[..read]).len(), 2);
    let slow = get_slowly(at, &events(&id)).await;
    assert_eq!(slow.status, 200);
    pair.mock.gates().release("reader");
    (first, id, expected, slow)
}

/// The ids of the records of a log, in order.
async fn ids(redis: &Redis, id: &str) -> Vec<String> {
    let script = "local ids = {} for _, record in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do ids[#ids + 1] = record[1] end return ids";
    let ids = redis.cli(&["EVAL", script, "1", &log(id)]).await;
    ids.lines().map(str::to_owned).collect()
}

/// An answer that has ended, in several records.
async fn ended(pair: &mut Pair) -> (String, Vec<u8>, Vec<String>) {
    let mut first = pair.one.client.chat().await;
    let id = first.id();
    let expected = whole(&steps(), &id);
    let places = ends(&expected);
    let mut at = 0;
    for (gate, events) in [100, 200, 300, 400].into_iter().enumerate() {
        at = follow(&mut first.body, &expected, at, places[events - 1]).await;
        pair.mock.gates().release(&format!("{gate}"));
    }
    rest(&mut first.body, &expected, at).await;
    wait_end(&pair.one.client, &id).await;
    let ids = ids(pair.redis(), &id).await;
    assert!(ids.len() > 5, "{ids:?}");
    (id, expected, ids)
}

fn steps() -> Script {
    (0..4).fold(Script::tokens(450).id("fixed"), |script, gate| {
        script.gate_after((gate + 1) * 100, format!("{gate}"))
    })
}

fn seq(id: &str) -> u64 {
    id.split_once('-')
        .and_then(|(_, seq)| seq.parse().ok())
        .expect("<epoch>-<seq>")
}
