//! The gates about who could go on.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::{Cut, Engine, Faults, Refuse};
use streamweld_tests::{GROUP, TwinsSetup};
use streamweld_upstream::fleet;

use super::answer::{Answer, CHAT, request};
use super::story::{SHOWN, TEXT, Told, cut_once, says};

#[tokio::test(flavor = "multi_thread")]
async fn backend_available_refuses_when_nobody_of_the_group_is_there() {
    // Each is the only one of its group.
    let twins = cut_once(Engine::Vllm, |setup| {
        let setup = setup.specs(|at, spec| spec.group = Some(format!("{GROUP}{at}")));
        setup.config(|config| {
            config.migration.wait = Duration::from_millis(200);
            let groups = [0, 1].map(|at| format!("{GROUP}{at}"));
            config.migration.vouched.extend(groups);
        })
    })
    .await;
    let saw = Told::chat(&twins, &json!({}))
        .await
        .assert_refused(&["backend_available"]);
    assert_eq!(saw, ["no backend is free to go on"]);
    assert_eq!(twins.attempts().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_left_of_the_group_goes_on() {
    goes_on_without_one_of(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backend_that_was_left_is_asked_again_when_it_alone_is_there() {
    goes_on_without_one_of(2).await;
}

/// One of those that were not asked is killed before the answer is cut.
async fn goes_on_without_one_of(count: usize) {
    let mut several = TwinsSetup::new(says(Engine::Vllm))
        .count(count)
        .start()
        .await;
    several.next([says(Engine::Vllm).gate_after(SHOWN, "cut").fin_after(SHOWN)]);
    let body = request(CHAT, &json!({})).to_string();
    let client = several.replica.client.clone();
    let mut response = client.send("POST", CHAT, &body).await;
    let mut shown = response.body.blocks(SHOWN).await;
    let at = several.at(&several.attempts()[0]);
    several.mocks.remove((at + 1) % count).kill(Cut::Rst).await;
    several.mocks[0].gates().release("cut");
    shown.extend(response.body.rest().await.0);
    let answer = Answer::of(&shown);
    assert_eq!((answer.text.as_str(), answer.done), (TEXT, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn compatibility_refuses_whom_nobody_knows() {
    let twins = cut_once(Engine::Vllm, |setup| {
        let setup = setup.specs(|_, spec| spec.engine = fleet::Engine::Unknown);
        setup.config(|config| config.migration.wait = Duration::from_millis(200))
    })
    .await;
    let told = Told::chat(&twins, &json!({})).await;
    let saw = told.assert_refused(&["compatibility", "seam"]);
    assert!(
        saw[0].starts_with("nobody knows which engine "),
        "{}",
        saw[0]
    );
}

/// One that says in so many words that it does not go on is not asked again, and the next may do better.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_refuses_is_followed_by_another() {
    let refuses = says(Engine::Vllm).faults(Faults {
        refuse: Some(Refuse::Status(400)),
        ..Faults::default()
    });
    for (count, whole) in [(3, true), (2, false)] {
        let setup = TwinsSetup::new(says(Engine::Vllm)).count(count);
        let twins = setup
            .config(|config| config.migration.wait = Duration::from_millis(200))
            .start()
            .await;
        twins.next([says(Engine::Vllm).fin_after(SHOWN), refuses.clone()]);
        if !whole {
            twins.next(vec![refuses.clone(); 4]);
        }
        let told = Told::chat(&twins, &json!({})).await;
        if whole {
            told.assert_moved("token_ids");
            assert_eq!(told.state["attempts"], 3);
        } else {
            let saw = told.assert_refused(&["seam"]);
            assert!(
                saw[0].ends_with("refused to go on, with status 400"),
                "{}",
                saw[0]
            );
        }
    }
}
