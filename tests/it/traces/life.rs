//! One generation, from its caller to its backend.

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Collector, End, Harness, Setup, patience};

use super::{CALLER, SPAN, TRACE, to};

async fn harness(collector: &Collector, script: Script) -> Harness {
    Setup::new(script).config(to(collector)).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_is_below_its_caller_and_its_attempt_below_it() {
    let collector = Collector::start().await;
    let harness = harness(&collector, Script::tokens(5)).await;
    let client = harness.client.with("traceparent", CALLER);
    let client = client.with("tracestate", "vendor=1");
    let response = client.chat().await;
    let id = response.id();
    let request_id = response.header("x-streamweld-request-id");
    let request_id = request_id.expect("an id").to_owned();
    assert_eq!(response.all().await.1, End::Proper);

    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!((&*generation.name, generation.kind), ("chat m", "server"));
    assert_eq!((&*generation.trace, &*generation.parent), (TRACE, SPAN));
    for (name, expected) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.request.stream", "true"),
        ("gen_ai.response.finish_reasons", "stop"),
        ("streamweld.stream_id", &id),
        ("streamweld.request_id", &request_id),
        ("streamweld.dialect", "openai_chat"),
        ("streamweld.durability", "durable"),
        ("streamweld.outcome", "done"),
        ("streamweld.attempts", "1"),
        ("streamweld.migrations", "0"),
        ("streamweld.epoch", "1"),
        ("streamweld.backend", "llm"),
    ] {
        assert_eq!(generation.get(name), Some(expected), "{name}");
    }
    let first = generation.get("gen_ai.response.time_to_first_chunk");
    assert!(first.is_some_and(|first| first.parse::<f64>().is_ok()));
    assert!(!generation.failed);
    assert_eq!(generation.resource["service.name"], "streamweld");

    let attempt = collector.one(|span| span.is_attempt()).await;
    assert_eq!((&*attempt.name, attempt.kind), ("attempt llm", "client"));
    assert_eq!(attempt.trace, TRACE);
    assert_eq!(attempt.parent, generation.id);
    let port = harness.mock.addr().port().to_string();
    for (name, expected) in [
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
        ("http.response.status_code", "200"),
        ("streamweld.backend", "llm"),
        ("streamweld.attempt", "1"),
        ("streamweld.outcome", "whole"),
    ] {
        assert_eq!(attempt.get(name), Some(expected), "{name}");
    }
    // The backend is told of the attempt, and of nothing else.
    let request = harness.mock.recorder().request(0).expect("it came");
    assert_eq!(request.header("traceparent"), Some(&*attempt.traceparent()));
    assert_eq!(request.header("tracestate"), Some("vendor=1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_caller_it_begins_a_trace() {
    let collector = Collector::start().await;
    let harness = harness(&collector, Script::tokens(2)).await;
    assert_eq!(harness.client.chat().await.all().await.1, End::Proper);
    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!(generation.parent, "");
    let attempt = collector.one(|span| span.is_attempt()).await;
    assert_eq!(attempt.trace, generation.trace);
    assert!(attempt.times.0 >= generation.times.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_does_not_sample_is_not_sent_and_its_backend_is_told_so() {
    let collector = Collector::start().await;
    let harness = harness(&collector, Script::tokens(2)).await;
    let unsampled = CALLER.replace("-01", "-00");
    let client = harness.client.with("traceparent", &unsampled);
    assert_eq!(client.chat().await.all().await.1, End::Proper);
    let told = harness.mock.recorder().request(0).expect("it came");
    let told = told.header("traceparent").expect("it is told").to_owned();
    assert!(told.starts_with(&format!("00-{TRACE}-")), "{told}");
    assert!(told.ends_with("-00") && told != unsampled, "{told}");
    // What comes later is sent, and that is all there is.
    assert_eq!(harness.client.chat().await.all().await.1, End::Proper);
    let generation = collector.one(|span| span.is_generation()).await;
    assert_ne!(generation.trace, TRACE);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_one_and_a_stop_is_none() {
    let collector = Collector::start().await;
    let cut = Script::tokens(9).rst_after(3);
    let harness = harness(&collector, cut).await;
    harness.client.chat().await.all().await;
    let failed = collector.one(|span| span.is_generation()).await;
    assert!(failed.failed);
    assert_eq!(failed.get("error.type"), Some("truncated"));
    assert_eq!(failed.get("streamweld.outcome"), Some("error"));
    let attempt = collector.one(|span| span.is_attempt()).await;
    assert!(attempt.failed);
    assert_eq!(attempt.get("streamweld.outcome"), Some("cut"));

    harness
        .mock
        .set_script(Script::tokens(9).gate_after(3, "never"));
    let mut response = harness.client.chat().await;
    response.body.blocks(3).await;
    let path = format!("/v1/streams/{}/stop", response.id());
    assert_eq!(harness.client.send("POST", &path, "").await.status, 200);
    let stopped = |span: &streamweld_tests::Span| span.get("streamweld.outcome") == Some("stopped");
    let stopped = collector.one(stopped).await;
    assert!(!stopped.failed);
    let left = |span: &streamweld_tests::Span| {
        span.is_attempt()
            && span.parent == stopped.id
            && span.get("streamweld.outcome") == Some("left")
    };
    collector.one(left).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_stream_ends_with_its_head() {
    let collector = Collector::start().await;
    let harness = harness(&collector, Script::error(503)).await;
    assert_eq!(harness.client.chat().await.status, 503);
    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!(generation.get("streamweld.outcome"), Some("passed_through"));
    assert_eq!(generation.get("error.type"), Some("503"));
    let attempt = collector.one(|span| span.is_attempt()).await;
    assert_eq!(attempt.get("http.response.status_code"), Some("503"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_nothing() {
    let collector = Collector::start().await;
    let harness = harness(&collector, Script::tokens(9).gate_after(3, "go")).await;
    let mut response = harness.client.chat().await;
    response.body.blocks(3).await;
    let id = response.id();
    response.leave().await;
    assert!(collector.spans().is_empty());
    harness.mock.gates().release("go");
    patience(streamweld_tests::wait_end(&harness.client, &id)).await;
    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!(generation.get("streamweld.outcome"), Some("done"));
}

/// Where nothing is traced, what a caller says of traces is the backend's business alone.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_what_the_caller_says_passes_untouched() {
    let harness = Harness::start(Script::tokens(2)).await;
    let fields = [("traceparent", "odd"), ("tracestate", "a=1, ,b=2")];
    let client = fields
        .iter()
        .fold(harness.client.clone(), |client, (name, value)| {
            client.with(name, value)
        });
    client.chat().await.all().await;
    client
        .send("POST", "/v1/embeddings", CHAT)
        .await
        .all()
        .await;
    for number in 0..2 {
        let request = harness.mock.recorder().request(number).expect("it came");
        for (name, value) in fields {
            assert_eq!(request.header(name), Some(value));
        }
    }
}
