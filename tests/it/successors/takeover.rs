//! A replica that is killed, together with its engine, costs no answer.

use std::time::Instant;

use serde_json::json;
use streamweld_mock::Engine;
use streamweld_tests::{End, patience, state, wait_end};

use super::scene::{LEASE, Scene, assert_whole, body, entries};

/// How long whatever becomes of an answer may take, with what a busy machine takes.
const DEFINITE: std::time::Duration = std::time::Duration::from_secs(2 * LEASE.as_secs() + 8);

async fn from_every_event(engine: Engine, policy: &str, method: &str) {
    let scene = Scene::new(engine)
        .await
        .option(format!("--migration=g={policy}"));
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let third = scene.sidecar("c").await;
    let mut begun = Vec::new();
    for count in 1..=24 {
        begun.push(first.begin(&scene, count).await);
    }
    let died = Instant::now();
    first.die().await;
    for (at, begun) in begun.iter().enumerate() {
        let client = [&second.client, &third.client][at % 2];
        patience(assert_whole(client, begun)).await;
        let moves = entries(client, &begun.id, "streamweld.migration").await;
        let [moved] = &moves[..] else {
            panic!("one replica goes on: {moves:?}")
        };
        assert_eq!(moved["trigger"], "owner_lost");
        assert_eq!(moved["from"], "a");
        let expected = if at == 0 { "restart" } else { method };
        assert_eq!(moved["method"], expected, "behind {} events", at + 1);
    }
    assert!(died.elapsed() < DEFINITE, "{:?}", died.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn by_ids_from_every_event() {
    from_every_event(Engine::Vllm, "exact", "token_ids").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_prefill_from_every_event() {
    from_every_event(Engine::LlamaCpp, "prefill", "prefill").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_at_another_replica_is_given_the_rest_where_it_is() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 9).await;
    let mut live = second.client.events(&begun.id).await;
    let mut shown = live.body.blocks(9).await;
    first.die().await;
    let (rest, end) = patience(live.body.rest()).await;
    assert_eq!(end, End::Proper);
    shown.extend(rest);
    assert_eq!(streamweld_tests::texts(&shown), super::scene::TEXT);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gate_refuses_ends_with_its_name() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let mut asked = body();
    asked["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
    let begun = first.begin_with(&first.client, &scene, 9, &asked).await;
    first.die().await;
    patience(wait_end(&second.client, &begun.id)).await;
    let state = state(&second.client, &begun.id).await;
    assert_eq!(state["terminal"]["code"], "migration_refused");
    let message = state["terminal"]["message"].as_str().expect("a message");
    assert!(message.contains("tool_call"), "{message}");
    let warnings = entries(&second.client, &begun.id, "streamweld.warning").await;
    assert_eq!(warnings[0]["gate"], "tool_call");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_the_end_is_that_its_owner_is_lost() {
    let scene = Scene::new(Engine::Vllm).await.option("--migration=g=off");
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 9).await;
    first.die().await;
    patience(wait_end(&second.client, &begun.id)).await;
    let state = state(&second.client, &begun.id).await;
    assert_eq!(state["terminal"]["code"], "owner_lost");
}
