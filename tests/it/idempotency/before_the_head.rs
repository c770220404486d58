//! Uses that come while the first has no head yet.

use std::sync::Arc;
use std::time::Duration;

use streamweld_journal::Memory;
use streamweld_journal::faulty::{Fault, Faulty, Op};
use streamweld_mock::Script;
use streamweld_tests::{CHAT, Client, Harness, Response, Setup, leave, metric, patience};
use tokio::net::TcpStream;

use super::{KEY, PATH, answer, whole};

/// A use of the key whose stream shows only with its head: nothing of the request says that there will be one, so the
/// log is not opened before. Nothing of the answer is read yet.
async fn begin_generic(client: &Client) -> TcpStream {
    let client = client.with(KEY, "k");
    client
        .begin(&client.request("POST", "/generic", "{}"))
        .await
}

/// Waits until so many clients wait for a head.
async fn wait_readers(harness: &Harness, count: i64) {
    let there = async {
        while metric(&harness.admin, "streamweld_readers").await != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_waits_with_the_first_for_its_head_however_long_that_takes() {
    const CLAIM: Duration = Duration::from_secs(1);
    let setup = Setup::new(Script::tokens(20).head_gate("head"))
        .config(|config| config.journal.claim = CLAIM);
    let harness = setup.start().await;
    let mut uses = vec![begin_generic(&harness.client).await];
    let recorder = harness.mock.recorder();
    recorder.wait_requests(1).await.expect("sent");
    for count in 2..=3 {
        // The time itself is what this is about.
        tokio::time::sleep(CLAIM * 3 / 2).await;
        uses.push(begin_generic(&harness.client).await);
        wait_readers(&harness, count).await;
    }
    harness.mock.gates().release("head");
    let mut answers = Vec::new();
    for used in uses {
        answers.push(answer(used).await);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(recorder.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_that_waits_keeps_the_first_alive() {
    let harness = Harness::start(Script::tokens(20).head_gate("head")).await;
    let first = begin_generic(&harness.client).await;
    let recorder = harness.mock.recorder();
    recorder.wait_requests(1).await.expect("sent");
    let second = begin_generic(&harness.client).await;
    wait_readers(&harness, 2).await;
    leave(first).await;
    wait_readers(&harness, 1).await;
    harness.mock.gates().release("head");
    answer(second).await;
    assert_eq!(recorder.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_stands_still_holds_a_request_up_for_no_longer_than_its_log_may() {
    let journal = Faulty::new(Memory::default());
    let held = journal.faults().hold(Op::Claim);
    let setup = Setup::new(Script::tokens(3)).journal(Arc::new(journal));
    let harness = setup.start().await;
    whole(harness.client.with(KEY, "k").chat().await).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_cannot_be_renewed_is_no_matter_of_the_request() {
    let journal = Faulty::new(Memory::default());
    let faults = journal.faults();
    faults.pass(Op::Claim);
    let failing = [
        Fault::Unreachable,
        Fault::UnknownApplied,
        Fault::UnknownLost,
    ];
    faults.script(Op::Claim, failing.into_iter().cycle().take(300));
    let setup = Setup::new(Script::tokens(20).head_gate("head"))
        .config(|config| config.journal.claim = Duration::from_millis(30))
        .journal(Arc::new(journal));
    let harness = setup.start().await;
    let first = begin_generic(&harness.client).await;
    let failed = async {
        while faults.calls(Op::Claim) < 10 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(failed).await;
    harness.mock.gates().release("head");
    answer(first).await;
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_that_wait_are_refused_when_a_shutdown_ends_the_first() {
    let mut harness = Setup::new(Script::tokens(20).head_gate("head"))
        .config(|config| config.shutdown_grace = Duration::from_millis(300))
        .start()
        .await;
    let client = harness.client.with(KEY, "k");
    let uses = (0..4).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.chat().await.error_code().await })
    });
    let uses: Vec<_> = uses.collect();
    wait_readers(&harness, 4).await;
    harness.begin_shutdown();
    for answer in uses {
        let answer = patience(answer).await.expect("no panic");
        assert_eq!(answer, (503, "shutting_down".to_owned()));
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_body_is_refused_before_the_head() {
    let harness = Harness::start(Script::tokens(20).head_gate("head")).await;
    let client = harness.client.with(KEY, "k");
    let first = client.begin(&client.request("POST", PATH, CHAT)).await;
    harness
        .mock
        .recorder()
        .wait_requests(1)
        .await
        .expect("sent");
    let answer = client.send("POST", PATH, &CHAT.replace("hi", "ho")).await;
    assert_eq!(answer.status, 422);
    drop(first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_to_keep_is_compared_all_the_same() {
    let setup = Setup::new(Script::tokens(20)).config(|config| config.edge.max_kept_body = 8);
    let harness = setup.start().await;
    let client = harness.client.with(KEY, "k");
    let first = whole(client.chat().await).await;
    assert_eq!(whole(client.chat().await).await, first);
    let other = client.send("POST", PATH, &CHAT.replace("hi", "ho")).await;
    assert_eq!(other.status, 422);
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_to_keep_is_sent_whole_when_the_key_is_free_again() {
    let setup = Setup::new(Script::tokens(20)).config(|config| config.edge.max_kept_body = 8);
    let harness = setup.start().await;
    harness
        .mock
        .push_script(Script::error(503).head_gate("head"));
    let client = harness.client.with(KEY, "k");
    let request = client.request("POST", PATH, CHAT);
    let first = client.begin(&request).await;
    harness
        .mock
        .recorder()
        .wait_requests(1)
        .await
        .expect("sent");
    let second = client.begin(&request).await;
    harness.mock.gates().release("head");
    let first = patience(Response::read(first)).await.expect("an answer");
    assert_eq!(first.status, 503);
    let second = patience(Response::read(second)).await.expect("an answer");
    whole(second).await;
    let request = harness.mock.recorder().request(1).expect("recorded");
    assert_eq!(request.body, CHAT.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_at_once_of_an_answer_that_is_no_stream_each_get_their_own() {
    let harness = Harness::start(Script::answer(200, "{}").head_gate("head")).await;
    let client = harness.client.with(KEY, "k");
    let uses: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.chat().await.status })
        })
        .collect();
    harness.mock.recorder().wait_requests(1).await.expect("one");
    harness.mock.gates().release("head");
    for used in uses {
        assert_eq!(patience(used).await.expect("no panic"), 200);
    }
    let requests = harness.mock.recorder().requests();
    assert_eq!(requests.len(), 8);
    for request in requests {
        assert_eq!(request.body, CHAT.as_bytes());
    }
}
