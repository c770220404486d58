//! A replica that leaves hands over what it runs.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::Engine;
use streamweld_tests::{End, Process, patience, state};

use super::scene::{Scene, assert_whole, entries};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_hands_over_what_could_not_end_in_time() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let mut begun = Vec::new();
    for count in [1, 5, 9, 13] {
        begun.push(first.begin(&scene, count).await);
    }
    first.process.signal("TERM");
    let (status, output) = patience(first.process.ended()).await;
    assert!(status.success(), "{output}");
    for begun in &mut begun {
        let (rest, end) = begun.response.body.rest().await;
        assert_ne!(end, End::Proper, "its reader comes back");
        assert_eq!(String::from_utf8_lossy(&rest), "");
        assert_whole(&second.client, begun).await;
        let moves = entries(&second.client, &begun.id, "streamweld.migration").await;
        assert_eq!(moves.len(), 1);
        assert_eq!(moves[0]["trigger"], "hand_over");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_answers_when_nothing_is_left() {
    let scene = Scene::new(Engine::LlamaCpp).await;
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 9).await;
    let drained = first
        .admin
        .send("POST", "/admin/drain?timeout=20s", "")
        .await;
    let drained = drained.json().await;
    assert_eq!(drained["drained"], true, "{drained}");
    assert_eq!(drained["handed_over"], 1);
    assert_whole(&second.client, &begun).await;
    assert_eq!(first.client.chat().await.status, 503);
    assert_eq!(first.admin.get("/readyz").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_is_that_of_the_log_where_it_does_not_run() {
    let scene = Scene::new(Engine::Vllm)
        .await
        .pace(Duration::from_millis(300));
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 9).await;
    let drained = first
        .admin
        .send("POST", "/admin/drain?timeout=20s", "")
        .await;
    assert_eq!(drained.json().await["handed_over"], 1);
    // It runs at the second one now, and the first one reads the log.
    for client in [&first.client, &second.client] {
        let state = state(client, &begun.id).await;
        assert_eq!(state["status"], "streaming", "{state}");
        assert_eq!(state["backends"], json!(["a", "b"]), "{state}");
        assert_eq!(
            (&state["attempts"], &state["migrations"]),
            (&json!(2), &json!(1)),
            "{state}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_waits_until_nothing_is_left() {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar("a").await;
    let admin = format!("--admin=http://{}", first.admin.addr);
    let begun = first.begin(&scene, 9).await;
    // Nobody is there to go on with it.
    let (status, output) = patience(Process::run(&["drain", "--wait=1s", &admin]).ended()).await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(
        output.contains("not drained; 0 handed over, 1 remaining"),
        "{output}"
    );
    assert!(output.contains("there is no other replica"), "{output}");
    let stop = format!("/v1/streams/{}/stop", begun.id);
    assert_eq!(first.client.send("POST", &stop, "").await.status, 200);
    let (status, output) = patience(Process::run(&["drain", "--wait", &admin]).ended()).await;
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(
        output.contains("drained; 0 handed over, 0 remaining"),
        "{output}"
    );
}
