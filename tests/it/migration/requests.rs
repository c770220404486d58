//! The gates about what a request asks for, each with one that it lets pass and one that it refuses.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::Engine;

use super::story::{Told, cut_once};

/// Asks for a chat that is cut, with these members.
async fn cut_with(more: Value) -> Told {
    let twins = cut_once(Engine::Vllm, |setup| setup.policy(Policy::Exact)).await;
    let told = Told::chat(&twins, &more).await;
    let attempts = twins.attempts();
    // Nobody else was given anything of what is refused.
    let refused = told.answer.error.is_some();
    assert_eq!(attempts.len(), if refused { 1 } else { 2 });
    told
}

/// What the gate refuses, with a word of its message, and what it lets pass.
async fn check(gate: &str, refuses: &[(Value, &str)], allows: &[Value]) {
    for (more, word) in refuses {
        let told = cut_with(more.clone()).await;
        // Ids are asked for only where nothing in the request stands in the way.
        let saw = told.assert_refused(&[gate, "seam"]);
        assert!(saw[0].contains(word), "{}", saw[0]);
    }
    for more in allows {
        cut_with(more.clone()).await.assert_moved("token_ids");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_shape_refuses_what_nobody_knows_and_what_cannot_be_carried_on() {
    let refuses = [
        (json!({"my_sampler": 1}), "my_sampler"),
        (json!({"presence_penalty": 0.5}), "penalties"),
        (json!({"seed": 1, "temperature": 1}), "seed"),
        (json!({"logprobs": true}), "logprobs"),
    ];
    let allows = [
        json!({"my_sampler": null}),
        json!({"presence_penalty": 0, "top_p": 0.9, "user": "u", "logit_bias": {"1": 2}}),
        json!({"seed": 1, "temperature": 0}),
    ];
    check("request_shape", &refuses, &allows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_call_refuses_tools_that_may_be_called() {
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let refuses = [(json!({"tools": tools}), "tools")];
    let allows = [
        json!({"tools": tools, "tool_choice": "none"}),
        json!({"tools": []}),
    ];
    check("tool_call", &refuses, &allows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_output_refuses_a_format() {
    let refuses = [(
        json!({"response_format": {"type": "json_object"}}),
        "format",
    )];
    check(
        "structured_output",
        &refuses,
        &[json!({"response_format": {"type": "text"}})],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_refuses_what_says_how_to_reason() {
    let refuses = [(json!({"reasoning_effort": "high"}), "reason")];
    check(
        "reasoning",
        &refuses,
        &[json!({"reasoning_effort": "none"})],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_sequence_refuses_text_that_ends_the_answer() {
    let refuses = [(json!({"stop": ["###"]}), "ends the answer")];
    check(
        "stop_sequence",
        &refuses,
        &[json!({"stop": []}), json!({"stop": null})],
    )
    .await;
}
