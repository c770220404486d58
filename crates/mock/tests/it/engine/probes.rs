//! What probes ask an engine.

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Engine, Faults, Mock, Script};

use super::{TEXT, answer, chat, script};
use crate::client::Client;

async fn get(mock: &Mock, target: &str) -> (u16, Value) {
    let mut client = Client::connect(mock.addr()).await;
    client.get(target).await;
    // Some have no body at all.
    let head = client.head().await;
    if head.contains("content-length: 0\r\n") {
        return (head[9..12].parse().unwrap(), Value::Null);
    }
    client.input.splice(0..0, head.into_bytes());
    client.json().await
}

async fn post(mock: &Mock, target: &str, body: &Value) -> (u16, Value) {
    let mut client = Client::connect(mock.addr()).await;
    client.post(target, &body.to_string()).await;
    client.json().await
}

async fn start(engine: Engine) -> Mock {
    Mock::start(script(engine).model("m")).await.unwrap()
}

#[tokio::test]
async fn every_engine_says_who_it_is() {
    let vllm = start(Engine::Vllm).await;
    let model = &get(&vllm, "/v1/models").await.1["data"][0];
    assert_eq!(
        model,
        &json!({
            "id": "m", "object": "model", "created": 1_700_000_000, "owned_by": "vllm", "root": "/models/m",
            "parent": null, "max_model_len": 131_072,
        })
    );
    assert_eq!(get(&vllm, "/version").await.1, json!({"version": "0.32.0"}));
    let sglang = start(Engine::Sglang).await;
    let model = &get(&sglang, "/v1/models").await.1["data"][0];
    assert_eq!(model["owned_by"], "sglang");
    for path in ["/get_model_info", "/model_info"] {
        assert_eq!(get(&sglang, path).await.1["model_path"], "/models/m");
    }
    let server = get(&sglang, "/get_server_info").await.1;
    assert_eq!(server["version"], "0.5.23");
    let llama_cpp = start(Engine::LlamaCpp).await;
    let model = &get(&llama_cpp, "/v1/models").await.1["data"][0];
    assert_eq!(model["owned_by"], "llamacpp");
    assert_eq!(model["max_model_len"], Value::Null);
    let props = get(&llama_cpp, "/props").await.1;
    assert_eq!(props["model_path"], "/models/m");
    // None answers for another.
    for (mock, path) in [
        (&vllm, "/props"),
        (&vllm, "/get_model_info"),
        (&sglang, "/version"),
        (&llama_cpp, "/version"),
        (&llama_cpp, "/ready"),
    ] {
        assert_eq!(get(mock, path).await.0, 404, "{path}");
    }
    let nobody = Mock::start(Script::new()).await.unwrap();
    assert_eq!(get(&nobody, "/version").await.0, 404);
    assert_eq!(
        post(&nobody, "/tokenize", &json!({"prompt": "a"})).await.0,
        404
    );
}

#[tokio::test]
async fn a_text_survives_the_tokeniser() {
    for (engine, into, out) in [
        (Engine::Vllm, "prompt", "prompt"),
        (Engine::Sglang, "prompt", "text"),
        (Engine::LlamaCpp, "content", "content"),
    ] {
        let mock = start(engine).await;
        let ids = post(&mock, "/tokenize", &json!({into: TEXT})).await.1;
        let back = post(&mock, "/detokenize", &json!({"tokens": ids["tokens"]}))
            .await
            .1;
        assert_eq!(back[out], TEXT, "{engine}");
        let count = ids["count"].as_u64();
        let expected = ids["tokens"].as_array().unwrap().len() as u64;
        assert_eq!(count, (engine != Engine::LlamaCpp).then_some(expected));
        let empty = post(&mock, "/detokenize", &json!({"tokens": []})).await;
        assert_eq!(empty, (200, json!({out: ""})));
        assert_eq!(
            post(&mock, "/detokenize", &json!({"tokens": "a"})).await.0,
            400
        );
    }
}

#[tokio::test]
async fn what_is_rendered_is_what_is_read() {
    let messages = json!([{"role": "user", "content": "Why is it salty?"}]);
    let prompt = answer(
        &script(Engine::Vllm),
        Dialect::OpenAiChat,
        &chat(&json!({})),
    )
    .prompt;
    let vllm = start(Engine::Vllm).await;
    let asked = json!({"messages": messages, "add_generation_prompt": true});
    let ids = post(&vllm, "/tokenize", &asked).await.1;
    assert_eq!(ids["tokens"], json!(prompt));
    let llama_cpp = start(Engine::LlamaCpp).await;
    let rendered = post(
        &llama_cpp,
        "/apply-template",
        &json!({"messages": messages}),
    )
    .await
    .1;
    let ids = post(
        &llama_cpp,
        "/tokenize",
        &json!({"content": rendered["prompt"]}),
    )
    .await
    .1;
    assert_eq!(ids["tokens"], json!(prompt));

    let open = json!([messages[0], {"role": "assistant", "content": "The"}]);
    let flagged = json!({
        "messages": open, "add_generation_prompt": false, "continue_final_message": true,
    });
    let continued = post(&vllm, "/tokenize", &flagged).await.1;
    let longer = continued["count"].as_u64().unwrap();
    assert_eq!(longer, prompt.unwrap().len() as u64 + 1);
    let half = json!({"messages": open, "continue_final_message": true});
    assert_eq!(post(&vllm, "/tokenize", &half).await.0, 400);
    assert_eq!(post(&vllm, "/tokenize", &json!({})).await.0, 400);
    let rendered = post(&llama_cpp, "/apply-template", &json!({"messages": open}))
        .await
        .1;
    assert!(
        rendered["prompt"]
            .as_str()
            .unwrap()
            .ends_with("<|im_start|>assistant\nThe")
    );
}

#[tokio::test]
async fn llama_cpp_tells_the_pieces() {
    let mock = start(Engine::LlamaCpp).await;
    let body = json!({"content": "a é", "with_pieces": true});
    let pieces = post(&mock, "/tokenize", &body).await.1;
    let told: Vec<&Value> = pieces["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["piece"])
        .collect();
    assert_eq!(
        told,
        [&json!("a"), &json!(" "), &json!([0xc3]), &json!([0xa9])]
    );
}

#[tokio::test]
async fn another_engine_tokenises_and_renders_otherwise() {
    let faults = |faults| script(Engine::Vllm).faults(faults);
    let text = json!({"prompt": "unlike"});
    let messages = json!({"messages": [{"role": "user", "content": "a"}]});
    let usual = start(Engine::Vllm).await;
    let tokens = Mock::start(faults(Faults {
        other_tokens: true,
        ..Faults::default()
    }));
    let tokens = tokens.await.unwrap();
    let template = Mock::start(faults(Faults {
        other_template: true,
        ..Faults::default()
    }));
    let template = template.await.unwrap();
    let ask = async |mock, body| post(mock, "/tokenize", body).await.1["tokens"].clone();
    assert_ne!(ask(&tokens, &text).await, ask(&usual, &text).await);
    assert_eq!(ask(&template, &text).await, ask(&usual, &text).await);
    assert_ne!(
        ask(&template, &messages).await,
        ask(&usual, &messages).await
    );
}

#[tokio::test]
async fn health_can_be_set_from_here_and_from_elsewhere() {
    for (engine, paths) in [
        (Engine::Vllm, &["/health", "/ping"][..]),
        (Engine::Sglang, &["/health", "/ready", "/health_generate"]),
        (Engine::LlamaCpp, &["/health"]),
    ] {
        let mock = start(engine).await;
        for path in paths {
            assert_eq!(get(&mock, path).await.0, 200);
        }
        let set = post(&mock, "/mock/health", &json!({"status": 503})).await;
        assert_eq!(set, (200, json!({"status": 503})));
        for path in paths {
            assert_eq!(get(&mock, path).await.0, 503, "{engine} {path}");
        }
        mock.set_health(500);
        assert_eq!(get(&mock, "/health").await.0, 500);
        mock.set_healthy(true);
        assert_eq!(get(&mock, "/health").await.0, 200);
        assert_eq!(
            post(&mock, "/mock/health", &json!({"status": "ill"}))
                .await
                .0,
            400
        );
    }
    let nobody = Mock::start(Script::new()).await.unwrap();
    post(&nobody, "/mock/health", &json!({"status": 503})).await;
    assert_eq!(get(&nobody, "/health").await.0, 503);
}

#[tokio::test]
async fn a_health_check_can_be_held_at_a_gate() {
    let mock = start(Engine::Vllm).await;
    let mut held = Script::answer(200, json!({}));
    held.head_gate = Some("health".to_owned());
    mock.set_script_at("/health", held);
    let mut client = Client::connect(mock.addr()).await;
    client.get("/health").await;
    mock.gates().wait_arrived("health", 1).await.unwrap();
    mock.gates().release("health");
    assert_eq!(client.json().await.0, 200);
}
