//! Event streams that answer a `GET`.

use streamweld_mock::{Dialect, Script};
use streamweld_server::Config;
use streamweld_tests::{Client, End, Harness, Setup, blocks, wait_end};

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_on_another_route_passes_untouched() {
    let mut script = Script::tokens(20).block_after(2, ": a comment\n\nfoo: bar\n\n");
    script.retry = Some(1234);
    script.bom = true;
    let harness = Harness::start(script).await;
    let client = harness.client.with("last-event-id", "7");
    let response = client.get("/feed").await;
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    assert_eq!(response.header("x-streamweld-durability"), None);
    assert!(response.header("x-streamweld-request-id").is_some());
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let (plain, _) = Client::new(harness.mock.addr())
        .get("/feed")
        .await
        .all()
        .await;
    assert_eq!(body, plain, "byte for byte");
    let request = harness.mock.recorder().request(0).expect("recorded");
    assert_eq!(request.header("last-event-id"), Some("7"));
}

fn feeds(config: &mut Config) {
    config.generation.durable_get = vec!["/feed".to_owned(), "/live/*".to_owned()];
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_feed_has_ids_of_ours_and_is_resumed() {
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).config(feeds);
    let harness = setup.start().await;
    let client = &harness.client;
    let mut response = client.get("/feed?a=b").await;
    let id = response.id();
    let first = response.body.blocks(3).await;
    assert_eq!(blocks(&first)[2].id, Some(format!("{id}:4")));
    response.leave().await;
    let back = client.with("last-event-id", &format!("{id}:4"));
    let response = back.get("/feed?a=b").await;
    assert_eq!(response.id(), id);
    harness.mock.gates().release("go");
    let (rest, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest)[0].seq(), 5);
    assert_eq!(blocks(&rest).len(), 17);
    wait_end(client, &id).await;
    // It ended by itself: there is nothing more, and nothing begins anew.
    let back = client.with("last-event-id", &format!("{id}:21"));
    assert_eq!(back.get("/feed?a=b").await.status, 204);
    assert_eq!(harness.mock.recorder().count(), 1);
}

/// Ends a feed by its orphan policy or its age, and asks again with our cursor.
async fn check_begins_anew(path: &str, change: fn(&mut Config), last: Option<&str>) {
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).config(move |config| {
        feeds(config);
        change(config);
    });
    let harness = setup.start().await;
    harness.mock.set_script_at(
        "/live/1",
        Script::tokens(20)
            .dialect(Dialect::Generic)
            .gate_after(3, "go"),
    );
    let client = &harness.client;
    let mut response = client.get(path).await;
    let id = response.id();
    response.body.blocks(3).await;
    response.leave().await;
    wait_end(client, &id).await;
    let back = client.with("last-event-id", &format!("{id}:4"));
    let response = back.get(path).await;
    assert_eq!(response.status, 200);
    assert_ne!(response.id(), id);
    let request = harness.mock.recorder().request(1).expect("a new request");
    assert_eq!(request.header("last-event-id"), last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_was_cut_short_begins_anew_where_the_backend_was() {
    let orphaned = |config: &mut Config| {
        config.generation.feed_orphan_policy = streamweld_generation::OrphanPolicy::Cancel;
    };
    let aged = |config: &mut Config| {
        config.generation.max_duration = std::time::Duration::from_millis(300);
    };
    check_begins_anew("/feed", orphaned, Some("3")).await;
    check_begins_anew("/feed", aged, Some("3")).await;
    check_begins_anew("/live/1", orphaned, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_was_stopped_does_not_begin_anew() {
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).config(feeds);
    let harness = setup.start().await;
    let client = &harness.client;
    let mut response = client.get("/feed").await;
    let id = response.id();
    response.body.blocks(3).await;
    let stop = format!("/v1/streams/{id}/stop");
    assert_eq!(client.send("POST", &stop, "").await.status, 200);
    let back = client.with("last-event-id", &format!("{id}:4"));
    assert_eq!(back.get("/feed").await.status, 204);
    assert_eq!(harness.mock.recorder().count(), 1);
}
