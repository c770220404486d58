//! A panic in one task: attack 32. It ends what that task does, and nothing else.

use std::sync::Arc;

use streamweld_journal::faulty::{Faulty, Op};
use streamweld_journal::{Memory, MemoryConfig};
use streamweld_mock::Script;
use streamweld_tests::{End, Response, Setup, metric, patience};

use super::{assert_serves, until};

const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";

#[tokio::test(flavor = "multi_thread")]
async fn row_32_a_panic_for_a_caller_ends_its_connection_alone() {
    let journal = Arc::new(Faulty::new(Memory::new(MemoryConfig::default())));
    let faults = journal.faults();
    let script = Script::tokens(20).gate_after(3, "go");
    let harness = Setup::new(script).journal(journal).start().await;
    let mut running = harness.client.chat().await;
    let id = running.id();
    running.body.blocks(3).await;
    for _ in 0..3 {
        faults.panic(Op::Find);
        let path = format!("/v1/streams/{UNKNOWN}");
        let begun = harness.client.request("GET", &path, "");
        let stream = harness.client.begin(&begun).await;
        let answer = patience(Response::read(stream)).await;
        assert!(answer.is_none(), "its connection is closed");
    }
    let counted = r#"streamweld_panics_total{task="connection"}"#;
    // A task is counted behind what it held, its connection among that.
    until(|| async { metric(&harness.admin, counted).await == 3 }).await;
    harness.mock.gates().release("go");
    assert_eq!(running.body.rest().await.1, End::Proper);
    assert_eq!(harness.client.events(&id).await.all().await.1, End::Proper);
    assert_serves(&harness.client).await;
    assert_eq!(harness.admin.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_32_a_panic_in_a_producer_ends_its_stream_alone() {
    let journal = Arc::new(Faulty::new(Memory::new(MemoryConfig::default())));
    let faults = journal.faults();
    // It stands still again: the events between are appended, and not with the end.
    let script = Script::tokens(20).gate_after(3, "go").gate_after(6, "end");
    let harness = Setup::new(script).journal(journal).start().await;
    let mut broken = harness.client.chat().await;
    let broken_id = broken.id();
    broken.body.blocks(3).await;
    faults.panic(Op::Append);
    harness.mock.gates().release("go");
    let (body, _) = broken.body.rest().await;
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("internal_error"), "it is told: {body}");
    assert!(!body.contains("[DONE]"), "and not taken for whole: {body}");
    harness.mock.set_script(Script::tokens(3));
    assert_serves(&harness.client).await;
    assert_serves(&harness.client).await;
    let path = format!("/v1/streams/{broken_id}");
    assert_eq!(harness.client.get(&path).await.status, 404);
    let running = "streamweld_generations_active";
    until(|| async { metric(&harness.admin, running).await == 0 }).await;
    let counted = r#"streamweld_panics_total{task="producer"}"#;
    until(|| async { metric(&harness.admin, counted).await == 1 }).await;
    // Nobody reads the backend any more.
    let closed = harness.mock.recorder().wait_closed(0).await;
    closed.expect("its connection is closed");
}
