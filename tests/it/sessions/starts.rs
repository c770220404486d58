//! Where a session starts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use streamweld_mock::Script;
use streamweld_tests::{Client, Harness, wait_end, wait_seq};

use super::{Form, ask, ended, read};

async fn first(client: &Client, id: &str, form: Form, query: &str) -> Option<u64> {
    let seen = read(client, id, form, query).await;
    seen.seqs().first().copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_start_is_its_first_entry() {
    let script = Script::tokens(20).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, data) = ended(&harness, &script).await;
    let (client, last) = (&harness.client, data.len() as u64 + 2);
    for form in Form::ALL {
        for (query, expected) in [
            ("count=1", 2),
            ("seq=1", 2),
            ("seq=7", 7),
            ("last_event_id=7", 8),
            (&*format!("lastEventId={id}:7"), 8),
            ("tail=4", last - 3),
            (&*format!("tail={last}"), 2),
            ("since=1970-01-01T00:00:00Z", 2),
        ] {
            assert_eq!(
                first(client, &id, form, query).await,
                Some(expected),
                "{form:?} {query}"
            );
        }
        // What a client comes back with counts before what it asked for.
        let back = client.with("last-event-id", &format!("{id}:9"));
        for query in ["seq=3", "tail=1", "since=0", "lastEventId=3"] {
            assert_eq!(first(&back, &id, form, query).await, Some(10), "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_beyond_the_end_is_refused_or_clamped() {
    let script = Script::tokens(20).id("fixed").gate_after(5, "end");
    let harness = Harness::start(script).await;
    let (client, response) = (&harness.client, harness.client.durable_chat().await);
    let id = response.id();
    wait_seq(client, &id, 6).await;
    for query in ["seq=8", "tail=7", "seq=18446744073709551615"] {
        let refused = ask(client, &id, query).await;
        assert_eq!(refused.header("x-streamweld-tail"), Some("6"), "{query}");
        assert_eq!(refused.error_code().await, (416, "start_beyond_end".into()));
    }
    // The next one is no further than the end.
    let next = read(client, &id, Form::Lines, "seq=7&live=false").await;
    assert_eq!((next.seqs(), next.reason()), (vec![], "caught_up"));
    let clamped = read(client, &id, Form::Lines, "seq=99&clamp=true&live=false").await;
    assert_eq!((clamped.seqs(), clamped.reason()), (vec![], "caught_up"));
    let whole = read(client, &id, Form::Lines, "tail=99&clamp=true&live=false").await;
    assert_eq!(whole.seqs(), [2, 3, 4, 5, 6]);
    harness.mock.gates().release("end");
    response.all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_found_by_their_time() {
    let script = Script::tokens(12)
        .id("fixed")
        .gate_after(4, "later")
        .gate_after(8, "last");
    let harness = Harness::start(script).await;
    let (client, response) = (&harness.client, harness.client.durable_chat().await);
    let id = response.id();
    let mut between = Vec::new();
    for (gate, seq) in [("later", 5), ("last", 9)] {
        wait_seq(client, &id, seq).await;
        let state = streamweld_tests::state(client, &id).await;
        let last = humantime::parse_rfc3339(state["last_event_at"].as_str().expect("a time"));
        let after = last.expect("a time") + Duration::from_millis(1);
        // Until the clock shows that an entry that comes now is later.
        streamweld_tests::patience(async {
            while SystemTime::now() < after + Duration::from_millis(1) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        between.push(after);
        harness.mock.gates().release(gate);
    }
    response.all().await;
    wait_end(client, &id).await;
    let millis = |time: SystemTime| time.duration_since(UNIX_EPOCH).expect("later").as_millis();
    for form in Form::ALL {
        for (time, expected) in between.iter().zip([6, 10]) {
            let text = humantime::format_rfc3339_millis(*time).to_string();
            for since in [
                text.clone(),
                text.replace('T', "%20"),
                text.trim_end_matches('Z').to_owned(),
                text.replace('Z', "+00:00"),
                millis(*time).to_string(),
            ] {
                let seen = first(client, &id, form, &format!("since={since}")).await;
                assert_eq!(seen, Some(expected), "{form:?} {since}");
            }
        }
        let (from, until) = (millis(between[0]), millis(between[1]));
        let seen = read(client, &id, form, &format!("since={from}&until={until}")).await;
        assert_eq!((seen.seqs(), seen.reason()), (vec![6, 7, 8, 9], "until"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_come_has_no_history_and_then_what_is_live() {
    let script = Script::tokens(12).id("fixed").gate_after(4, "go");
    let harness = Harness::start(script).await;
    let (client, response) = (&harness.client, harness.client.durable_chat().await);
    let id = response.id();
    wait_seq(client, &id, 5).await;
    for form in [Form::Events, Form::Batch, Form::Lines] {
        let history = read(client, &id, form, "since=99999999999&live=false").await;
        assert_eq!(
            (history.seqs(), history.reason()),
            (vec![], "caught_up"),
            "{form:?}"
        );
    }
    let query = format!("{}&since=99999999999", Form::Lines.query());
    let live = ask(client, &id, &query).await;
    harness.mock.gates().release("go");
    let (body, _) = live.all().await;
    let seen = Form::Lines.read(&body);
    assert_eq!(seen.seqs().first(), Some(&6));
    assert_eq!(seen.told("live")["through"], json!(5));
    assert_eq!(seen.reason(), "end_of_stream");
    response.all().await;
}
