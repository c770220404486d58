//! An answer that moves to another backend, or asks several.

use streamweld_mock::{Engine, Script};
use streamweld_tests::{Collector, End, TwinsSetup, texts};

use super::to;

const TEXT: &str = "Tides follow the moon, and a little the sun, twice in most days of the year.";

#[tokio::test(flavor = "multi_thread")]
async fn each_backend_that_is_asked_has_a_span_and_the_move_is_told() {
    let collector = Collector::start().await;
    let script = || Script::text(TEXT).engine(Engine::Vllm);
    let twins = TwinsSetup::new(script())
        .config(to(&collector))
        .start()
        .await;
    twins.next([Script::error(503), script().rst_after(5)]);
    let (shown, end) = twins.replica.client.chat().await.all().await;
    assert_eq!((texts(&shown), end), (TEXT.to_owned(), End::Proper));
    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!(generation.get("streamweld.outcome"), Some("done"));
    assert_eq!(generation.get("streamweld.attempts"), Some("3"));
    assert_eq!(generation.get("streamweld.migrations"), Some("1"));
    let mut events = generation.events.iter();
    let moved = events.find(|(name, _)| name == "streamweld.migrated");
    let (_, moved) = moved.expect("it is told");
    assert_eq!(moved["trigger"], "truncated");
    assert_ne!(moved["from"], moved["to"]);

    let mut attempts = collector.wait(3, |span| span.is_attempt()).await;
    attempts.sort_by_key(|attempt| attempt.get("streamweld.attempt").map(str::to_owned));
    let outcomes: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            assert_eq!(attempt.parent, generation.id);
            assert_eq!(attempt.get("gen_ai.provider.name"), Some("vllm"));
            let outcome = attempt.get("streamweld.outcome").expect("an outcome");
            (outcome, attempt.get("error.type").unwrap_or_default())
        })
        .collect();
    let [(_, "503"), ("cut", why), ("whole", "")] = outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert!(!why.is_empty());
    // Each request says of which attempt it is.
    let requests = twins.attempts();
    let told: Vec<_> = requests
        .iter()
        .map(|request| request.header("traceparent").expect("it is told"))
        .collect();
    let expected: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt.traceparent())
        .collect();
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gates_that_refuse_are_told() {
    let collector = Collector::start().await;
    let script = Script::text(TEXT).engine(Engine::Vllm);
    let cut = script.clone().rst_after(5);
    let twins = TwinsSetup::new(script).config(to(&collector)).start().await;
    twins.next([cut]);
    let asked =
        r#"{"model":"m","stream":true,"stop":["x"],"messages":[{"role":"user","content":"q"}]}"#;
    let client = &twins.replica.client;
    client
        .send("POST", "/v1/chat/completions", asked)
        .await
        .all()
        .await;
    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!(generation.get("error.type"), Some("migration_refused"));
    let events = generation.events.iter();
    let gates: Vec<_> = events
        .filter(|(name, _)| name == "streamweld.gate_refused")
        .map(|(_, said)| said["gate"].as_str())
        .collect();
    assert!(gates.contains(&"stop_sequence"), "{gates:?}");
}
