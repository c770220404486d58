//! Cursors into a part that another replica has written.

use std::collections::BTreeSet;

use serde_json::json;
use streamweld_mock::Engine;
use streamweld_tests::{Client, blocks, patience, state, texts, wait_end};

use super::scene::{Scene, Sidecar, TEXT};

/// Entries with the epochs of whoever wrote them, `None` for the first.
type Places = Vec<(u64, Option<String>)>;

/// Every entry, under its epoch and under each other one.
async fn only_what_was_shown_is_a_place(client: &Client, id: &str, places: &Places, over: bool) {
    let mut epochs: BTreeSet<_> = places.iter().map(|(_, epoch)| epoch.clone()).collect();
    assert_eq!(epochs.len(), 3, "three have written it");
    epochs.insert(Some("77".to_owned()));
    let last = places.last().expect("entries").0;
    for (seq, by) in places {
        for epoch in &epochs {
            let epoch_part = epoch.as_ref().map(|epoch| format!("~{epoch}"));
            let cursor = format!("{id}:{seq}{}", epoch_part.unwrap_or_default());
            let back = client.with("last-event-id", &cursor).events(id).await;
            if epoch != by {
                let lost = (409, "journal_regressed".to_owned());
                assert_eq!(back.error_code().await, lost, "{cursor}");
            } else if over && *seq == last {
                assert_eq!(back.status, 204, "{cursor}");
            } else {
                assert_eq!(back.status, 200, "{cursor}");
            }
        }
    }
}

/// Where nothing stands, a cursor tells of its epoch alone.
async fn nowhere_is_no_place_of_another_epoch(client: &Client, id: &str, places: &Places) {
    let now = places.last().and_then(|(_, epoch)| epoch.as_deref());
    let now = now.expect("another replica has written last");
    let before = places.iter().filter_map(|(_, epoch)| epoch.as_deref());
    let before = before.filter(|epoch| *epoch != now);
    for epoch in before.chain(["77"]) {
        for place in ["0", "99999"] {
            let cursor = format!("{id}:{place}~{epoch}");
            let back = client.with("last-event-id", &cursor).events(id).await;
            let lost = (409, "journal_regressed".to_owned());
            assert_eq!(back.error_code().await, lost, "{cursor}");
        }
    }
    let ahead = client.with("last-event-id", &format!("{id}:99999~{now}"));
    let expected = (409, "cursor_ahead".to_owned());
    assert_eq!(ahead.events(id).await.error_code().await, expected);
    let start = client.with("last-event-id", &format!("{id}:0"));
    assert_eq!(start.events(id).await.status, 200);
}

fn places(shown: &[u8]) -> Places {
    let ids = blocks(shown).into_iter().filter_map(|block| block.id);
    let places = ids.map(|id| {
        let (_, place) = id.split_once(':').expect("a cursor");
        match place.split_once('~') {
            Some((seq, epoch)) => (seq.parse().expect("a number"), Some(epoch.to_owned())),
            None => (place.parse().expect("a number"), None),
        }
    });
    places.collect()
}

/// Splits two replicas into the one whose engine was asked to go on and the other.
fn by_writer(replicas: [(&str, Sidecar); 2]) -> [(&str, Sidecar); 2] {
    let asked = |(_, replica): &(&str, Sidecar)| {
        let requests = replica.mock.recorder().requests();
        requests.iter().any(|request| request.method == "POST")
    };
    match replicas {
        [b, c] if asked(&b) && !asked(&c) => [b, c],
        [b, c] if asked(&c) && !asked(&b) => [c, b],
        _ => panic!("one of them goes on"),
    }
}

/// A window that begins with its replica's own part knows nothing of those before it; the log does.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_before_the_window_is_looked_up_in_the_log() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let (b, c) = (scene.sidecar("b").await, scene.sidecar("c").await);
    for next in [&b, &c] {
        // Each of them answers once, and stands still behind a part of it.
        next.mock.push_script(scene.script().gate_after(6, "held"));
    }
    let begun = first.begin(&scene, 9).await;
    first.die().await;
    patience(b.client.events(&begun.id).await.body.blocks(12)).await;
    let [(writer_name, writer), (left_name, left)] = by_writer([("b", b), ("c", c)]);
    writer.die().await;
    let shown = patience(left.client.events(&begun.id).await.body.blocks(15)).await;
    let late = scene.sidecar("d").await;
    let readers = [&left.client, &late.client];
    for client in readers {
        only_what_was_shown_is_a_place(client, &begun.id, &places(&shown), false).await;
    }
    left.mock.gates().release("held");
    for client in readers {
        patience(wait_end(client, &begun.id)).await;
        let (all, _) = client.events(&begun.id).await.all().await;
        assert_eq!(texts(&all), TEXT);
        only_what_was_shown_is_a_place(client, &begun.id, &places(&all), true).await;
        nowhere_is_no_place_of_another_epoch(client, &begun.id, &places(&all)).await;
        let state = state(client, &begun.id).await;
        let names = ["a", writer_name, left_name];
        assert_eq!(
            state["backends"],
            json!(names),
            "in the order in which they were asked"
        );
    }
}
