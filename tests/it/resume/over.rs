//! Coming back when the end stands.

use streamweld_mock::{Dialect, Script};
use streamweld_tests::{CHAT, End, Harness, Way, blocks, state};

/// Status of a read after `seq`, as an ordinary reader and as one with control events, by each way.
async fn check_over(script: Script, dialect: Dialect, stop: bool, ordinary: bool) {
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.send("POST", dialect.path(), CHAT).await;
    let id = response.id();
    if stop {
        harness
            .mock
            .gates()
            .wait_arrived("gate", 1)
            .await
            .expect("the mock comes there");
        let stopped = harness
            .client
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await;
        assert_eq!(stopped.status, 200);
    }
    response.all().await;
    let state = state(&harness.client, &id).await;
    let terminal = state["terminal"]["seq"].as_u64().expect("it has ended");
    let control = harness.client.with("x-streamweld-events", "control");
    for way in Way::ALL {
        for (client, seq, shown) in [
            // Behind the last event: what is left is the terminal.
            (&harness.client, terminal - 1, ordinary),
            (&control, terminal - 1, true),
            (&harness.client, terminal, false),
            (&control, terminal, false),
        ] {
            let cursor = format!("{id}:{seq}");
            let answer = way.resume(client, &cursor, (dialect.path(), CHAT)).await;
            let place = format!("{script:?} {way:?} after {seq} of {terminal}");
            if shown {
                assert_eq!(answer.status, 200, "{place}");
                let (bytes, end) = answer.all().await;
                assert_eq!(end, End::Proper, "{place}");
                let last = blocks(&bytes).pop().expect("the terminal's form");
                assert_eq!(last.id, Some(format!("{id}:{terminal}")), "{place}");
            } else {
                assert_eq!(answer.status, 204, "{place}");
                assert!(answer.header("x-streamweld-request-id").is_some());
                assert_eq!(answer.header("content-type"), None);
                assert_eq!(answer.all().await, (Vec::new(), End::Proper));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_done_nothing_is_left_to_an_ordinary_reader() {
    for dialect in Dialect::ALL {
        check_over(Script::tokens(3), dialect, false, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_the_form_is_left_where_the_dialect_has_one() {
    for dialect in Dialect::ALL {
        let has_form = dialect != Dialect::Generic;
        check_over(Script::tokens(8).fin_after(4), dialect, false, has_form).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_the_form_is_left_where_the_dialect_has_one() {
    for dialect in Dialect::ALL {
        let has_form = dialect != Dialect::Generic;
        check_over(
            Script::tokens(8).gate_after(4, "gate"),
            dialect,
            true,
            has_form,
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_generation_is_over_from_its_start() {
    let harness = Harness::start(Script::tokens(0)).await;
    let response = harness.client.send("POST", "/generic", "{}").await;
    let id = response.id();
    assert_eq!(response.all().await, (Vec::new(), End::Proper));
    assert_eq!(harness.client.events(&id).await.status, 204);
    let control = harness.client.with("x-streamweld-events", "control");
    let (bytes, _) = control.events(&id).await.all().await;
    let names: Vec<_> = blocks(&bytes)
        .into_iter()
        .filter_map(|block| block.event)
        .collect();
    assert_eq!(names, ["streamweld.open", "streamweld.done"]);
}
