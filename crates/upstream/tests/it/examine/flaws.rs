//! Each way in which a backend goes on wrongly is found, and nothing else is taken for it.

use super::*;

/// These checks of a vLLM with this flaw show this, and no method is taken from what else it can do.
#[track_caller]
fn shows(examination: &Examination, shown: &[(&str, Finding, &str)]) {
    for &(name, finding, said) in shown {
        check(examination, name, finding, said);
    }
}

const OK: Finding = Finding::Ok;
const PROBLEM: Finding = Finding::Problem;
const UNKNOWN: Finding = Finding::Unknown;

#[tokio::test]
async fn ids_with_holes_are_not_gone_on_with() {
    let it = examined(Kind::Vllm, Flaw::Holes).await;
    let said = "the ids are not as many as the backend counted";
    shows(
        &it,
        &[
            ("chat.token_ids", PROBLEM, said),
            ("completions.token_ids", PROBLEM, said),
            ("chat.prefill", OK, ""),
            ("chat.round_trip", UNKNOWN, said),
        ],
    );
    assert_eq!(it.methods(CHAT), [Method::Prefill]);
}

#[tokio::test]
async fn ids_that_are_ignored_or_not_told_back_are_found() {
    let it = examined(Kind::Vllm, Flaw::IgnoresIds).await;
    check(&it, "chat.token_ids", PROBLEM, "went on with other");
    check(&it, "completions.token_ids", PROBLEM, "went on with other");
    assert_eq!(it.methods(CHAT), [Method::Prefill]);
    let it = examined(Kind::Vllm, Flaw::HidesPrompt).await;
    check(
        &it,
        "chat.token_ids",
        PROBLEM,
        "did not tell the ids of the prompt",
    );
}

#[tokio::test]
async fn a_prompt_that_leaks_is_found() {
    let it = examined(Kind::Vllm, Flaw::LeaksPrompt).await;
    check(&it, "chat.token_ids", PROBLEM, "went on with");
    check(&it, "completions.token_ids", PROBLEM, "went on with");
    check(&it, "completions.prefill", OK, "");
}

#[tokio::test]
async fn prefill_that_is_repeated_refused_or_taken_for_a_turn_is_found() {
    let it = examined(Kind::LlamaCpp, Flaw::Echoes).await;
    check(&it, "chat.prefill", PROBLEM, "repeats what it was given");
    check(
        &it,
        "completions.prefill",
        PROBLEM,
        "repeats what it was given",
    );
    let it = examined(Kind::LlamaCpp, Flaw::BeginsAnew).await;
    check(&it, "chat.prefill", PROBLEM, "or begins anew");
    check(&it, "template.word", PROBLEM, "renders");
    check(&it, "completions.prefill", OK, "");
    assert_eq!(
        (it.methods(CHAT), it.methods(COMPLETIONS)),
        (vec![], vec![Method::Prefill])
    );
    let it = examined(Kind::LlamaCpp, Flaw::NoPrefill).await;
    let said = "answered with 400: \"the last message is not the user's\"";
    check(&it, "chat.prefill", PROBLEM, said);
    assert!(it.settled());
}

#[tokio::test]
async fn an_answer_that_goes_on_otherwise_is_found() {
    let it = examined(Kind::Vllm, Flaw::Drifts).await;
    for name in [
        "chat.token_ids",
        "chat.prefill",
        "completions.token_ids",
        "completions.prefill",
    ] {
        check(&it, name, PROBLEM, "instead of");
    }
    assert_eq!(it.methods(CHAT), []);
}

#[tokio::test]
async fn a_template_that_changes_an_answer_is_found() {
    for kind in [Kind::Vllm, Kind::LlamaCpp] {
        let it = examined(kind, Flaw::Trims).await;
        check(&it, "template.word", OK, "as it is");
        check(
            &it,
            "template.space",
            PROBLEM,
            "renders \"The tide 潮 is \" as",
        );
        assert_eq!(
            (it.keeps_prefix(CHAT), it.keeps_space),
            (Probed::Yes, Probed::No)
        );

        let it = examined(kind, Flaw::OpensReasoning).await;
        check(
            &it,
            "template.word",
            PROBLEM,
            "\"<think>\\n\" ahead of a new one",
        );
        // Behind another prompt it may still seem to go on, and is not trusted.
        assert!(!it.methods(CHAT).contains(&Method::Prefill));
        assert!(it.methods(COMPLETIONS).contains(&Method::Prefill));
    }
}

#[tokio::test]
async fn an_answer_with_reasoning_shows_nothing() {
    let it = examined(Kind::Vllm, Flaw::Reasons).await;
    check(&it, "chat.token_ids", UNKNOWN, "reasoning");
    check(&it, "chat.prefill", UNKNOWN, "reasoning");
    assert_eq!(it.methods(CHAT), []);
    assert!(it.settled());
}

#[tokio::test]
async fn a_backend_that_cannot_answer_now_is_asked_again() {
    for (flaw, said) in [
        (Flaw::Busy, "answered with 503"),
        (Flaw::BreaksOff, "broke its answer off"),
    ] {
        let it = examined(Kind::Vllm, flaw).await;
        check(&it, "chat.token_ids", UNKNOWN, said);
        check(&it, "completions.prefill", UNKNOWN, said);
        assert!(!it.settled(), "{flaw:?}");
    }
}

/// As llama.cpp does behind a stream.
#[tokio::test]
async fn a_connection_that_closes_in_between_is_no_answer() {
    let it = examined(Kind::LlamaCpp, Flaw::ClosesLate).await;
    check(&it, "completions.prefill", OK, "went on exactly");
    check(&it, "template.space", OK, "as it is");
    assert!(it.settled());
}

#[tokio::test]
async fn without_a_tokenizer_what_came_with_an_answer_tells() {
    let it = examined(Kind::Vllm, Flaw::NoTokenizer).await;
    check(&it, "tokenisation", OK, "tokens");
    check(&it, "rendering", OK, "tokens");
    check(&it, "template.word", UNKNOWN, "it has no /tokenize");
    check(&it, "chat.round_trip", UNKNOWN, "answered with 404");
    assert_eq!(it.methods(CHAT), [Method::TokenIds]);
    let it = examined(Kind::LlamaCpp, Flaw::NoTokenizer).await;
    check(&it, "tokenisation", UNKNOWN, "answered with 404");
    assert_eq!(it.reads_controls, Probed::Unknown);
}
