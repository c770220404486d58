//! What is asked for and cannot be meant.

use streamweld_mock::Script;
use streamweld_tests::{Harness, Way};

use super::{ask, ended};

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_by_its_name() {
    let script = Script::tokens(5).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let (id, _) = ended(&harness, &script).await;
    for (query, names) in [
        ("seq=0", "`seq`"),
        ("seq=1&tail=2", "send one of them"),
        ("since=1&last_event_id=2", "send one of them"),
        ("since=yesterday", "`since`"),
        ("since=2026-02-30T00:00:00Z", "`since`"),
        ("count=0", "`count`"),
        ("bytes=-1", "`bytes`"),
        ("until=x", "`until`"),
        ("wait=2h", "`wait`"),
        ("wait=5&live=false", "`wait`"),
        ("format=json&wait=61", "60s"),
        ("live=no", "`live`"),
        ("max_replay=0", "`max_replay`"),
        ("on_gap=maybe", "`on_gap`"),
        ("format=xml", "`format`"),
        ("payload=hex&format=json", "`payload`"),
        ("payload=text", "`payload`"),
        ("clamp=true", "`clamp`"),
        ("count=1&form=native", "`form`"),
        ("count=1&after_events=1", "`after_events`"),
        ("events=all", "`session`"),
    ] {
        let response = ask(&harness.client, &id, query).await;
        assert_eq!(response.status, 400, "{query}");
        let error = response.json().await;
        assert_eq!(error["error"]["code"], "invalid_parameter", "{query}");
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.contains(names), "{query}: {message}");
    }
    // A cursor is looked at after who may read, and told as such.
    for (cursor, status, code) in [
        (format!("{id}:3:4"), 400, "invalid_cursor"),
        (format!("{id}:3:-:-"), 400, "invalid_cursor"),
        (format!("{id}:99:4:-"), 409, "cursor_ahead"),
        (
            format!("{}:3:4:-", id.replace(&id[20..], "000000")),
            400,
            "cursor_mismatch",
        ),
    ] {
        let query = format!("count=2&last_event_id={cursor}");
        let response = ask(&harness.client, &id, &query).await;
        assert_eq!(
            response.error_code().await,
            (status, code.into()),
            "{cursor}"
        );
    }
    for way in Way::ALL {
        // Where a plain cursor is expected, one that says what is left is one.
        let cursor = format!("{id}:3:9:-");
        let plain = way
            .resume(&harness.client, &format!("{id}:3"), super::AGAIN)
            .await;
        let bounded = way.resume(&harness.client, &cursor, super::AGAIN).await;
        let (plain, bounded) = (plain.all().await.0, bounded.all().await.0);
        if way == Way::Again {
            assert!(plain == bounded);
        } else {
            let strip = |bytes: &[u8]| super::Form::Events.read(bytes).seqs();
            assert_eq!(strip(&plain), strip(&bounded));
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_learns_nothing_by_a_session() {
    let script = Script::tokens(5).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let owner = harness.client.with("authorization", "Bearer owner");
    let response = owner.chat().await;
    let id = response.id();
    response.all().await;
    for query in [
        "count=1",
        "format=json",
        "seq=99",
        "tail=99",
        "on_gap=continue",
        "events=session",
    ] {
        let response = ask(&harness.client, &id, query).await;
        assert_eq!(response.header("x-streamweld-verdict"), None);
        assert_eq!(
            response.error_code().await,
            (404, "stream_not_found".into()),
            "{query}"
        );
        let response = ask(&owner, &id, query).await;
        assert!(matches!(response.status, 200 | 416), "{query}");
    }
}
