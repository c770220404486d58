//! A key that a caller has shown goes to another replica only where the operator wants it kept.

use std::fs;

use streamweld_mock::Engine;
use streamweld_tests::{patience, state, wait_end};

use super::scene::{Scene, assert_whole, body};

const KEY: &str = "Bearer secret-of-a-caller";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_not_kept_is_named_by_its_gate() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let mine = first.client.with("authorization", KEY);
    let begun = first.begin_with(&mine, &scene, 9, &body()).await;
    let request = format!("streamweld:{{{}}}:request", begun.id);
    let kept = scene.redis.cli(&["GET", &request]).await;
    assert!(
        kept.contains("messages") && !kept.contains("secret"),
        "{kept}"
    );
    first.die().await;
    let mine = second.client.with("authorization", KEY);
    patience(wait_end(&mine, &begun.id)).await;
    let state = state(&mine, &begun.id).await;
    assert_eq!(state["terminal"]["code"], "migration_refused");
    let message = state["terminal"]["message"].as_str().expect("a message");
    assert!(message.contains("credential"), "{message}");
    assert_eq!(scene.redis.cli(&["EXISTS", &request]).await, "0");
}

/// At the start, not when the first replica dies.
#[tokio::test(flavor = "multi_thread")]
async fn that_callers_keys_are_not_kept_is_told_at_the_start() {
    let scene = Scene::new(Engine::Vllm).await;
    let replica = scene.sidecar("a").await;
    replica.process.signal("TERM");
    let (_, output) = patience(replica.process.ended()).await;
    assert!(
        output.contains("--keep-credentials") && output.contains("credential_file"),
        "{output}"
    );
    let keys = std::env::temp_dir().join(format!("streamweld-{}-told-keys", std::process::id()));
    fs::write(&keys, "0123456789abcdef0123456789abcdef\n").expect("a file");
    let scene = scene
        .option(format!("--request-key-file={}", keys.display()))
        .option("--keep-credentials");
    let replica = scene.sidecar("b").await;
    replica.process.signal("TERM");
    let (_, output) = patience(replica.process.ended()).await;
    assert!(!output.contains("credential_file"), "{output}");
    fs::remove_file(keys).expect("it is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_kept_is_sealed_and_shown_to_whoever_goes_on() {
    let keys = std::env::temp_dir().join(format!("streamweld-{}-request-keys", std::process::id()));
    fs::write(&keys, "0123456789abcdef0123456789abcdef\n").expect("a file");
    let scene = Scene::new(Engine::Vllm)
        .await
        .option(format!("--request-key-file={}", keys.display()))
        .option("--keep-credentials");
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let mine = first.client.with("authorization", KEY);
    let begun = first.begin_with(&mine, &scene, 9, &body()).await;
    let request = format!("streamweld:{{{}}}:request", begun.id);
    let kept = scene.redis.cli(&["GET", &request]).await;
    assert!(
        !kept.contains("messages") && !kept.contains("secret"),
        "{kept}"
    );
    first.die().await;
    assert_whole(&second.client.with("authorization", KEY), &begun).await;
    let asked = second.mock.recorder().requests();
    let asked = asked
        .iter()
        .find(|request| request.method == "POST")
        .expect("it was asked");
    assert_eq!(asked.header("authorization"), Some(KEY));
    fs::remove_file(keys).expect("it is there");
}
