//! How far a session goes, and what is left of that when it is cut.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::Script;
use streamweld_tests::{End, Harness, Setup, blocks, wait_seq};

use super::{Form, ask, ended, read};

#[tokio::test(flavor = "multi_thread")]
async fn each_bound_ends_a_session_and_says_so() {
    let script = Script::tokens(20).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, data) = ended(&harness, &script).await;
    let client = &harness.client;
    // An event is its one line: `data: `, what it is, and LF.
    let sizes: Vec<usize> = data.iter().map(|data| data.len() + 7).collect();
    let four: usize = sizes[..4].iter().sum();
    for form in Form::ALL {
        for (query, seqs, reason) in [
            ("count=3", vec![2, 3, 4], "count"),
            (&*format!("bytes={four}"), vec![2, 3, 4, 5], "bytes"),
            (&*format!("bytes={}", four + 1), vec![2, 3, 4, 5], "bytes"),
            (&*format!("bytes={}", four - 1), vec![2, 3, 4], "bytes"),
            ("bytes=1", vec![], "bytes"),
            ("seq=5&count=2&bytes=1000000", vec![5, 6], "count"),
            ("until=1", vec![], "until"),
        ] {
            let seen = read(client, &id, form, query).await;
            assert_eq!(
                (seen.seqs(), seen.reason()),
                (seqs, reason),
                "{form:?} {query}"
            );
        }
        let whole = read(client, &id, form, "count=1000000").await;
        assert_eq!(
            (whole.data().len(), whole.reason()),
            (data.len(), "end_of_stream")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_bounded_session_are_the_whole() {
    let script = Script::tokens(30).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, _) = ended(&harness, &script).await;
    let client = &harness.client;
    for form in Form::ALL {
        for bounds in ["count=17", "bytes=2500", "count=12&bytes=2600"] {
            let whole = read(client, &id, form, bounds).await;
            assert!(whole.entries.len() > 8, "{bounds}");
            for cut in 1..whole.entries.len() {
                let (_, cursor, _) = &whole.entries[cut - 1];
                let back = client.with("last-event-id", cursor);
                // The query is what it was, as an `EventSource` has it.
                let response = ask(&back, &id, &format!("{}&{bounds}", form.query())).await;
                assert_eq!(response.status, 200, "{form:?} {bounds} {cut}");
                let rest = form.read(&response.all().await.0);
                assert_eq!(
                    rest.entries,
                    whole.entries[cut..],
                    "{form:?} {bounds} {cut}"
                );
                assert_eq!(rest.reason(), whole.reason());
            }
            let (_, last, _) = whole.entries.last().expect("entries");
            // As a plain cursor it names its place; what is left is no matter of the data path.
            let again = client.with("last-event-id", last);
            let again = again
                .send("POST", "/v1/chat/completions", streamweld_tests::CHAT)
                .await;
            assert_eq!((again.status, again.id()), (200, id.clone()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_source_stops_at_its_bound() {
    let script = Script::tokens(30).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, data) = ended(&harness, &script).await;
    for bounds in [
        "count=5",
        "bytes=700",
        &*format!("bytes={}", data[0].len() + 7),
        "until=1796040000&count=9",
    ] {
        // Nothing of ours is in it but ids, and it ends cleanly.
        let (body, end) = ask(&harness.client, &id, bounds).await.all().await;
        assert_eq!(end, End::Proper);
        let text = String::from_utf8(body).expect("UTF-8");
        assert!(!text.contains("event:"), "{bounds}");
        let last = text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("id: "));
        let last = last.expect("an id to come back with");
        assert!(last.ends_with(":0:0"), "{bounds}: {last}");
        let back = harness.client.with("last-event-id", last);
        let response = ask(&back, &id, bounds).await;
        assert_eq!((response.status, response.all().await.0.len()), (204, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn history_alone_ends_where_it_was() {
    let script = Script::tokens(20).id("fixed").gate_after(5, "end");
    let harness = Harness::start(script).await;
    let (client, response) = (&harness.client, harness.client.durable_chat().await);
    let id = response.id();
    wait_seq(client, &id, 6).await;
    for form in Form::ALL {
        let seen = read(client, &id, form, "live=false").await;
        assert_eq!(
            (seen.seqs(), seen.reason()),
            (vec![2, 3, 4, 5, 6], "caught_up")
        );
        assert!(!seen.has("live"));
        assert_eq!(seen.told("closing")["next"], format!("{id}:6"));
    }
    harness.mock.gates().release("end");
    response.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_long_enough_is_told_that_it_was_idle() {
    let script = Script::tokens(20).id("fixed").gate_after(5, "end");
    let harness = Setup::new(script)
        .config(|config| config.edge.heartbeat = Duration::from_millis(50))
        .start()
        .await;
    let (client, response) = (&harness.client, harness.client.durable_chat().await);
    let id = response.id();
    wait_seq(client, &id, 6).await;
    for form in [Form::Events, Form::Batch, Form::Lines] {
        let seen = read(client, &id, form, "wait=400ms").await;
        assert_eq!((seen.seqs(), seen.reason()), (vec![2, 3, 4, 5, 6], "idle"));
        assert_eq!(seen.told("live")["through"], json!(6));
        // Meanwhile it was told where the end is.
        let ping = seen.told("ping");
        assert!(ping["last"] == 6 && ping["last_time"].is_string());
    }
    harness.mock.gates().release("end");
    response.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_limited_is_never_caught_up() {
    let script = Script::tokens(20).id("fixed").gate_after(6, "end");
    let harness = Harness::start(script).await;
    let (client, response) = (&harness.client, harness.client.durable_chat().await);
    let id = response.id();
    wait_seq(client, &id, 7).await;
    for form in Form::ALL {
        for (most, given) in [(1, 1), (5, 5)] {
            let seen = read(client, &id, form, &format!("max_replay={most}")).await;
            assert_eq!((seen.entries.len(), seen.reason()), (given, "max_replay"));
            assert_eq!(seen.told("replay_limit")["max_replay"], most);
            assert!(!seen.has("live"), "{form:?}");
        }
        // As many as there are, or more, is the whole: nothing is limited.
        for most in [6, 7] {
            let query = format!("max_replay={most}&live=false");
            let seen = read(client, &id, form, &query).await;
            assert_eq!(
                (seen.entries.len(), seen.reason()),
                (6, "caught_up"),
                "{form:?} {most}"
            );
            assert!(!seen.has("replay_limit"));
        }
    }
    let untold = ask(client, &id, "max_replay=2").await.all().await.0;
    assert_eq!(
        blocks(&untold)[2].event.as_deref(),
        Some("streamweld.replay_limit")
    );
    harness.mock.gates().release("end");
    response.all().await;
}
