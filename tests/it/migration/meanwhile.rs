//! What may happen while somebody is looked for who goes on.

use serde_json::json;
use streamweld_mock::{Engine, Outcome, Script};
use streamweld_tests::{End, Response, Twins, TwinsSetup, state, wait_end};

use super::answer::{Answer, CHAT, request};
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
