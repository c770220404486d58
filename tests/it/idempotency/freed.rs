//! When a key is free again.

use std::sync::Arc;
use std::time::Duration;

use streamweld_journal::faulty::{Fault, Faulty, Op};
use streamweld_journal::{Memory, Refusal};
use streamweld_mock::{Outcome, Script};
use streamweld_tests::{CHAT, End, Harness, Setup, leave, patience, wait_end};

use super::{KEY, PATH, whole};

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_free_again_after_an_error() {
    let harness = Harness::start(Script::tokens(20)).await;
    let client = harness.client.with(KEY, "k");
    harness.mock.push_script(Script::tokens(20).error_after(3));
    let failed = client.chat().await;
    let id = failed.id();
    assert_eq!(failed.all().await.1, End::Fin);
    wait_end(&harness.client, &id).await;
    // Another body as well: what failed binds nobody.
    let other = CHAT.replace("hi", "ho");
    whole(client.send("POST", PATH, &other).await).await;
    assert_eq!(harness.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_free_again_after_an_answer_that_is_no_stream() {
    let harness = Harness::start(Script::tokens(20)).await;
    let client = harness.client.with(KEY, "k");
    let plain = r#"{"model":"m"}"#;
    for _ in 0..2 {
        let answer = client.send("POST", PATH, plain).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.all().await;
    }
    harness.mock.push_script(Script::error(500));
    assert_eq!(client.chat().await.status, 500);
    whole(client.chat().await).await;
    assert_eq!(harness.mock.recorder().count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_free_while_the_answer_is_degraded() {
    let journal = Faulty::new(Memory::default());
    journal
        .faults()
        .script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).journal(Arc::new(journal));
    let harness = setup.start().await;
    let client = harness.client.with(KEY, "k");
    let first = client.chat().await;
    assert_eq!(first.header("x-streamweld-durability"), Some("degraded"));
    // Nobody could attach to that one.
    let second = client.chat().await;
    assert_eq!(second.header("x-streamweld-durability"), Some("durable"));
    assert_eq!(harness.mock.recorder().count(), 2);
    harness.mock.gates().release("go");
    whole(first).await;
    whole(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_free_again_after_an_early_cancel() {
    let harness = Harness::start(Script::tokens(20).head_gate("head")).await;
    let client = harness.client.with(KEY, "k");
    let body = r#"{"model":"m"}"#;
    let first = client.begin(&client.request("POST", PATH, body)).await;
    let recorder = harness.mock.recorder();
    recorder.wait_requests(1).await.expect("sent");
    leave(first).await;
    let ending = recorder.wait_closed(0).await.expect("cancelled");
    assert_ne!(ending.outcome, Outcome::Finished);
    harness.mock.gates().release("head");
    // The backend knows of the cancel an instant before the key is free.
    let free = async {
        loop {
            let response = client.chat().await;
            if response.status != 422 {
                return response;
            }
        }
    };
    whole(patience(free).await).await;
    assert_eq!(recorder.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_ends_with_the_generation() {
    let setup = Setup::new(Script::tokens(3))
        .config(|config| config.journal.retention = Duration::from_millis(200));
    let harness = setup.start().await;
    let client = harness.client.with(KEY, "k");
    let first = client.chat().await;
    let id = first.id();
    whole(first).await;
    let gone = async {
        while harness.client.events(&id).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    patience(gone).await;
    let again = client.chat().await;
    assert_ne!(again.id(), id);
    whole(again).await;
    assert_eq!(harness.mock.recorder().count(), 2);
}
