//! Rows of the list of faults (see `faults`), where another backend is there. Rows 1 and 4 are `cuts`, 3 and 6
//! `silence`, 8 `beginning`, 54 `ordered`.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::{Cut, End as MockEnd, Engine, ErrorEvent, FullBacklog, Script, Writes};
use streamweld_tests::{End, GROUP, TwinsSetup};
use streamweld_upstream::fleet::{self, Spec};
use tokio::time::Instant;

use super::answer::{Answer, CHAT, ask, request};
use super::story::{SHOWN, TEXT, Told, says};

/// The first attempt ends like this; the answer goes on.
async fn goes_on(first: Script, trigger: &str) {
    let twins = TwinsSetup::new(says(Engine::Vllm)).start().await;
    twins.next([first]);
    let told = Told::chat(&twins, &json!({})).await;
    told.assert_moved("token_ids");
    assert_eq!(told.payloads("migration")[0]["trigger"], trigger);
}

/// As vLLM does it: an error event and the sentinel behind it; or a finish that is none.
#[tokio::test(flavor = "multi_thread")]
async fn row_02_an_engine_that_is_told_to_terminate_is_left() {
    let error = ErrorEvent {
        events: SHOWN,
        sentinel: true,
        ..ErrorEvent::default()
    };
    goes_on(
        says(Engine::Vllm).end(MockEnd::ErrorAfter(error)),
        "upstream_error",
    )
    .await;
    goes_on(says(Engine::Vllm).abort_after(SHOWN), "aborted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_05_an_end_without_a_finish_is_no_end() {
    goes_on(says(Engine::Vllm).clean_after(SHOWN), "truncated").await;
    goes_on(says(Engine::Vllm).end(MockEnd::SentinelOnly), "truncated").await;
    goes_on(says(Engine::Vllm).end(MockEnd::NoFinish), "truncated").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_07_both_parts_may_come_byte_by_byte() {
    let torn = || says(Engine::Vllm).writes(Writes::Bytes(1));
    let twins = TwinsSetup::new(torn()).start().await;
    twins.next([torn().fin_after((SHOWN, 40))]);
    Told::chat(&twins, &json!({}))
        .await
        .assert_moved("token_ids");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_13_a_full_accept_queue_costs_the_connect_timeout_and_no_answer() {
    let backlog = FullBacklog::bind().expect("a port");
    let full = format!("http://{}", backlog.addr()).parse().expect("a URL");
    let twins = TwinsSetup::new(says(Engine::Vllm))
        .count(1)
        .config(move |config| {
            let spec = Spec {
                group: Some(GROUP.to_owned()),
                ..Spec::new("full", full, fleet::Engine::Vllm)
            };
            config.backends.push(spec);
            config.upstream.connect_timeout = Duration::from_millis(200);
        })
        .start()
        .await;
    let begun = Instant::now();
    for _ in 0..6 {
        let (answer, end) = ask(&twins.replica.client, CHAT, &request(CHAT, &json!({}))).await;
        assert_eq!((end, answer.text.as_str()), (End::Proper, TEXT));
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_15_the_next_backend_may_die_too() {
    let twins = TwinsSetup::new(says(Engine::Vllm)).count(3).start().await;
    twins.next([
        says(Engine::Vllm).fin_after(SHOWN),
        // Before it says anything, in the middle, and then not at all.
        says(Engine::Vllm).rst_after(0),
        says(Engine::Vllm).rst_after(3),
    ]);
    let (answer, end) = ask(&twins.replica.client, CHAT, &request(CHAT, &json!({}))).await;
    assert_eq!(
        (end, answer.text.as_str(), answer.done),
        (End::Proper, TEXT, true)
    );
    assert_eq!(twins.attempts().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_15_when_all_are_dead_the_end_is_an_error_in_time() {
    let setup = TwinsSetup::new(says(Engine::Vllm)).count(3);
    let mut twins = setup
        .config(|config| config.migration.wait = Duration::from_millis(500))
        .start()
        .await;
    twins.next([says(Engine::Vllm).gate_after(SHOWN, "cut")]);
    let body = request(CHAT, &json!({})).to_string();
    let mut response = twins.replica.client.send("POST", CHAT, &body).await;
    let mut shown = response.body.blocks(SHOWN).await;
    // The one that answers is the last to die.
    let at = twins.at(&twins.attempts()[0]);
    twins.mocks.rotate_left((at + 1) % 3);
    for mock in twins.mocks.drain(..) {
        mock.kill(Cut::Rst).await;
    }
    let (rest, end) = response.body.rest().await;
    shown.extend(rest);
    let answer = Answer::of(&shown);
    assert_eq!((end, answer.done), (End::Fin, false));
    let error = answer.error.expect("an error");
    assert_eq!(error["code"], "migration_refused");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("backend_available"), "{message}");
}
