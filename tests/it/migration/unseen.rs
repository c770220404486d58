//! What is asked of an engine besides is not seen by the app.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::Engine;
use streamweld_tests::{Client, TwinsSetup, events};

use super::answer::{CHAT, COMPLETIONS, request};
use super::story::says;

/// The data of each event, but for a member that vLLM writes into its last chunk only: that may be the one with counts
/// that the app has not asked for.
fn shown(body: &[u8]) -> Vec<String> {
    let fingerprint = r#","system_fingerprint":"vllm-0.32.0-mock""#;
    events(body)
        .iter()
        .map(|data| data.replace(fingerprint, ""))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_besides_is_not_seen() {
    let wishes: [Value; 5] = [
        json!({}),
        json!({"max_tokens": 5}),
        json!({"return_token_ids": true}),
        json!({"stream_options": {"include_usage": true}}),
        json!({"stream_options": {"include_usage": true, "continuous_usage_stats": true}}),
    ];
    for (engine, path) in [
        (Engine::Vllm, CHAT),
        (Engine::Vllm, COMPLETIONS),
        (Engine::Sglang, CHAT),
        (Engine::Sglang, COMPLETIONS),
        (Engine::LlamaCpp, CHAT),
        (Engine::LlamaCpp, COMPLETIONS),
    ] {
        let twins = TwinsSetup::new(says(engine).id("x"))
            .policy(Policy::Exact)
            .start()
            .await;
        let direct = Client::new(twins.mocks[0].addr());
        for wish in &wishes {
            // Nobody may ask it of the chat of SGLang.
            if (engine, path) == (Engine::Sglang, CHAT) && wish.get("return_token_ids").is_some() {
                continue;
            }
            let body = request(path, wish).to_string();
            let (own, _) = direct.send("POST", path, &body).await.all().await;
            let (through, _) = twins
                .replica
                .client
                .send("POST", path, &body)
                .await
                .all()
                .await;
            assert_eq!(shown(&through), shown(&own), "{engine} {path} {wish}");
        }
    }
}

/// Where no policy allows a move, or the engine is not known, nothing is added.
#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_could_go_on_nothing_is_asked_for_besides() {
    for policy in [Policy::Off, Policy::Exact] {
        let setup = TwinsSetup::new(says(Engine::Vllm)).policy(policy);
        let twins = setup
            .specs(move |_, spec| {
                if policy == Policy::Exact {
                    spec.engine = streamweld_upstream::fleet::Engine::Unknown;
                }
            })
            .start()
            .await;
        // To the byte, white space included.
        let body = r#"{ "model":"m","stream": true,"messages":[{"role":"user","content":"q"}] }"#;
        drop(
            twins
                .replica
                .client
                .send("POST", CHAT, body)
                .await
                .all()
                .await,
        );
        assert_eq!(twins.attempts()[0].body, body);
    }
}
