//! One backend alone in its group: what goes on is the same one, when it is back.

use serde_json::json;
use streamweld_mock::{Cut, Engine, Mock, MockConfig, Script};
use streamweld_tests::{End, Replica, texts};
use streamweld_upstream::fleet;

const TEXT: &str = "Salt comes from rivers, which carry it from the rocks into the sea.";

fn config(script: Script) -> MockConfig {
    MockConfig {
        default: script,
        ..MockConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_killed_goes_on_when_it_is_back() {
    let script = || Script::text(TEXT).engine(Engine::Vllm);
    let held = config(script().gate_after(5, "never"));
    let mock = Mock::bind("127.0.0.1:0", held).await.expect("a port");
    let (url, addr) = (mock.url(), mock.addr());
    let spec = fleet::Spec {
        group: Some("alone".to_owned()),
        ..fleet::Spec::new("a", url.parse().expect("a URL"), fleet::Engine::Vllm)
    };
    let replica = Replica::in_front_of(vec![spec], |config| {
        config.migration.vouched.insert("alone".to_owned());
    })
    .await;
    let body =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "q"}]});
    let mut response = replica
        .client
        .send("POST", "/v1/chat/completions", &body.to_string())
        .await;
    let id = response.id();
    let mut shown = response.body.blocks(5).await;
    mock.kill(Cut::Rst).await;
    let back = Mock::bind(addr, config(script())).await;
    let _back = back.expect("the port is free again");
    let (rest, end) = response.body.rest().await;
    shown.extend_from_slice(&rest);
    assert_eq!((texts(&shown), end), (TEXT.to_owned(), End::Proper));
    let state = replica.client.get(&format!("/v1/streams/{id}")).await;
    let state = state.json().await;
    assert_eq!(
        (&state["migrations"], &state["backends"]),
        (&json!(1), &json!(["a"]))
    );
}
