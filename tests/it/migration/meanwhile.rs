//! What may happen while somebody is looked for who goes on.

use serde_json::json;
use streamweld_mock::{Engine, Outcome, Script};
use streamweld_tests::{End, Response, Twins, TwinsSetup, state, wait_end};

use super::answer::{Answer, CHAT, request};
use super::served::{Begun, post};
use super::story::{SHOWN, TEXT, says};

/// An answer that was cut, and whose next backend is asked and has not answered yet.
async fn moving(headers: &[(&str, &str)]) -> (Twins, Response) {
    let twins = TwinsSetup::new(says(Engine::Vllm)).start().await;
    twins.next([
        says(Engine::Vllm).fin_after(SHOWN),
        says(Engine::Vllm).head_gate("head"),
    ]);
    let mut client = twins.replica.client.clone();
    for (name, value) in headers {
        client = client.with(name, value);
    }
    let body = request(CHAT, &json!({})).to_string();
    let response = client.send("POST", CHAT, &body).await;
    twins.attempt(2).await;
    (twins, response)
}

/// Checks that the one that was asked to go on was left.
async fn assert_left(twins: &Twins) {
    let number = twins.attempts()[1].index;
    let recorder = twins.mocks[0].recorder();
    // Its end shows when it writes.
    twins.mocks[0].gates().release("head");
    let ending = recorder.wait_closed(number).await.expect("it ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    assert_eq!(twins.attempts().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_somebody_is_looked_for_is_a_stop() {
    let (twins, mut response) = moving(&[]).await;
    let id = response.id();
    let path = format!("/v1/streams/{id}/stop");
    let stopped = twins
        .replica
        .client
        .send("POST", &path, "")
        .await
        .json()
        .await;
    assert_eq!(stopped["status"], "stopped");
    let (shown, end) = response.body.rest().await;
    let answer = Answer::of(&shown);
    // The stopped form ends as an app expects it.
    assert_eq!(
        (end, answer.finish(), answer.done),
        (End::Proper, Some("stop"), true)
    );
    assert!(TEXT.starts_with(&answer.text));
    assert_left(&twins).await;
    assert_eq!(state(&twins.replica.client, &id).await["migrations"], 0);
}

/// Whichever comes first, and whatever a move has come to: once somebody has called stop, it is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_beside_moves_is_a_stop() {
    let script = says(Engine::Vllm).gate_after(SHOWN, "hold");
    let twins = TwinsSetup::new(script).count(3).start().await;
    let (client, admin) = (&twins.replica.client, &twins.replica.admin);
    for round in 0..20 {
        let begun = Begun::chat(client, &json!({}), SHOWN).await;
        let id = begun.id.clone();
        let (stop, migrate) = (
            format!("/v1/streams/{id}/stop"),
            format!("/admin/streams/{id}/migrate"),
        );
        // One after the other on their connections, and at once with each other.
        let (stopped, moves) = tokio::join!(post(client, &stop), async {
            let mut moves = Vec::new();
            for query in ["", "?dry_run=true", ""] {
                moves.push(post(admin, &format!("{migrate}{query}")).await);
            }
            moves
        });
        assert_eq!((stopped.0, &stopped.1["status"]), (200, &json!("stopped")));
        for (status, told) in moves {
            let code = told["error"]["code"].as_str();
            let is_told = match status {
                200 => told["moved"] == true || told["object"] == "streamweld.migration",
                404 => code == Some("stream_not_found"),
                // The gate, where the stop is heard while the others are asked.
                409 if code == Some("migration_refused") => {
                    let gates = told["error"]["gates"].as_array().expect("a list");
                    gates.len() == 1 && gates[0]["gate"] == "stop_requested"
                }
                409 => code == Some("already_terminal"),
                _ => false,
            };
            assert!(is_told, "{round}: {status} {told}");
        }
        let (answer, end) = begun.ended().await;
        assert_eq!((end, answer.finish()), (End::Proper, Some("stop")));
        assert!(TEXT.starts_with(&answer.text));
        assert_eq!(wait_end(client, &id).await["status"], "stopped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_reader_that_leaves_ends_the_search() {
    let (twins, response) = moving(&[("x-streamweld-orphan-policy", "cancel")]).await;
    let id = response.id();
    response.leave().await;
    let state = wait_end(&twins.replica.client, &id).await;
    assert_eq!(state["terminal"]["code"], "orphan_cancelled");
    assert_left(&twins).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_and_comes_back_finds_the_answer_whole() {
    let (twins, response) = moving(&[]).await;
    let id = response.id();
    response.leave().await;
    twins.mocks[0].gates().release("head");
    assert_eq!(wait_end(&twins.replica.client, &id).await["status"], "done");
    let (shown, end) = twins.replica.client.events(&id).await.all().await;
    assert_eq!((end, Answer::of(&shown).text.as_str()), (End::Proper, TEXT));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_the_search() {
    let (mut twins, mut response) = moving(&[]).await;
    twins.replica.begin_shutdown();
    let (shown, end) = response.body.rest().await;
    let answer = Answer::of(&shown);
    assert_eq!((end, answer.done), (End::Fin, false));
    assert_eq!(answer.error.expect("an error")["code"], "shutdown");
    let Twins { replica, .. } = twins;
    replica.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_slow_is_given_both_parts() {
    let long = "the sea 海 is\n".repeat(500);
    let whole = Script::text(long.clone()).engine(Engine::Vllm);
    let twins = TwinsSetup::new(whole.clone()).start().await;
    twins.next([whole.fin_after(2000)]);
    let body = request(CHAT, &json!({})).to_string();
    let mut response = twins.replica.client.send("POST", CHAT, &body).await;
    // It has not read a byte of the body when all is over.
    assert_eq!(
        wait_end(&twins.replica.client, &response.id()).await["status"],
        "done"
    );
    let (shown, end) = response.body.rest().await;
    let answer = Answer::of(&shown);
    assert!(end == End::Proper && answer.text == long && answer.done);
}
