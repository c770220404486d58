//! What is a key, and whose.

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Client, Harness, Setup};

use super::{KEY, PATH, whole};

async fn assert_refused(client: &Client, code: &str) {
    let answer = client.chat().await.error_code().await;
    assert_eq!(answer, (400, code.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_different_keys_are_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    let ours = "x-streamweld-idempotency-key";
    let client = &harness.client;
    for client in [
        client.with(KEY, "a").with(ours, "b"),
        client.with(KEY, "a").with(KEY, "b"),
        client.with(ours, "a").with(ours, "b"),
    ] {
        assert_refused(&client, "idempotency_conflict").await;
    }
    assert_eq!(harness.mock.recorder().count(), 0);
    let same = client.with(KEY, "a").with(ours, "a");
    whole(same.chat().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_that_are_no_key_are_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    for bad in ["", "a b", "a\tb", "é", &"k".repeat(256)] {
        let client = harness.client.with(KEY, bad);
        assert_refused(&client, "invalid_idempotency_key").await;
    }
    assert_eq!(harness.mock.recorder().count(), 0);
    for good in ["!", "~", "\"a\"", &"k".repeat(255)] {
        let client = harness.client.with(KEY, good);
        whole(client.chat().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_the_callers_own() {
    let harness = Harness::start(Script::tokens(20)).await;
    let client = harness.client.with(KEY, "k");
    let mut ids = Vec::new();
    for client in [
        client.clone(),
        client.with("authorization", "Bearer a"),
        client.with("authorization", "Bearer b"),
        client.with("x-api-key", "Bearer a"),
    ] {
        let other = CHAT.replace("hi", &format!("{}", ids.len()));
        let response = client.send("POST", PATH, &other).await;
        ids.push(response.id());
        whole(response).await;
    }
    ids.dedup();
    assert_eq!(ids.len(), 4);
    assert_eq!(harness.mock.recorder().count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_forwarded_and_what_is_ours_is_not() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = harness
        .client
        .with(KEY, "k")
        .with("X-Streamweld-Idempotency-Key", "k")
        .with("X-Streamweld-Events", "control")
        .with("X-Streamweld-Orphan-Policy", "cancel")
        .with("X-Streamweld-Anything", "x");
    client.chat().await.all().await;
    let request = harness.mock.recorder().request(0).expect("recorded");
    assert_eq!(request.header(KEY), Some("k"));
    let ours = request
        .headers
        .iter()
        .filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-streamweld"));
    assert_eq!(ours.count(), 0, "{:?}", request.headers);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_has_no_key() {
    let setup = Setup::new(Script::tokens(3))
        .config(|config| config.generation.durable_get = vec!["/feed".to_owned()]);
    let harness = setup.start().await;
    let client = harness.client.with(KEY, "not a key");
    for _ in 0..2 {
        let response = client.get("/feed").await;
        assert_eq!(response.status, 200);
        response.all().await;
    }
    assert_eq!(harness.mock.recorder().count(), 2);
}
