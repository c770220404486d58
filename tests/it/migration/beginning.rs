//! Before anything was said: the same request goes to another backend, within the budget of attempts (protocol.md 8.7).

use std::num::NonZeroU32;

use serde_json::json;
use streamweld_mock::{Cut, Engine, Raw, Script};
use streamweld_tests::{End, TwinsSetup, state};

use super::answer::{Answer, CHAT, ask, request};
use super::story::{TEXT, says};

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_says_nothing_is_followed_by_another() {
    let fails = [
        ("503", Script::error(503)),
        ("500", Script::error(500)),
        ("reset before the head", Script::raw(Raw::new().rst())),
        ("closed before the head", Script::raw(Raw::new().fin())),
        ("cut behind the head", says(Engine::Vllm).fin_after(0)),
        (
            "cut within the first event",
            says(Engine::Vllm).fin_after((0, 30)),
        ),
        (
            "cut behind the role",
            says(Engine::Vllm).id("lost").fin_after(1),
        ),
        ("error first", says(Engine::Vllm).error_after(0)),
        (
            "abort behind the role",
            says(Engine::Vllm).id("lost").abort_after(1),
        ),
    ];
    let twins = TwinsSetup::new(says(Engine::Vllm).id("kept")).start().await;
    let client = &twins.replica.client;
    let (whole, _) = ask(client, CHAT, &request(CHAT, &json!({}))).await;
    for (name, script) in fails {
        let before = twins.attempts().len();
        twins.next([script]);
        let body = request(CHAT, &json!({})).to_string();
        let response = client.send("POST", CHAT, &body).await;
        assert_eq!(response.status, 200, "{name}");
        let id = response.id();
        let (shown, end) = response.all().await;
        let answer = Answer::of(&shown);
        assert_eq!(
            (end, answer.text.as_str(), answer.roles()),
            (End::Proper, TEXT, 1),
            "{name}"
        );
        // One answer, whichever part of it was shown first.
        let ids: std::collections::BTreeSet<_> = answer
            .chunks
            .iter()
            .map(|chunk| chunk["id"].to_string())
            .collect();
        assert_eq!(ids.len(), 1, "{name}: {ids:?}");
        if !name.contains("behind the role") {
            assert_eq!(answer, whole, "{name}");
        }
        let attempts = twins.attempts();
        assert_eq!(attempts.len(), before + 2, "{name}");
        assert_ne!(
            twins.at(&attempts[before]),
            twins.at(&attempts[before + 1]),
            "{name}"
        );
        assert_eq!(attempts[before].body, attempts[before + 1].body, "{name}");
        assert_eq!(state(client, &id).await["attempts"], 2, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_fail_elsewhere_too_is_asked_for_once() {
    for fails in [
        says(Engine::Vllm).bad_utf8_after(0),
        says(Engine::Vllm)
            .block_after(0, "data: {\"error\":{\"message\":\"no\",\"code\":400}}\n\n"),
    ] {
        let twins = TwinsSetup::new(says(Engine::Vllm)).start().await;
        twins.next([fails]);
        let client = &twins.replica.client;
        let body = request(CHAT, &json!({})).to_string();
        let (_, end) = client.send("POST", CHAT, &body).await.all().await;
        assert_eq!((end, twins.attempts().len()), (End::Fin, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_refuses_connections_costs_nobody_an_answer() {
    let mut twins = TwinsSetup::new(says(Engine::Vllm)).start().await;
    twins.mocks.remove(1).kill(Cut::Rst).await;
    for _ in 0..10 {
        let (answer, end) = ask(&twins.replica.client, CHAT, &request(CHAT, &json!({}))).await;
        assert_eq!((end, answer.text.as_str()), (End::Proper, TEXT));
    }
    assert_eq!(twins.attempts().len(), 10);
}

/// What the last one says is what the client is told.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_are_asked_than_allowed_and_the_last_answer_is_passed_on() {
    for (attempts, count) in [(3, 4), (2, 4), (3, 2), (1, 2)] {
        let setup = TwinsSetup::new(says(Engine::Vllm)).count(count);
        let most = NonZeroU32::new(attempts).expect("not zero");
        let twins = setup
            .config(move |config| config.migration.attempts = most)
            .start()
            .await;
        let answers = (1..=4).map(|number| {
            Script::answer(503, format!("busy {number}")).header("retry-after", number.to_string())
        });
        twins.next(answers);
        let asked = usize::try_from(attempts).expect("few").min(count);
        let body = request(CHAT, &json!({})).to_string();
        let response = twins.replica.client.send("POST", CHAT, &body).await;
        assert_eq!(response.status, 503);
        assert_eq!(
            response.header("retry-after"),
            Some(asked.to_string().as_str())
        );
        assert_eq!(response.all().await.0, format!("busy {asked}").as_bytes());
        assert_eq!(twins.attempts().len(), asked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_refused_once() {
    for status in [400, 401, 404, 413, 422, 429] {
        let twins = TwinsSetup::new(says(Engine::Vllm)).start().await;
        twins.next([Script::answer(status, "no").header("retry-after", "7")]);
        let body = request(CHAT, &json!({})).to_string();
        let response = twins.replica.client.send("POST", CHAT, &body).await;
        assert_eq!(
            (response.status, response.header("retry-after")),
            (status, Some("7"))
        );
        assert_eq!(response.all().await.0, b"no");
        assert_eq!(twins.attempts().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_not_kept_has_one_attempt() {
    let setup = TwinsSetup::new(says(Engine::Vllm));
    let twins = setup
        .config(|config| config.edge.max_kept_body = 16)
        .start()
        .await;
    twins.next([Script::answer(503, "busy")]);
    let body = request(CHAT, &json!({})).to_string();
    let response = twins.replica.client.send("POST", CHAT, &body).await;
    assert_eq!(
        (response.status, response.all().await.0),
        (503, b"busy".to_vec())
    );
    assert_eq!(twins.attempts().len(), 1);
    // It came as it is, to the byte.
    assert_eq!(twins.attempts()[0].body, body);
}

/// All of them begin and say nothing: the failure of the last one is the end.
#[tokio::test(flavor = "multi_thread")]
async fn when_all_begin_and_none_says_anything_the_end_is_an_error() {
    let twins = TwinsSetup::new(says(Engine::Vllm).fin_after(1))
        .count(4)
        .start()
        .await;
    let (answer, end) = ask(&twins.replica.client, CHAT, &request(CHAT, &json!({}))).await;
    assert_eq!(
        (end, answer.done, answer.text.as_str()),
        (End::Fin, false, "")
    );
    assert_eq!(answer.error.expect("an error")["code"], "truncated");
    assert_eq!(twins.attempts().len(), 3);
}
