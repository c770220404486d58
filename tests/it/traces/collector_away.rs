//! A collector that hangs, refuses, or is not there. Row 53 of the faults.

use std::time::{Duration, Instant};

use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, Collector, End, Process, Setup, metric, patience};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::traced;

const SENT: &str = "streamweld_trace_spans_total{outcome=\"sent\"}";
const FULL: &str = "streamweld_trace_spans_total{outcome=\"queue_full\"}";
const NOT_TAKEN: &str = "streamweld_trace_spans_total{outcome=\"not_taken\"}";

async fn wait_metric(admin: &Client, line: &str, at_least: i64) {
    let grown = async {
        while metric(admin, line).await < at_least {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(grown).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_53_a_collector_that_hangs_holds_up_nothing() {
    // As one that was stopped: its kernel takes the connection and what is sent, and nobody answers.
    let stopped = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", stopped.local_addr().expect("bound"));
    let config = move |config: &mut streamweld_server::Config| {
        traced(config, &url);
        let traces = config.traces.as_mut().expect("set");
        traces.queue = 8;
        traces.timeout = Duration::from_secs(600);
    };
    let harness = Setup::new(Script::tokens(3)).config(config).start().await;
    // The first batch is with the collector, and so is no other.
    for _ in 0..40 {
        assert_eq!(harness.client.chat().await.all().await.1, End::Proper);
    }
    let full = metric(&harness.admin, FULL).await;
    assert!((1..80).contains(&full), "{full}");
    let (stream, _) = patience(stopped.accept()).await.expect("it is asked");
    let other = tokio::time::timeout(Duration::from_millis(50), stopped.accept());
    assert!(other.await.is_err(), "it is asked once at a time");
    assert_eq!(metric(&harness.admin, SENT).await, 0);
    // Nor does it hold up the end.
    let began = Instant::now();
    harness.shut_down().await;
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    drop(stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_refuses_is_counted_and_the_next_is_sent() {
    let collector = Collector::start().await;
    collector.answer(400);
    let setup = Setup::new(Script::tokens(3)).config(super::to(&collector));
    let harness = setup.start().await;
    harness.client.chat().await.all().await;
    wait_metric(&harness.admin, NOT_TAKEN, 2).await;
    assert_eq!(metric(&harness.admin, SENT).await, 0);
    collector.answer(200);
    harness.client.chat().await.all().await;
    wait_metric(&harness.admin, SENT, 2).await;
    assert_eq!(collector.spans().len(), 2);
    assert_eq!(metric(&harness.admin, FULL).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_could_not_take_for_a_moment_is_sent_again() {
    let collector = Collector::start().await;
    collector.answer(503);
    let setup = Setup::new(Script::tokens(3)).config(super::to(&collector));
    let harness = setup.start().await;
    harness.client.chat().await.all().await;
    collector.requests(1).await;
    collector.answer(200);
    collector.one(|span| span.is_generation()).await;
    wait_metric(&harness.admin, SENT, 2).await;
    assert_eq!(metric(&harness.admin, NOT_TAKEN).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_sent_before_the_end() {
    let collector = Collector::start().await;
    let url = collector.url();
    let config = move |config: &mut streamweld_server::Config| {
        traced(config, &url);
        config.traces.as_mut().expect("set").every = Duration::from_secs(600);
    };
    let harness = Setup::new(Script::tokens(3)).config(config).start().await;
    harness.client.chat().await.all().await;
    harness.shut_down().await;
    let spans = collector.spans();
    assert!(spans.iter().any(|span| span.is_generation()), "{spans:?}");
    assert!(spans.iter().any(|span| span.is_attempt()), "{spans:?}");
}

/// The log tells of it at once, and then no more for a while; what it tells names neither a key nor a path.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_of_it_now_and_then() {
    let collector = Collector::start().await;
    collector.answer(403);
    let mock = Mock::start(Script::tokens(3)).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=planted-key"),
        ("OTEL_SERVICE_NAME", "planted-service"),
    ];
    let mut process = Process::serve_with(&variables, &[&backend, "--log-level=debug"]);
    let client = process.client().await;
    for count in 1..=3 {
        assert_eq!(client.chat().await.all().await.1, End::Proper);
        collector.requests(count).await;
    }
    process.wait_output("spans were dropped").await;
    collector.answer(200);
    client.chat().await.all().await;
    let generation = collector.one(|span| span.is_generation()).await;
    assert_eq!(generation.resource["service.name"], "planted-service");
    let output = process.wait_output("the collector takes spans again").await;
    assert_eq!(output.matches("spans were dropped").count(), 1, "{output}");
    assert!(output.contains("why=\"403\""), "{output}");
    assert!(!output.contains("planted"), "{output}");
    let sent = ("x-key".to_owned(), "planted-key".to_owned());
    assert!(collector.fields().contains(&sent));
    // A line of a generation names the trace that it is in.
    assert!(
        output.contains(&format!("trace_id=\"{}\"", generation.trace)),
        "{output}"
    );
}
