//! What must be in no span, wherever it was said.

use streamweld_mock::Script;
use streamweld_tests::{Collector, Setup};

use super::to;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_said_is_in_a_span() {
    let collector = Collector::start().await;
    let script = Script::text("planted-output of a model");
    let harness = Setup::new(script).config(to(&collector)).start().await;
    let client = harness
        .client
        .with("authorization", "Bearer planted-key")
        .with("x-api-key", "planted-other-key")
        .with("x-odd", "planted-field")
        .with("idempotency-key", "planted-idempotency");
    let body = r#"{"model":"m","stream":true,"user":"planted-user","messages":[{"role":"user","content":"planted-prompt"}]}"#;
    let path = "/v1/chat/completions?key=planted-query";
    let response = client.send("POST", path, body).await;
    let id = response.id();
    response.all().await;
    // A reader, a repeat, a refusal, a failure that the backend explains.
    let resume = format!("/v1/streams/{id}/events?token=planted-token");
    client.get(&resume).await.all().await;
    client.send("POST", path, body).await.all().await;
    let foreign = client.with("last-event-id", &format!("{id}:99"));
    foreign.events(&id).await.all().await;
    let failing = Script::text("planted-output").error_after(1);
    harness.mock.set_script(failing);
    let other = harness.client.with("authorization", "Bearer planted-third");
    other.send("POST", path, body).await.all().await;

    collector.wait(2, |span| span.is_generation()).await;
    collector.wait(3, |span| span.is_resume()).await;
    collector.wait(2, |span| span.is_attempt()).await;
    let bytes = collector.bytes();
    let sent = String::from_utf8_lossy(&bytes);
    assert!(sent.contains(&id));
    assert!(!sent.contains("planted"), "{sent}");
}
