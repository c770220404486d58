//! A session goes on where its answer does: with the same bounds, and what was live stays live.

use streamweld_mock::Engine;
use streamweld_tests::{Body, End, patience};

use super::scene::{LEASE, Scene, TEXT};

/// Reads so many lines.
async fn lines(body: &mut Body, count: usize) -> Vec<u8> {
    let mut read = Vec::new();
    while read.iter().filter(|&&byte| byte == b'\n').count() < count {
        read.extend(body.chunk().await.expect("it goes on"));
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_behind_a_change_of_the_owner() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 9).await;
    let target = format!("/v1/streams/{}/events?format=ndjson&count=10000", begun.id);
    let mut session = second.client.get(&target).await;
    // How it begins, nine events, and that it is live.
    let mut shown = lines(&mut session.body, 11).await;
    first.die().await;
    let (rest, end) = patience(session.body.rest()).await;
    assert_eq!(end, End::Proper, "within {LEASE:?} or so");
    shown.extend(rest);
    let told: Vec<serde_json::Value> = shown
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| serde_json::from_slice(line).expect("a line of JSON"))
        .collect();
    let names: Vec<_> = told
        .iter()
        .map(|line| line["type"].as_str().expect("a type"))
        .collect();
    for (name, times) in [("session", 1), ("live", 1), ("closing", 1)] {
        assert_eq!(
            names.iter().filter(|it| **it == name).count(),
            times,
            "{names:?}"
        );
    }
    let closing = told.last().expect("the end");
    assert_eq!(
        (&closing["reason"], &closing["terminal"]["kind"]),
        (&"end_of_stream".into(), &"done".into())
    );
    let entries: Vec<_> = told.iter().filter(|line| line["type"] == "entry").collect();
    let mut text = String::new();
    for entry in &entries {
        let data = entry["data"].as_str().expect("data");
        if let Ok(chunk) = serde_json::from_str::<serde_json::Value>(data) {
            text += chunk["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap_or_default();
        }
    }
    assert_eq!(text, TEXT);
    // What is left is what was given less.
    for (entry, given) in entries.iter().zip(1..) {
        let cursor = entry["cursor"].as_str().expect("a cursor");
        assert!(
            cursor.ends_with(&format!(":{}:-", 10_000 - given)),
            "{cursor}"
        );
    }
}
