//! A generation that another replica goes on with stays in its trace.

use streamweld_mock::Engine;
use streamweld_tests::{Collector, Span, patience, wait_end};

use super::scene::{Scene, assert_whole};

fn taken_over(span: &Span) -> bool {
    span.is_generation() && span.get("streamweld.taken_over").is_some()
}

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_replica_has_left_goes_on_in_its_trace() {
    let collector = Collector::start().await;
    let scene = Scene::new(Engine::Vllm)
        .await
        .option(format!("--otlp-endpoint={}", collector.url()));
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let client = first.client.with("traceparent", CALLER);
    let begun = first
        .begin_with(&client, &scene, 5, &super::scene::body())
        .await;
    first.die().await;
    patience(assert_whole(&second.client, &begun)).await;
    let heir = collector.one(taken_over).await;
    assert_eq!(heir.kind, "internal");
    assert_eq!(heir.trace, CALLER.split('-').nth(1).expect("a trace"));
    assert_eq!(heir.get("streamweld.outcome"), Some("done"));
    let attempt = collector.one(|span| span.is_attempt()).await;
    assert_eq!(attempt.parent, heir.id);
    // The span above it died with its replica; readers have links to that one.
    let resumes = collector.wait(2, Span::is_resume).await;
    for resume in resumes {
        assert_eq!(resume.links, std::slice::from_ref(&heir.parent));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_by_another_replica_is_in_its_trace() {
    let collector = Collector::start().await;
    let scene = Scene::new(Engine::Vllm)
        .await
        .option("--migration=g=off")
        .option(format!("--otlp-endpoint={}", collector.url()));
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let client = first.client.with("traceparent", CALLER);
    let begun = first
        .begin_with(&client, &scene, 5, &super::scene::body())
        .await;
    first.die().await;
    patience(wait_end(&second.client, &begun.id)).await;
    let ended = collector.one(taken_over).await;
    assert_eq!(ended.trace, CALLER.split('-').nth(1).expect("a trace"));
    assert_eq!(ended.get("error.type"), Some("owner_lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_is_one_trace() {
    let collector = Collector::start().await;
    let scene = Scene::new(Engine::Vllm)
        .await
        .option(format!("--otlp-endpoint={}", collector.url()));
    let first = scene.sidecar("a").await;
    let second = scene.sidecar("b").await;
    let begun = first.begin(&scene, 5).await;
    first.process.signal("TERM");
    patience(assert_whole(&second.client, &begun)).await;
    assert!(first.process.ended().await.0.success());
    let heir = collector.one(taken_over).await;
    let left = |span: &Span| span.is_generation() && span.get("streamweld.taken_over").is_none();
    let left = collector.one(left).await;
    assert_eq!(left.get("streamweld.outcome"), Some("left"));
    assert_eq!((&heir.trace, &heir.parent), (&left.trace, &left.id));
    assert_eq!(heir.get("streamweld.outcome"), Some("done"));
}
