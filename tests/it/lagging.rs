//! Readers that fall behind, or come back to, what no ring holds any more (protocol.md 6.3): with a journal in Redis
//! they are given it all the same, on every replica; in memory they are told.

use std::time::Duration;

use serde_json::Value;
use streamweld_journal_redis::testing::{Server as Redis, Setup as RedisSetup, until};
use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{
    Body, CHAT, Client, End, Over, Pair, PairSetup, Response, Setup, Way, blocks, ends, get_slowly,
    numbered, patience, state, texts, wait_end, wait_seq,
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

/// How often the log was read.
async fn xranges(redis: &Redis) -> u64 {
    let stats = redis.cli(&["INFO", "commandstats"]).await;
    let mut lines = stats.lines();
    let line = lines.find_map(|line| line.strip_prefix("cmdstat_xrange:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
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

/// Whoever asked has read everything before the end, so the slow one has been left behind.
async fn left_behind(pair: &Pair, first: &mut Response, expected: &[u8], read: usize) {
    let arrived = pair.mock.gates().wait_arrived("end", 1).await;
    arrived.expect("the producer took everything");
    let places = ends(expected);
    follow(&mut first.body, expected, read, places[3 + LARGE]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_given_everything_at_the_owner() {
    let mut pair = setup(flood()).start().await;
    let (mut first, id, expected, mut slow) = flooded(&pair, &pair.one.client).await;
    let read = ends(&expected[..2000])[1];
    left_behind(&pair, &mut first, &expected, read).await;
    assert!(in_ring(&pair.one.admin, &id).await > LARGE as u64);
    let held = ends(&expected)[3 + LARGE];
    let at = follow(&mut slow.body, &expected, 0, held).await;
    assert!(xranges(pair.redis()).await > 0, "it is read from Redis");
    // It has joined, and is given what is still to come.
    pair.mock.gates().release("end");
    rest(&mut slow.body, &expected, at).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_given_everything_at_another_replica() {
    let pair = setup(flood()).start().await;
    let (first, id, expected, mut slow) = flooded(&pair, &pair.other.client).await;
    drop(first);
    // Another one there that keeps up: the window there has come as far.
    let mut quick = pair.other.client.events(&id).await;
    left_behind(&pair, &mut quick, &expected, 0).await;
    // More than its connection buffers has passed it by.
    let held = ends(&expected)[3 + LARGE];
    let at = follow(&mut slow.body, &expected, 0, held).await;
    pair.mock.gates().release("end");
    rest(&mut slow.body, &expected, at).await;
    rest(&mut quick.body, &expected, held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_a_reader_behind_the_ring_is_cut() {
    let harness = Setup::new(flood())
        .config(|config| config.journal.per_generation = RING)
        .start()
        .await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    let expected = whole(&flood(), &id);
    first.body.blocks(2).await;
    let mut slow = get_slowly(&harness.client, &events(&id)).await;
    drop(first);
    harness.mock.gates().release("reader");
    let arrived = harness.mock.gates().wait_arrived("end", 1).await;
    arrived.expect("the producer took everything");
    wait_seq(&harness.client, &id, LARGE as u64 + 5).await;
    let (text, end) = slow.body.rest().await;
    assert_eq!(end, End::Fin);
    assert!(expected.starts_with(&text));
    let cursor = format!("{id}:{}", blocks(&text).len() + 1);
    for way in Way::ALL {
        let answer = way.resume(&harness.client, &cursor, (PATH, CHAT)).await;
        assert_eq!(
            answer.error_code().await,
            (410, "cursor_expired".to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cursor_is_served_whatever_the_rings_hold() {
    let pair = setup(long()).start().await;
    let first = pair.one.client.chat().await;
    let id = first.id();
    let expected = whole(&long(), &id);
    let places = ends(&expected);
    // The role and the tokens; the finish comes behind the gate.
    wait_seq(&pair.one.client, &id, 2_001).await;
    assert!(in_ring(&pair.one.admin, &id).await > 1_000);
    let last = places.len() as u64 + 1;
    let cursors = [0, 1, 2, 700, 1_999, 2_000, 900];
    let mut running = Vec::new();
    for (turn, seq) in cursors.into_iter().enumerate() {
        for replica in [&pair.one, &pair.other] {
            let way = Way::ALL[turn % 4];
            let cursor = format!("{id}:{seq}");
            let response = way.resume(&replica.client, &cursor, (PATH, CHAT)).await;
            assert_eq!(response.status, 200, "{way:?} after {seq}");
            running.push((response, seq));
        }
    }
    pair.mock.gates().release("end");
    for (mut response, seq) in running {
        rest(&mut response.body, behind(&expected, &places, seq), 0).await;
    }
    wait_end(&pair.one.client, &id).await;
    for (turn, seq) in cursors.into_iter().chain([last - 1]).enumerate() {
        for replica in [&pair.other, &pair.one] {
            let way = Way::ALL[turn % 4];
            let cursor = format!("{id}:{seq}");
            let mut response = way.resume(&replica.client, &cursor, (PATH, CHAT)).await;
            assert_eq!(response.status, 200, "{way:?} after {seq}");
            rest(&mut response.body, behind(&expected, &places, seq), 0).await;
        }
    }
    for replica in [&pair.one, &pair.other] {
        let done = format!("{id}:{last}");
        let nothing = Way::Header.resume(&replica.client, &done, (PATH, CHAT));
        assert_eq!(nothing.await.status, 204);
        let ahead = format!("{id}:{}", last + 2);
        let ahead = Way::Header
            .resume(&replica.client, &ahead, (PATH, CHAT))
            .await;
        assert_eq!(ahead.error_code().await, (409, "cursor_ahead".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_read_and_not_events() {
    let mut pair = setup(flood()).start().await;
    let (first, id, expected, slow) = flooded(&pair, &pair.one.client).await;
    drop((first, slow));
    pair.mock.gates().release("end");
    wait_end(&pair.one.client, &id).await;
    let pages = expected.len() as u64 / (256 << 10);
    // It begins with the end of the log, so that its window costs next to nothing.
    let near = format!("{id}:{LARGE}");
    let mut near = Way::Header
        .resume(&pair.other.client, &near, (PATH, CHAT))
        .await;
    near.body.blocks(1).await;
    let before = xranges(pair.redis()).await;
    let mut response = pair.one.client.events(&id).await;
    rest(&mut response.body, &expected, 0).await;
    let read = xranges(pair.redis()).await - before;
    // Filling the window once more, 32 records each; and pages. What a backend floods comes in large records.
    assert!(
        (1..pages + LARGE as u64 / 32).contains(&read),
        "{read} for {pages} pages"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_near_the_end_has_only_the_end_read() {
    let mut pair = setup(steps()).start().await;
    let (id, expected, _) = ended(&mut pair).await;
    let places = ends(&expected);
    let bytes = async |redis: &Redis| {
        let stats = redis.cli(&["INFO", "stats"]).await;
        let mut lines = stats.lines();
        let line = lines.find_map(|line| line.strip_prefix("total_net_output_bytes:"));
        let bytes = line.and_then(|line| line.trim().parse::<usize>().ok());
        bytes.expect("a number")
    };
    let (reads, before) = (xranges(pair.redis()).await, bytes(pair.redis()).await);
    let last = places.len() as u64 + 1;
    let cursor = format!("{id}:{}", last - 3);
    let mut response = Way::Again
        .resume(&pair.other.client, &cursor, (PATH, CHAT))
        .await;
    rest(&mut response.body, behind(&expected, &places, last - 3), 0).await;
    let read = bytes(pair.redis()).await - before;
    // The last of five parts, beside what this test itself has asked for.
    assert!(read < expected.len() / 2, "{read} of {}", expected.len());
    assert_eq!(xranges(pair.redis()).await, reads + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_has_nothing_read_for_it() {
    const SLOW: usize = 8;
    let mut pair = setup(flood()).start().await;
    let (mut first, id, expected, slow) = flooded(&pair, &pair.one.client).await;
    let read = ends(&expected[..2000])[1];
    let mut readers = vec![slow];
    left_behind(&pair, &mut first, &expected, read).await;
    while readers.len() < SLOW {
        readers.push(get_slowly(&pair.one.client, &events(&id)).await);
    }
    // What connections buffer is filled, and then nothing more is read.
    let (mut before, mut same) = (0, 0);
    until("it stands still", async || {
        let now = xranges(pair.redis()).await;
        same = if now == before { same + 1 } else { 0 };
        before = now;
        same > 20 && now > 0
    })
    .await;
    let pages = expected.len() as u64 / (256 << 10);
    assert!(
        before < SLOW as u64 * pages * 3 / 4,
        "{before} for {pages} pages each"
    );
    pair.mock.gates().release("end");
    for mut reader in readers {
        rest(&mut reader.body, &expected, 0).await;
    }
}

/// Without heartbeats.
fn without_beats(text: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(text).expect("UTF-8");
    text.split_inclusive('\n')
        .filter(|line| *line != ":\n")
        .collect::<String>()
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_behind_the_ring_is_held_while_redis_is_away() {
    let file = RedisSetup::new()
        .config("appendonly", "yes")
        .config("appendfsync", "no");
    let mut pair = setup(flood())
        .config(|config| {
            config.journal.per_generation = RING;
            config.edge.heartbeat = Duration::from_millis(50);
        })
        .server(file)
        .start()
        .await;
    let (mut first, id, expected, mut slow) = flooded(&pair, &pair.one.client).await;
    first.body.chunk().await;
    drop(first);
    pair.mock.gates().release("end");
    wait_end(&pair.one.client, &id).await;
    pair.redis().kill();
    // What was read by then, and then nothing but signs of life.
    let mut text = Vec::new();
    while !text.ends_with(b":\n:\n:\n") {
        text.extend(slow.body.chunk().await.expect("it is held"));
    }
    assert!(text.len() < expected.len());
    pair.redis().restart().await;
    let (more, end) = slow.body.rest().await;
    assert_eq!(end, End::Proper);
    text.extend(more);
    let text = without_beats(&text);
    let same = text
        .iter()
        .zip(&expected)
        .take_while(|(one, other)| one == other);
    let (same, text, whole) = (same.count(), text.len(), expected.len());
    assert_eq!((same, text), (whole, whole));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_whose_log_expires_is_cut_and_told() {
    let mut pair = setup(parts()).start().await;
    let mut first = pair.one.client.chat().await;
    let id = first.id();
    let expected = whole(&parts(), &id);
    let mut slow = get_slowly(&pair.one.client, &events(&id)).await;
    assert_eq!(slow.status, 200);
    // What a backend has written at once is one record, and may be one page: this answer is many.
    let (places, mut at) = (ends(&expected), 0);
    for part in 0..PARTS {
        at = follow(&mut first.body, &expected, at, places[part * 6]).await;
        pair.mock.gates().release(&part.to_string());
    }
    rest(&mut first.body, &expected, at).await;
    wait_end(&pair.one.client, &id).await;
    let meta = format!("streamweld:{{{id}}}:meta");
    assert_eq!(pair.redis().cli(&["DEL", &log(&id), &meta]).await, "2");
    let (text, end) = slow.body.rest().await;
    assert_ne!(end, End::Proper);
    assert!(text.len() < expected.len() && expected.starts_with(&text));
    for replica in [&pair.one, &pair.other] {
        let answer = replica.client.events(&id).await;
        assert_eq!(
            answer.error_code().await,
            (410, "stream_expired".to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_behind_the_ring_is_held_and_then_told() {
    let mut pair = setup(long())
        .config(|config| {
            config.journal.per_generation = RING;
            config.edge.hold = Duration::from_millis(300);
        })
        .start()
        .await;
    let first = pair.one.client.chat().await;
    let id = first.id();
    wait_seq(&pair.one.client, &id, 2_001).await;
    let kept = in_ring(&pair.one.admin, &id).await;
    pair.redis().kill();
    for way in Way::ALL {
        let cursor = format!("{id}:5");
        let held = way.resume(&pair.one.client, &cursor, (PATH, CHAT)).await;
        assert_eq!(
            held.error_code().await,
            (503, "journal_unavailable".to_owned())
        );
        // What the ring holds needs nobody.
        let cursor = format!("{id}:{kept}");
        let mut here = way.resume(&pair.one.client, &cursor, (PATH, CHAT)).await;
        assert_eq!(here.status, 200);
        assert_eq!(blocks(&here.body.blocks(1).await)[0].seq(), kept + 1);
    }
    let state = state(&pair.one.client, &id).await;
    assert_eq!(state["earliest_seq"], kept, "what is at hand");
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

/// The same definite answer each time, on every replica, in every way.
async fn is_expired(pair: &Pair, id: &str, seq: u64) {
    for replica in [&pair.one, &pair.other, &pair.one] {
        for way in Way::ALL {
            let answer = way
                .resume(&replica.client, &format!("{id}:{seq}"), (PATH, CHAT))
                .await;
            assert_eq!(answer.status, 410, "after {seq}");
            let code = answer.error_code().await;
            assert_eq!(code, (410, "cursor_expired".to_owned()), "after {seq}");
        }
    }
}

/// Everything behind `seq`, on every replica.
async fn is_served(pair: &Pair, id: &str, expected: &[u8], seq: u64) {
    for replica in [&pair.other, &pair.one] {
        let cursor = format!("{id}:{seq}");
        let mut answer = Way::Header
            .resume(&replica.client, &cursor, (PATH, CHAT))
            .await;
        assert_eq!(answer.status, 200, "after {seq}");
        rest(&mut answer.body, behind(expected, &ends(expected), seq), 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_trimmed_is_told_and_the_rest_is_served() {
    let mut pair = setup(steps()).start().await;
    let (id, expected, ids) = ended(&mut pair).await;
    let (left, kept) = (seq(&ids[2]), ids[3].clone());
    let trim = ["XTRIM", &log(&id), "MINID", "=", &kept];
    assert_eq!(pair.redis().cli(&trim).await, "3");
    for cursor in [0, 1, 2, left - 1] {
        is_expired(&pair, &id, cursor).await;
    }
    for cursor in [left, left + 1, 440] {
        is_served(&pair, &id, &expected, cursor).await;
    }
    for replica in [&pair.one, &pair.other] {
        let state = state(&replica.client, &id).await;
        assert_eq!(state["earliest_seq"], left + 1);
        assert_eq!(state["status"], "done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_come_to_and_then_told() {
    let mut pair = setup(steps()).start().await;
    let (id, expected, ids) = ended(&mut pair).await;
    let (before, gone) = (seq(&ids[2]), seq(&ids[3]));
    let deleted = pair.redis().cli(&["XDEL", &log(&id), &ids[3]]).await;
    assert_eq!(deleted, "1");
    let places = ends(&expected);
    let reach = places[before as usize - 2];
    for replica in [&pair.one, &pair.other] {
        for cursor in [0, 1, before - 1] {
            let again = format!("{id}:{cursor}");
            let mut answer = Way::Again
                .resume(&replica.client, &again, (PATH, CHAT))
                .await;
            assert_eq!(answer.status, 200);
            let (text, end) = answer.body.rest().await;
            assert_ne!(end, End::Proper, "never taken for the whole");
            let form = text.strip_prefix(behind(&expected[..reach], &places, cursor));
            let form = String::from_utf8_lossy(form.expect("what stands, to the gap"));
            assert!(form.contains("journal_incomplete"), "{form}");
        }
    }
    for cursor in [before, before + (gone - before) / 2, gone - 1] {
        is_expired(&pair, &id, cursor).await;
    }
    for cursor in [gone, gone + 1, 440] {
        is_served(&pair, &id, &expected, cursor).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_told() {
    let mut pair = setup(long()).start().await;
    let first = pair.one.client.chat().await;
    let id = first.id();
    wait_seq(&pair.one.client, &id, 2_001).await;
    let foreign = ["XADD", &log(&id), "1-90000", "r", "not of ours"];
    assert_eq!(pair.redis().cli(&foreign).await, "1-90000");
    for _ in 0..3 {
        let cursor = format!("{id}:2001");
        let answer = Way::Header
            .resume(&pair.other.client, &cursor, (PATH, CHAT))
            .await;
        assert_eq!(
            answer.error_code().await,
            (410, "cursor_expired".to_owned())
        );
    }
    let before = Way::Header
        .resume(&pair.other.client, &format!("{id}:1990"), (PATH, CHAT))
        .await;
    assert_eq!(before.status, 200);
    let (text, end) = before.all().await;
    assert_ne!(end, End::Proper);
    assert!(String::from_utf8_lossy(&text).contains(&format!("id: {id}:2001\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn state_and_stop_are_of_the_whole_log() {
    // The same answer where nothing leaves a ring.
    let memory = Setup::new(long()).start().await;
    let all = memory.client.chat().await;
    let known = wait_seq(&memory.client, &all.id(), 2_001).await;
    let pair = setup(long()).start().await;
    let first = pair.one.client.chat().await;
    let id = first.id();
    wait_seq(&pair.one.client, &id, 2_001).await;
    // A window there that begins near the end.
    let cursor = format!("{id}:1990");
    let late = Way::Header
        .resume(&pair.other.client, &cursor, (PATH, CHAT))
        .await;
    assert_eq!(late.status, 200);
    for replica in [&pair.one, &pair.other] {
        let state = state(&replica.client, &id).await;
        assert_eq!(state["earliest_seq"], 1);
        assert_eq!(state["last_seq"], 2_001);
        assert_eq!(state["usage"], known["usage"]);
        assert_ne!(state["usage"], Value::Null);
    }
    let target = format!("/v1/streams/{id}/stop");
    // A stop that is not seen to end in time is asked for again.
    let stop = async |client: &Client| loop {
        let answer = client.send("POST", &target, "").await;
        if answer.status != 503 {
            return answer.json().await;
        }
    };
    let there = patience(stop(&pair.other.client)).await;
    let here = patience(stop(&pair.one.client)).await;
    let expected = whole(&long(), &id);
    let text = texts(&expected[..ends(&expected)[1_999]]);
    assert_eq!(there["text"], text);
    assert_eq!(here["text"], text);
}
