//! Cuts behind every event, and what the reader makes of them.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::Script;
use streamweld_server::Config;
use streamweld_tests::{End, Several, events};
use streamweld_upstream::fleet::Engine;

const TEXT: &str = "The tide comes in twice a day.\n\nha ha ha\n\n    return 0000\n}\n}\n";

fn by_prefill(config: &mut Config) {
    let groups = &mut config.migration.groups;
    groups.insert("twins".to_owned(), Policy::Prefill);
}

fn asked() -> Value {
    json!({"model": "m", "stream": true, "temperature": 0, "messages": [{"role": "user", "content": "q"}]})
}

fn text(events: &[String]) -> String {
    let chunks = events
        .iter()
        .filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_behind_every_event_the_answer_is_whole_by_prefill() {
    let whole = || Script::text(TEXT).id("x");
    for k in 1..=20 {
        let several = Several::start(
            Engine::LlamaCpp,
            vec![whole().rst_after(k), whole()],
            by_prefill,
        )
        .await;
        let client = &several.replica.client;
        // Whichever is asked first, only one of them dies.
        let mut response = client
            .send("POST", "/v1/chat/completions", &asked().to_string())
            .await;
        let (body, end) = response.body.rest().await;
        let shown = events(&body);
        println!("{k} {end:?} {}", shown.len());
        if end == End::Proper {
            assert_eq!(text(&shown), TEXT, "{k}");
        } else {
            println!("{k}: {:?}", shown.last());
        }
    }
}
