//! Uses that read the answer of the first.

use streamweld_mock::Script;
use streamweld_tests::{CHAT, End, Harness, patience, wait_end};

use super::{KEY, PATH, whole};

#[tokio::test(flavor = "multi_thread")]
async fn fifty_uses_at_once_are_one_request_and_one_answer() {
    let harness = Harness::start(Script::tokens(200).head_gate("head")).await;
    let client = harness.client.with(KEY, "k");
    let uses: Vec<_> = (0..50)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let response = client.chat().await;
                (response.id(), whole(response).await)
            })
        })
        .collect();
    harness.mock.recorder().wait_requests(1).await.expect("one");
    harness.mock.gates().release("head");
    let mut answers = Vec::new();
    for used in uses {
        answers.push(patience(used).await.expect("no panic"));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_use_reads_the_answer_from_its_start() {
    let harness = Harness::start(Script::tokens(20)).await;
    let client = harness.client.with(KEY, "k");
    let first = client.chat().await;
    let id = first.id();
    let first = whole(first).await;
    wait_end(&harness.client, &id).await;
    for name in [KEY, "x-streamweld-idempotency-key"] {
        let again = harness.client.with(name, "k").chat().await;
        assert_eq!(again.id(), id);
        assert_eq!(whole(again).await, first);
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_body_is_refused_while_it_runs_and_after() {
    let harness = Harness::start(Script::tokens(20).gate_after(3, "go")).await;
    let client = harness.client.with(KEY, "k");
    let other = CHAT.replace("hi", "ho");
    let mut first = client.chat().await;
    let id = first.id();
    first.body.blocks(3).await;
    let refused = (422, "idempotency_key_reused".to_owned());
    let answer = client.send("POST", PATH, &other).await;
    assert_eq!(answer.error_code().await, refused);
    harness.mock.gates().release("go");
    first.all().await;
    wait_end(&harness.client, &id).await;
    let answer = client.send("POST", PATH, &other).await;
    assert_eq!(answer.error_code().await, refused);
    let answer = client.send("POST", PATH, "").await;
    assert_eq!(answer.error_code().await, refused);
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_body_for_another_target_is_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = harness.client.with(KEY, "k");
    client.chat().await.all().await;
    for target in [
        "/gpt-b/v1/chat/completions",
        "/v1/messages",
        "/v1/chat/completions?version=2",
    ] {
        let answer = client.send("POST", target, CHAT).await;
        let refused = (422, "idempotency_key_reused".to_owned());
        assert_eq!(answer.error_code().await, refused, "{target}");
    }
    assert_eq!(client.chat().await.all().await.1, End::Proper);
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cursor_decides() {
    let harness = Harness::start(Script::tokens(20)).await;
    let one = harness.client.with(KEY, "one").chat().await;
    let (first, second) = (one.id(), {
        let two = harness.client.with(KEY, "two").chat().await;
        let id = two.id();
        whole(two).await;
        id
    });
    let all = whole(one).await;
    for id in [&first, &second] {
        wait_end(&harness.client, id).await;
    }
    let from = harness.client.with("last-event-id", &format!("{first}:0"));
    // With its own key, with none that is known, and with another body: the cursor alone counts.
    for client in [from.with(KEY, "one"), from.with(KEY, "three")] {
        let response = client.send("POST", PATH, "{}").await;
        assert_eq!(response.id(), first);
        assert_eq!(whole(response).await, all);
    }
    let answer = from.with(KEY, "two").chat().await.error_code().await;
    assert_eq!(answer, (400, "cursor_mismatch".to_owned()));
    assert_eq!(harness.mock.recorder().count(), 2);
    // A key that was only looked at is still free.
    let three = harness.client.with(KEY, "three").chat().await;
    assert!(![first, second].contains(&three.id()));
    whole(three).await;
    assert_eq!(harness.mock.recorder().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_generation_keeps_its_key() {
    let harness = Harness::start(Script::tokens(20).gate_after(3, "go")).await;
    let client = harness.client.with(KEY, "k");
    let mut first = client.chat().await;
    let id = first.id();
    first.body.blocks(3).await;
    let stop = format!("/v1/streams/{id}/stop");
    assert_eq!(client.send("POST", &stop, "").await.status, 200);
    let again = client.chat().await;
    assert_eq!(again.id(), id);
    whole(again).await;
    assert_eq!(harness.mock.recorder().count(), 1);
}
