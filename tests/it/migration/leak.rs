//! A prompt that ends within a character makes vLLM write the whole prompt, the system message included. Nobody sees it.

use serde_json::{Value, json};
use streamweld_generation::migration::Policy;
use streamweld_mock::{Engine, Mock, Script};
use streamweld_tests::{Client, End, TwinsSetup};

use super::answer::{CHAT, COMPLETIONS, SECRET, ask, request};

const TEXT: &str = "Salt 潮汐 é 🌊.";

fn salty() -> Script {
    Script::text(TEXT).engine(Engine::Vllm)
}

/// The text of ids, as the engine itself has it.
async fn text_of(mock: &Mock, ids: &Value) -> String {
    let client = Client::new(mock.addr());
    let body = json!({"model": "m", "tokens": ids}).to_string();
    let answer = client.send("POST", "/detokenize", &body).await.json().await;
    answer["prompt"].as_str().expect("a text").to_owned()
}

fn ids_of(path: &str, request: &Value) -> Value {
    match path {
        CHAT => request["kv_transfer_params"]["prompt_token_ids"].clone(),
        _ => request["prompt"].clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_sent_end_with_a_whole_character() {
    for path in [CHAT, COMPLETIONS] {
        let setup = TwinsSetup::new(salty()).policy(Policy::Exact);
        let twins = setup.start().await;
        let client = &twins.replica.client;
        let (whole, _) = ask(client, path, &request(path, &json!({}))).await;
        for events in 2..16 {
            twins.next([salty().fin_after(events)]);
            let before = twins.attempts().len();
            let (answer, end) = ask(client, path, &request(path, &json!({}))).await;
            assert_eq!(
                (end, &answer.text),
                (End::Proper, &whole.text),
                "{path} {events}"
            );
            let sent = ids_of(path, &twins.attempts()[before + 1].json());
            let text = text_of(&twins.mocks[0], &sent).await;
            assert!(text.contains(SECRET), "{text}");
            assert!(
                !text.contains(char::REPLACEMENT_CHARACTER),
                "{path} {events}: {text:?}"
            );
        }
    }
}

/// The fault is there: with the ids of half a character the same mock writes what it was told in confidence.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_given_half_a_character_leaks() {
    let mock = Mock::start(salty()).await.expect("a port");
    let client = Client::new(mock.addr());
    let whole = request(COMPLETIONS, &json!({"return_token_ids": true}));
    let (body, _) = client
        .send("POST", COMPLETIONS, &whole.to_string())
        .await
        .all()
        .await;
    let told = super::answer::Answer::of(&body);
    let prompt = told.chunks[0]["choices"][0]["prompt_token_ids"]
        .as_array()
        .expect("ids")
        .clone();
    // The word, the blank, and one of the three parts of the first character.
    let within = [&prompt[..], &told.ids[..3]].concat();
    let leaky = request(COMPLETIONS, &json!({"prompt": within})).to_string();
    let (body, _) = client.send("POST", COMPLETIONS, &leaky).await.all().await;
    assert!(String::from_utf8_lossy(&body).contains("Rumpelstilzchen"));
}
