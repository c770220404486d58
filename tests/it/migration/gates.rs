//! The gates about the answer, its times and its journal, each with one that it lets pass and one that it refuses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use streamweld_generation::HealBounds;
use streamweld_generation::migration::Policy;
use streamweld_journal::Memory;
use streamweld_journal::faulty::Faulty;
use streamweld_mock::{End as MockEnd, Engine, ErrorEvent, Faults, Script};
use streamweld_tests::{End, TwinsSetup, wait_end, wait_seq};

use super::answer::{Answer, CHAT, COMPLETIONS, request};
use super::story::{SHOWN, TEXT, Told, cut_once, says};

#[tokio::test(flavor = "multi_thread")]
async fn policy_lets_nobody_go_on_who_has_none() {
    for off in [true, false] {
        let twins = cut_once(Engine::Vllm, |setup| match off {
            true => setup.policy(Policy::Off),
            false => setup.specs(|_, spec| spec.group = None),
        })
        .await;
        let told = Told::chat(&twins, &json!({})).await;
        // It ends as its attempt did, and nothing is asked of it beyond what the app asked.
        assert_eq!((told.end, told.answer.done), (End::Fin, false));
        assert_eq!(
            told.answer.error.as_ref().expect("an error")["code"],
            "truncated"
        );
        assert!(told.payloads("warning").is_empty());
        let attempts = twins.attempts();
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].json(), request(CHAT, &json!({})));
    }
    let twins = cut_once(Engine::Vllm, |setup| setup.policy(Policy::Exact)).await;
    Told::chat(&twins, &json!({}))
        .await
        .assert_moved("token_ids");
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_class_refuses_what_would_fail_everywhere() {
    for (code, refused) in [(400, true), (422, true), (429, false), (500, false)] {
        let twins = TwinsSetup::new(says(Engine::Vllm)).start().await;
        let error = ErrorEvent {
            events: SHOWN,
            code,
            ..ErrorEvent::default()
        };
        twins.next([says(Engine::Vllm).end(MockEnd::ErrorAfter(error))]);
        let told = Told::chat(&twins, &json!({})).await;
        if refused {
            told.assert_refused(&["failure_class"]);
        } else {
            told.assert_moved("token_ids");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_refuses_what_has_moved_too_often() {
    for moves in [1, 2] {
        let setup = TwinsSetup::new(says(Engine::Vllm));
        let twins = setup
            .config(move |config| config.migration.moves = moves)
            .start()
            .await;
        let cut = says(Engine::Vllm).fin_after(SHOWN);
        twins.next([cut.clone(), cut]);
        let told = Told::chat(&twins, &json!({})).await;
        assert_eq!(
            told.payloads("migration").len(),
            usize::try_from(moves).unwrap()
        );
        assert_eq!(told.state["migrations"], moves);
        if moves == 1 {
            let warnings = told.payloads("warning");
            assert_eq!(warnings.len(), 1);
            assert_eq!(warnings[0]["gate"], "attempts");
            assert_eq!(
                warnings[0]["message"],
                "it has moved 1 times, and may 1 times"
            );
        } else {
            assert_eq!((told.answer.text.as_str(), told.answer.done), (TEXT, true));
        }
    }
}

/// A time that is up ends an answer, whoever could go on; one that is not up lets pass.
#[tokio::test(flavor = "multi_thread")]
async fn duration_ends_what_waits_for_a_backend_for_too_long() {
    for (longest, ends) in [(1, true), (3600, false)] {
        let setup = TwinsSetup::new(says(Engine::Vllm).head_gate("head"));
        let twins = setup
            .config(move |config| config.generation.max_duration = Duration::from_secs(longest))
            .start()
            .await;
        twins.next([says(Engine::Vllm).fin_after(SHOWN)]);
        let body = request(CHAT, &json!({}));
        let asked = Told::of(&twins, CHAT, &body);
        let asked = async {
            if ends {
                return asked.await;
            }
            let goes_on = async {
                twins.attempt(2).await;
                twins.mocks[0].gates().release("head");
            };
            tokio::join!(asked, goes_on).0
        };
        let told = asked.await;
        if ends {
            assert_eq!(told.end, End::Fin);
            let error = told.answer.error.expect("an error");
            assert_eq!(error["code"], "max_duration");
            let message = error["message"].as_str().expect("a message");
            assert!(
                message.contains("longer than a generation may"),
                "{message}"
            );
        } else {
            told.assert_moved("token_ids");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn journal_complete_refuses_what_the_journal_has_not() {
    // Its ring has let go of the beginning.
    let long = Script::text("word ".repeat(2000)).engine(Engine::Vllm);
    for (ring, refused) in [(8 << 10, true), (1 << 20, false)] {
        let setup = TwinsSetup::new(long.clone());
        let twins = setup
            .config(move |config| config.journal.per_generation = ring)
            .start()
            .await;
        twins.next([long.clone().fin_after(1000)]);
        let body = request(CHAT, &json!({})).to_string();
        let response = twins.replica.client.send("POST", CHAT, &body).await;
        let id = response.id();
        let (body, _) = response.all().await;
        let answer = Answer::of(&body);
        let state = wait_end(&twins.replica.client, &id).await;
        if refused {
            assert_eq!(state["terminal"]["code"], "migration_refused");
            let message = state["terminal"]["message"].as_str().expect("a message");
            assert!(message.contains("journal_complete"), "{message}");
        } else {
            assert_eq!(
                (state["status"].as_str(), answer.text.len()),
                (Some("done"), 10_000)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn journal_complete_refuses_while_the_journal_is_away() {
    let journal = Arc::new(Faulty::new(Memory::default()));
    let faults = journal.faults();
    let mut heal = HealBounds::default();
    heal.patience = Duration::from_millis(50);
    let twins = TwinsSetup::new(says(Engine::Vllm))
        .journal(journal, heal)
        .start()
        .await;
    let script = says(Engine::Vllm).gate_after(2, "more");
    twins.next([script.fin_after(SHOWN)]);
    let body = request(CHAT, &json!({})).to_string();
    let mut response = twins.replica.client.send("POST", CHAT, &body).await;
    let id = response.id();
    let mut shown = response.body.blocks(2).await;
    // What comes from here on is shown, and does not stand.
    wait_seq(&twins.replica.client, &id, 3).await;
    faults.set_down(true);
    twins.mocks[0].gates().release("more");
    let (rest, end) = response.body.rest().await;
    shown.extend(rest);
    let answer = Answer::of(&shown);
    assert_eq!((end, answer.done), (End::Fin, false));
    let message = answer.error.expect("an error")["message"].to_string();
    assert!(message.contains("journal_complete"), "{message}");
    faults.set_down(false);
    let state = wait_end(&twins.replica.client, &id).await;
    assert_eq!(state["status"], "error");
}

#[tokio::test(flavor = "multi_thread")]
async fn request_too_large_refuses_what_was_not_kept() {
    let body = request(CHAT, &json!({})).to_string().len();
    for (most, refused) in [(body - 1, true), (body, false)] {
        let twins = cut_once(Engine::Vllm, |setup| {
            setup.config(move |config| config.edge.max_kept_body = most)
        })
        .await;
        let told = Told::chat(&twins, &json!({})).await;
        if refused {
            let saw = told.assert_refused(&["request_too_large", "seam"]);
            assert!(saw[0].contains("max-kept-body"), "{}", saw[0]);
        } else {
            told.assert_moved("token_ids");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dialect_refuses_those_that_have_no_continuation() {
    let twins = cut_once(Engine::Vllm, |setup| setup).await;
    let body = json!({"model": "m", "stream": true, "input": "q"}).to_string();
    let response = twins
        .replica
        .client
        .send("POST", "/v1/responses", &body)
        .await;
    let id = response.id();
    assert_eq!(response.all().await.1, End::Fin);
    let state = wait_end(&twins.replica.client, &id).await;
    assert_eq!(state["terminal"]["code"], "migration_refused");
    let message = state["terminal"]["message"].as_str().expect("a message");
    assert!(
        message.contains("dialect (answers of the dialect openai_responses"),
        "{message}"
    );
    let twins = cut_once(Engine::Vllm, |setup| setup).await;
    let told = Told::of(&twins, COMPLETIONS, &request(COMPLETIONS, &json!({}))).await;
    assert_eq!((told.answer.text.as_str(), told.answer.done), (TEXT, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_refuses_a_limit_that_cannot_be_counted() {
    // No chunk ends where it would have to go on, so that nobody knows how many tokens are there.
    let long = Script::text("the sea comes in and goes out ".repeat(30))
        .engine(Engine::LlamaCpp)
        .faults(Faults {
            tokens_per_chunk: 60,
            ..Faults::default()
        });
    let twins = TwinsSetup::new(long.clone()).start().await;
    twins.next([long.fin_after(3)]);
    let limit = json!({"max_tokens": 500, "temperature": 0});
    let told = Told::chat(&twins, &limit).await;
    told.assert_refused(&["tokens"]);

    let few = says(Engine::LlamaCpp).faults(Faults {
        tokens_per_chunk: 3,
        ..Faults::default()
    });
    let twins = TwinsSetup::new(few.clone()).start().await;
    twins.next([few.fin_after(3)]);
    Told::chat(&twins, &limit).await.assert_moved("prefill");
}
