//! The gate `seam`: where there is no place to join, and where what came was not what had to come.

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Engine, Faults, Refuse, Script};
use streamweld_tests::TwinsSetup;

use super::story::{SHOWN, Told, cut_once, says};

fn greedy() -> Value {
    json!({"temperature": 0})
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_refuses_where_ids_are_not_to_be_had_and_prefill_is_not_allowed() {
    for (policy, moved) in [(Policy::Exact, false), (Policy::Prefill, true)] {
        let twins = cut_once(Engine::LlamaCpp, |setup| {
            let setup = setup.policy(policy);
            setup.config(|config| config.migration.wait = Duration::from_millis(200))
        })
        .await;
        let told = Told::chat(&twins, &greedy()).await;
        if moved {
            told.assert_moved("prefill");
        } else {
            told.assert_refused(&["seam"]);
        }
    }
}

/// What is drawn at random does not come again. There the tokens of all of it have to be the same.
#[tokio::test(flavor = "multi_thread")]
async fn seam_refuses_prefill_where_tokens_are_drawn_and_cut_otherwise() {
    for other in [true, false] {
        let faults = Faults {
            other_tokens: other,
            ..Faults::default()
        };
        let setup = TwinsSetup::new(says(Engine::LlamaCpp).faults(faults));
        let setup = setup.config(|config| config.migration.wait = Duration::from_millis(200));
        let twins = setup.start().await;
        twins.next([says(Engine::LlamaCpp).fin_after(SHOWN)]);
        let told = Told::chat(&twins, &json!({"temperature": 0.7})).await;
        if other {
            let saw = told.assert_refused(&["seam"]);
            assert!(saw[0].contains("at random"), "{}", saw[0]);
        } else {
            told.assert_moved("prefill");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_refuses_where_no_word_ends() {
    let endless = Script::text("潮".repeat(80)).engine(Engine::LlamaCpp);
    let twins = TwinsSetup::new(endless.clone()).start().await;
    twins.next([endless.fin_after(70)]);
    let saw = Told::chat(&twins, &greedy())
        .await
        .assert_refused(&["seam"]);
    assert!(saw[0].contains("longer than 64 characters"), "{}", saw[0]);
}

/// Ids that are not all there, or not as many as were counted, are not relied on.
#[tokio::test(flavor = "multi_thread")]
async fn seam_refuses_ids_with_holes() {
    let holes = Faults {
        id_holes: 3,
        ..Faults::default()
    };
    let miscount = Faults {
        miscount: 1,
        ..Faults::default()
    };
    for faults in [holes, miscount] {
        let setup = TwinsSetup::new(says(Engine::Vllm)).policy(Policy::Exact);
        let twins = setup
            .config(|config| config.migration.wait = Duration::from_millis(200))
            .start()
            .await;
        twins.next([says(Engine::Vllm).faults(faults).fin_after(SHOWN)]);
        let told = Told::chat(&twins, &json!({})).await;
        told.assert_refused(&["seam"]);
    }
}

/// Whoever goes on wrongly is found out before a byte of it is shown.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_go_on_with_the_answer_is_not_shown() {
    let by_ids = [
        Faults {
            false_prompt_ids: true,
            ..Faults::default()
        },
        Faults {
            refuse: Some(Refuse::NewTurn),
            ..Faults::default()
        },
    ];
    let by_prefill = [
        Faults {
            echo: true,
            ..Faults::default()
        },
        Faults {
            refuse: Some(Refuse::NewTurn),
            ..Faults::default()
        },
        Faults {
            eos_after: Some(0),
            ..Faults::default()
        },
        Faults {
            other_tokens: true,
            ..Faults::default()
        },
    ];
    let by_ids = by_ids.map(|faults| (Engine::Vllm, faults));
    let by_prefill = by_prefill.map(|faults| (Engine::LlamaCpp, faults));
    for (engine, faults) in by_ids.into_iter().chain(by_prefill) {
        let wrong = says(engine).faults(faults.clone());
        let twins = cut_once(engine, |setup| setup).await;
        twins.next([wrong]);
        let told = Told::chat(&twins, &greedy()).await;
        if faults.other_tokens {
            // Told by its text it does go on. That it is another model is for `compatibility`.
            told.assert_moved("prefill");
            continue;
        }
        let saw = told.assert_refused(&["seam"]);
        assert!(
            saw[0].contains(" was asked to go on, and it "),
            "{faults:?}: {}",
            saw[0]
        );
        // What was shown is what the first one said.
        assert!(
            super::story::TEXT.starts_with(&told.answer.text),
            "{faults:?}"
        );
        assert_eq!(twins.attempts().len(), 2);
    }
}

/// The ids that it was given are right, and what it writes is not what comes next.
#[tokio::test(flavor = "multi_thread")]
async fn an_echo_behind_the_right_ids_is_not_shown() {
    let says = || says(Engine::Vllm);
    let twins = TwinsSetup::new(says()).start().await;
    let echo = Faults {
        echo: true,
        ..Faults::default()
    };
    twins.next([says().fin_after(14), says().faults(echo)]);
    let told = Told::chat(&twins, &json!({})).await;
    let saw = told.assert_refused(&["seam"]);
    assert!(
        saw[0].contains("wrote again what it was given"),
        "{}",
        saw[0]
    );
}
