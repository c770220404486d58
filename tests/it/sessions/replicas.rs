//! Sessions at the owner and at another replica, of answers that run, that have ended, and whose ring has turned.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{CHAT, End, Over, Pair, PairSetup, blocks, wait_end, wait_seq};

use super::{Form, ask, read};

async fn over_redis(script: Script) -> Pair {
    PairSetup::new(Over::Redis, script)
        .config(|config| config.journal.per_generation = 32 << 10)
        .heal(|heal| heal.patience = Duration::from_secs(300))
        // What has ended is read from Redis, and not from what a replica still has of it.
        .redis(|redis| redis.cached = Duration::from_millis(1))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_gives_the_same_sessions() {
    let script = Script::tokens(900).id("fixed").gate_after(700, "end");
    let pair = over_redis(script.clone()).await;
    let first = pair
        .one
        .client
        .send("POST", "/v1/chat/completions", CHAT)
        .await;
    let id = first.id();
    wait_seq(&pair.one.client, &id, 701).await;
    // While it runs: what lies before the ring comes from the log, in pages.
    for client in [&pair.one.client, &pair.other.client] {
        for form in Form::ALL {
            let seen = read(client, &id, form, "live=false&seq=1&count=300").await;
            assert_eq!(
                (seen.seqs(), seen.reason()),
                ((2..302).collect(), "count"),
                "{form:?}"
            );
            let seen = read(client, &id, form, "live=false&last_event_id=698").await;
            assert_eq!(
                (seen.seqs(), seen.reason()),
                (vec![699, 700, 701], "caught_up"),
                "{form:?}"
            );
            let seen = read(client, &id, form, "live=false&tail=3").await;
            assert_eq!(
                (seen.seqs(), seen.reason()),
                (vec![699, 700, 701], "caught_up"),
                "{form:?}"
            );
        }
        let refused = ask(client, &id, "seq=703").await;
        assert_eq!(refused.header("x-streamweld-tail"), Some("701"));
        assert_eq!(refused.status, 416);
    }
    let query = format!("{}&seq=600", Form::Lines.query());
    let live = ask(&pair.other.client, &id, &query).await;
    pair.mock.gates().release("end");
    let (body, end) = live.all().await;
    let seen = Form::Lines.read(&body);
    let last = super::data(&script).len() as u64 + 1;
    assert_eq!((seen.seqs(), end), ((600..=last).collect(), End::Proper));
    assert_eq!(seen.reason(), "end_of_stream");
    first.all().await;
    // And when it has ended, from the log alone.
    for client in [&pair.one.client, &pair.other.client] {
        wait_end(client, &id).await;
        for form in Form::ALL {
            let query = format!("seq={}", last - 1);
            let seen = read(client, &id, form, &query).await;
            assert_eq!(
                (seen.seqs(), seen.reason()),
                (vec![last - 1, last], "end_of_stream")
            );
            let seen = read(client, &id, form, "count=400").await;
            assert_eq!(seen.seqs(), (2..402).collect::<Vec<_>>());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_the_same_in_the_log_and_in_the_ring() {
    let script = Script::tokens(600).id("fixed").gate_after(300, "later");
    let pair = over_redis(script).await;
    let first = pair
        .one
        .client
        .send("POST", "/v1/chat/completions", CHAT)
        .await;
    let id = first.id();
    wait_seq(&pair.one.client, &id, 301).await;
    pair.mock.gates().release("later");
    first.all().await;
    for client in [&pair.one.client, &pair.other.client] {
        wait_end(client, &id).await;
        let answer = ask(client, &id, "format=ndjson").await.all().await.0;
        let lines = std::str::from_utf8(&answer).expect("UTF-8").lines();
        let entries: Vec<serde_json::Value> = lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let entries: Vec<_> = entries
            .iter()
            .filter(|line| line["type"] == "entry")
            .collect();
        for place in [0, 1, 100, 299, 300, 301, 500, entries.len() - 1] {
            let time = entries[place]["time"].as_str().expect("a time");
            let since = ask(client, &id, &format!("since={time}&count=1"))
                .await
                .all()
                .await
                .0;
            let first = entries
                .iter()
                .find(|entry| entry["time"].as_str() >= Some(time));
            let expected = first.expect("itself")["seq"].clone();
            let text = String::from_utf8(since).expect("UTF-8");
            let shown = blocks(
                text.trim_end_matches(&format!("id: {id}:{expected}:0:0\n\n"))
                    .as_bytes(),
            );
            let seq = shown[0].id.as_deref().and_then(|id| id.split(':').nth(1));
            assert_eq!(seq, Some(&*expected.to_string()), "since {time}");
        }
    }
}
