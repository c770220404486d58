//! Readers that come to a generation which there is.

use streamweld_journal_redis::testing::until;
use streamweld_mock::Script;
use streamweld_tests::{Collector, End, Over, Pair, Setup, Span, wait_seq};

use super::{CALLER, SPAN, TRACE, to};

fn of(outcome: &'static str) -> impl Fn(&Span) -> bool {
    move |span| span.is_resume() && span.get("streamweld.outcome") == Some(outcome)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_has_a_span_of_its_own_with_a_link() {
    let collector = Collector::start().await;
    let script = Script::tokens(9).gate_after(4, "go");
    let harness = Setup::new(script).config(to(&collector)).start().await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    first.body.blocks(4).await;
    let cursor = format!("{id}:3");
    let back = harness.client.with("last-event-id", &cursor);
    let back = back.with("traceparent", CALLER);
    let mut back = back.events(&id).await;
    back.body.blocks(1).await;
    harness.mock.gates().release("go");
    assert_eq!(back.all().await.1, End::Proper);
    first.all().await;
    let generation = collector.one(|span| span.is_generation()).await;
    let resume = collector.one(of("whole")).await;
    assert_eq!((&*resume.trace, &*resume.parent), (TRACE, SPAN));
    assert_eq!(resume.kind, "server");
    assert_eq!(resume.links, std::slice::from_ref(&generation.id));
    assert_eq!(resume.get("streamweld.stream_id"), Some(&*id));
    assert_eq!(resume.get("streamweld.cursor"), Some("3"));
    assert_ne!(generation.trace, TRACE);

    // Also when it is over, and where the reader is refused, or goes.
    let beyond = harness.client.with("last-event-id", &format!("{id}:999"));
    assert_eq!(beyond.events(&id).await.status, 409);
    let refused = collector.one(of("refused")).await;
    assert_eq!(refused.get("error.type"), Some("cursor_ahead"));
    assert_eq!(refused.links, [generation.id]);
}

/// Whole is what was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_the_same_span_in_every_form() {
    let collector = Collector::start().await;
    let harness = Setup::new(Script::tokens(5))
        .config(to(&collector))
        .start()
        .await;
    let first = harness.client.chat().await;
    let id = first.id();
    first.all().await;
    for (at, form) in ["sse", "batch", "ndjson", "json"].into_iter().enumerate() {
        let path = format!("/v1/streams/{id}/events?format={form}&seq=2&count=2");
        let (_, end) = harness.client.get(&path).await.all().await;
        assert_eq!(end, End::Proper, "{form}");
        until("it is told", async || {
            collector
                .spans()
                .iter()
                .filter(|span| of("whole")(span))
                .count()
                == at + 1
        })
        .await;
    }
    let refused = format!("/v1/streams/{id}/events?seq=999");
    assert_eq!(harness.client.get(&refused).await.status, 416);
    let refused = collector.one(of("refused")).await;
    assert_eq!(refused.get("error.type"), Some("start_beyond_end"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_ends_its_own_span() {
    let collector = Collector::start().await;
    let script = Script::tokens(9).gate_after(4, "never");
    let harness = Setup::new(script).config(to(&collector)).start().await;
    let first = harness.client.chat().await;
    let id = first.id();
    let mut other = harness.client.events(&id).await;
    other.body.blocks(4).await;
    other.leave().await;
    collector.one(of("left")).await;
    assert!(!collector.spans().iter().any(Span::is_generation));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_at_another_replica_has_the_same_link() {
    let collector = Collector::start().await;
    let script = Script::tokens(9).gate_after(4, "go");
    let pair = Pair::with(Over::Link, script, to(&collector)).await;
    let first = pair.one.client.durable_chat().await;
    let id = first.id();
    wait_seq(&pair.one.client, &id, 4).await;
    let mut other = pair.other.client.events(&id).await;
    other.body.blocks(4).await;
    pair.mock.gates().release("go");
    assert_eq!(other.all().await.1, End::Proper);
    first.all().await;
    let is_it =
        |span: &Span| span.is_generation() && span.get("streamweld.stream_id") == Some(&*id);
    let generation = collector.one(is_it).await;
    let resume = collector.one(of("whole")).await;
    assert_eq!(resume.links, [generation.id]);
}
