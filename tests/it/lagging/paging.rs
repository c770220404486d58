//! Readers that fall behind and are given everything, in pages.

use serde_json::Value;
use streamweld_journal_redis::testing::{Server as Redis, until};
use streamweld_tests::{
    CHAT, Client, End, Pair, Response, Setup, Way, blocks, ends, get_slowly, patience, state,
    texts, wait_end, wait_seq,
};

use super::{
    LARGE, PATH, RING, behind, ended, events, flood, flooded, follow, in_ring, long, rest, setup,
    steps, whole,
};

/// How often the log was read.
async fn xranges(redis: &Redis) -> u64 {
    let stats = redis.cli(&["INFO", "commandstats"]).await;
    let mut lines = stats.lines();
    let line = lines.find_map(|line| line.strip_prefix("cmdstat_xrange:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
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
