//! Readers behind the ring while Redis is away, or has lost what they need.

use std::time::Duration;

use streamweld_journal_redis::testing::Setup as RedisSetup;
use streamweld_tests::{CHAT, End, Pair, Way, blocks, ends, get_slowly, state, wait_end, wait_seq};

use super::{
    PARTS, PATH, RING, behind, ended, events, flood, flooded, follow, in_ring, log, long, parts,
    rest, seq, setup, steps, whole,
};

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
