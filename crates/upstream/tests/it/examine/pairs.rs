//! Whether two backends may take over from each other.

use super::*;

async fn pair(one: (Kind, Flaw), other: (Kind, Flaw)) -> Pair {
    let (one, other) = tokio::join!(examined(one.0, one.1), examined(other.0, other.1));
    compare(&one, &other)
}

#[track_caller]
fn same(pair: &Pair, chat: Probed, completions: Probed) {
    let found = (pair.same_model(CHAT), pair.same_model(COMPLETIONS));
    assert_eq!(found, (chat, completions), "{:#?}", pair.checks);
}

#[tokio::test]
async fn two_that_are_alike_go_on_by_what_both_can() {
    let vllm = (Kind::Vllm, Flaw::Nothing);
    let twins = pair(vllm, vllm).await;
    same(&twins, Probed::Yes, Probed::Yes);
    let both = [Method::TokenIds, Method::Prefill];
    assert_eq!(
        (twins.methods(CHAT), twins.methods(COMPLETIONS)),
        (&both[..], &both[..])
    );
    assert_eq!(twins.same_model(Dialect::Gemini), Probed::Unknown);
    assert_eq!(twins.methods(Dialect::Gemini), []);

    // Another engine with the same model.
    let mixed = pair(vllm, (Kind::LlamaCpp, Flaw::Nothing)).await;
    same(&mixed, Probed::Yes, Probed::Yes);
    assert_eq!(mixed.methods(CHAT), [Method::Prefill]);
}

#[tokio::test]
async fn two_that_render_otherwise_do_not_share_chats() {
    let mixed = pair(
        (Kind::Vllm, Flaw::Nothing),
        (Kind::Vllm, Flaw::OtherTemplate),
    )
    .await;
    same(&mixed, Probed::No, Probed::Yes);
    assert_eq!(mixed.methods(CHAT), []);
    assert_eq!(
        mixed.methods(COMPLETIONS),
        [Method::TokenIds, Method::Prefill]
    );
}

#[tokio::test]
async fn other_weights_are_another_model() {
    let mixed = pair(
        (Kind::Vllm, Flaw::Nothing),
        (Kind::Vllm, Flaw::OtherWeights),
    )
    .await;
    same(&mixed, Probed::No, Probed::No);
    assert_eq!(mixed.methods(COMPLETIONS), []);
}

#[tokio::test]
async fn what_one_of_them_does_not_tell_is_unknown() {
    let sglang = (Kind::Sglang, Flaw::Nothing);
    let mixed = pair(sglang, sglang).await;
    same(&mixed, Probed::Unknown, Probed::Yes);
    let mixed = pair((Kind::Vllm, Flaw::Nothing), (Kind::Vllm, Flaw::NoTokenizer)).await;
    same(&mixed, Probed::Unknown, Probed::Unknown);
    // Both learn it in the same way.
    let silent = (Kind::Vllm, Flaw::NoTokenizer);
    same(&pair(silent, silent).await, Probed::Yes, Probed::Yes);
}
