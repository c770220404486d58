//! What becomes of a generation when nobody reads it (protocol.md 4.3, 8.1, 8.2).

use std::sync::Arc;
use std::time::{Duration, Instant};

use streamweld_generation::OrphanPolicy;
use streamweld_journal::faulty::{Fault, Faulty, Op};
use streamweld_journal::{Memory, Refusal};
use streamweld_mock::{Outcome, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Setup, blocks, events, leave, patience, wait_end, wait_state,
};

const CHAT_PATH: &str = "/v1/chat/completions";

fn gated() -> Script {
    Script::tokens(20).gate_after(3, "go")
}

/// Reads the beginning of a generation and leaves it. Gives its id.
async fn begin_and_leave(harness: &Harness, client: &Client) -> String {
    let mut response = client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    response.leave().await;
    wait_state(&harness.client, &id, |state| {
        state["readers"] == 0 || !state["terminal"].is_null()
    })
    .await;
    id
}

async fn assert_cancelled(harness: &Harness, id: &str, events: usize) {
    let state = wait_end(&harness.client, id).await;
    assert_eq!(state["status"], "error");
    assert_eq!(state["terminal"]["code"], "orphan_cancelled");
    let (body, end) = harness.client.events(id).await.all().await;
    assert_eq!(end, End::Proper);
    let blocks = blocks(&body);
    assert_eq!(blocks.len(), events + 1, "all of it, and the error form");
    let form = blocks.last().expect("a form");
    assert!(
        form.data
            .as_deref()
            .is_some_and(|data| data.contains("orphan_cancelled"))
    );
    assert_eq!(Some(form.seq()), state["terminal"]["seq"].as_u64());
}

async fn assert_left_alone(harness: &Harness, id: &str) {
    harness.mock.gates().release("go");
    let state = wait_end(&harness.client, id).await;
    assert_eq!(state["status"], "done");
    let (body, _) = harness.client.events(id).await.all().await;
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_eq!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_it_goes_on_to_the_end() {
    let harness = Harness::start(gated()).await;
    let id = begin_and_leave(&harness, &harness.client).await;
    assert_left_alone(&harness, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_it_and_closes_the_backends_connection() {
    let setup =
        Setup::new(gated()).config(|config| config.generation.orphan_policy = OrphanPolicy::Cancel);
    let harness = setup.start().await;
    let mut response = harness.client.chat().await;
    let id = response.id();
    response.body.blocks(3).await;
    let left = Instant::now();
    response.leave().await;
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert!(
        left.elapsed() < Duration::from_secs(1),
        "{:?}",
        left.elapsed()
    );
    assert!(
        matches!(ending.outcome, Outcome::ClientClosed | Outcome::ClientReset),
        "{ending:?}"
    );
    assert_cancelled(&harness, &id, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_after_ends_it_when_nobody_came_back() {
    let setup = Setup::new(gated()).config(|config| {
        config.generation.orphan_policy = OrphanPolicy::CancelAfter(Duration::from_millis(50));
    });
    let harness = setup.start().await;
    let id = begin_and_leave(&harness, &harness.client).await;
    assert_cancelled(&harness, &id, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_comes_back_in_time_ends_the_wait() {
    let setup = Setup::new(gated()).config(|config| {
        config.generation.orphan_policy = OrphanPolicy::CancelAfter(Duration::from_secs(60));
    });
    let harness = setup.start().await;
    let id = begin_and_leave(&harness, &harness.client).await;
    let back = harness.client.with("last-event-id", &format!("{id}:4"));
    let response = back.chat().await;
    assert_eq!(response.id(), id);
    harness.mock.gates().release("go");
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_readers_that_leaves_orphans_nothing() {
    let setup =
        Setup::new(gated()).config(|config| config.generation.orphan_policy = OrphanPolicy::Cancel);
    let harness = setup.start().await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    first.body.blocks(3).await;
    let mut second = harness.client.events(&id).await;
    second.body.blocks(3).await;
    first.leave().await;
    wait_state(&harness.client, &id, |state| state["readers"] == 1).await;
    harness.mock.gates().release("go");
    assert_eq!(second.all().await.1, End::Proper);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_wins_over_the_configuration() {
    let setup =
        Setup::new(gated()).config(|config| config.generation.orphan_policy = OrphanPolicy::Cancel);
    let harness = setup.start().await;
    let client = harness
        .client
        .with("x-streamweld-orphan-policy", "continue");
    let id = begin_and_leave(&harness, &client).await;
    assert_left_alone(&harness, &id).await;

    let harness = Harness::start(gated()).await;
    for policy in ["cancel", "cancel_after=50ms"] {
        let client = harness.client.with("x-streamweld-orphan-policy", policy);
        let id = begin_and_leave(&harness, &client).await;
        assert_cancelled(&harness, &id, 3).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_none_is_refused_before_anything_is_sent() {
    let harness = Harness::start(Script::tokens(3)).await;
    for policy in [
        "",
        "stop",
        "Cancel",
        "cancel_after",
        "cancel_after=",
        "cancel_after=60",
        "cancel_after=-1s",
        "continue, cancel",
    ] {
        let client = harness.client.with("x-streamweld-orphan-policy", policy);
        assert_eq!(
            client.chat().await.error_code().await,
            (400, "invalid_orphan_policy".to_owned()),
            "{policy:?}"
        );
    }
    let twice = harness
        .client
        .with("x-streamweld-orphan-policy", "cancel")
        .with("x-streamweld-orphan-policy", "cancel");
    assert_eq!(twice.chat().await.status, 400);
    assert_eq!(harness.mock.recorder().accepted_connections(), 0);
}

/// The id of the one generation that an operator sees, once there is one.
async fn the_only_one(admin: &Client) -> String {
    let look = async {
        loop {
            let list = admin.get("/admin/streams").await.json().await;
            let found = list["data"].as_array().expect("a list");
            if let Some(first) = found.first() {
                assert_eq!(found.len(), 1);
                return first["stream_id"].as_str().expect("an id").to_owned();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(look).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_a_known_stream_before_its_head_leaves_an_orphan() {
    let harness = Harness::start(Script::tokens(20).head_gate("head")).await;
    let request = harness.client.request("POST", CHAT_PATH, CHAT);
    let stream = harness.client.begin(&request).await;
    harness
        .mock
        .recorder()
        .wait_requests(1)
        .await
        .expect("sent");
    leave(stream).await;
    harness.mock.gates().release("head");
    let id = the_only_one(&harness.admin).await;
    let state = wait_end(&harness.client, &id).await;
    assert_eq!(state["status"], "done");
    let (body, end) = harness.client.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_stream_left_before_its_head_keeps_to_its_policy() {
    let harness = Harness::start(Script::tokens(20).head_gate("head")).await;
    let client = harness.client.with("x-streamweld-orphan-policy", "cancel");
    let stream = client.begin(&client.request("POST", CHAT_PATH, CHAT)).await;
    harness
        .mock
        .recorder()
        .wait_requests(1)
        .await
        .expect("sent");
    leave(stream).await;
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_candidate_is_cancelled_with_its_client() {
    let harness = Harness::start(Script::tokens(3).head_gate("head")).await;
    let cases = [
        (CHAT_PATH, r#"{"stream":false}"#),
        (CHAT_PATH, r#"{"n":{"stream":true}}"#),
        (CHAT_PATH, "not json"),
        ("/generic", r#"{"stream":true}"#),
    ];
    for (at, (path, body)) in cases.into_iter().enumerate() {
        let stream = harness
            .client
            .begin(&harness.client.request("POST", path, body))
            .await;
        let recorder = harness.mock.recorder();
        recorder.wait_requests(at + 1).await.expect("sent");
        leave(stream).await;
        let ending = recorder.wait_closed(at).await.expect("ends");
        assert_ne!(ending.outcome, Outcome::Finished, "{path} {body}");
    }
    let list = harness.admin.get("/admin/streams").await.json().await;
    assert_eq!(list["data"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_its_request_body_cancels() {
    let harness = Harness::start(Script::tokens(3)).await;
    let request =
        format!("POST {CHAT_PATH} HTTP/1.1\r\nhost: h\r\ncontent-length: 1000\r\n\r\n{CHAT}");
    let stream = harness.client.begin(request.as_bytes()).await;
    let recorder = harness.mock.recorder();
    recorder.wait_open_connections(1).await.expect("connects");
    leave(stream).await;
    recorder.wait_open_connections(0).await.expect("closes");
    assert_eq!(recorder.count(), 0, "it was never whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_is_too_old_ends() {
    let setup = Setup::new(Script::tokens(20).stall_after(3))
        .config(|config| config.generation.max_duration = Duration::from_millis(300));
    let harness = setup.start().await;
    let response = harness.client.chat().await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Fin);
    let blocks = blocks(&body);
    assert_eq!(blocks.len(), 4);
    assert!(
        blocks[3]
            .data
            .as_deref()
            .is_some_and(|data| data.contains("max_duration"))
    );
    let state = wait_end(&harness.client, &id).await;
    assert_eq!(state["terminal"]["code"], "max_duration");
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

/// What the `open` entry of a generation says of its policy.
async fn policy_of(response: streamweld_tests::Response, client: &Client) -> String {
    let id = response.id();
    let mut control = client
        .with("x-streamweld-events", "control")
        .events(&id)
        .await;
    let first = control.body.blocks(1).await;
    let open = blocks(&first)[0].data.clone().expect("data");
    let open: serde_json::Value = serde_json::from_str(&open).expect("JSON");
    response.leave().await;
    open["orphan_policy"].as_str().expect("text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_cancelled_a_minute_after_its_last_reader() {
    let setup = Setup::new(Script::tokens(20).gate_after(2, "go"))
        .config(|config| config.generation.durable_get = vec!["/feed".to_owned()]);
    let harness = setup.start().await;
    let client = &harness.client;
    assert_eq!(
        policy_of(client.get("/feed").await, client).await,
        "cancel_after=1m"
    );
    assert_eq!(policy_of(client.chat().await, client).await, "continue");
    let said = client.with("x-streamweld-orphan-policy", "continue");
    assert_eq!(policy_of(said.get("/feed").await, client).await, "continue");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_nobody_reads_is_cancelled() {
    let setup = Setup::new(Script::tokens(20).gate_after(2, "go")).config(|config| {
        config.generation.durable_get = vec!["/feed".to_owned()];
        config.generation.feed_orphan_policy = OrphanPolicy::CancelAfter(Duration::from_millis(50));
    });
    let harness = setup.start().await;
    let mut response = harness.client.get("/feed").await;
    let id = response.id();
    response.body.blocks(2).await;
    response.leave().await;
    let state = wait_end(&harness.client, &id).await;
    assert_eq!(state["terminal"]["code"], "orphan_cancelled");
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_generation_is_cancelled_with_its_reader() {
    let journal = Arc::new(Faulty::new(Memory::default()));
    journal
        .faults()
        .script(Op::Open, [Fault::Refuse(Refusal::Full)]);
    let harness = Setup::new(gated()).journal(journal).start().await;
    let mut response = harness.client.chat().await;
    assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
    response.body.blocks(3).await;
    response.leave().await;
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

/// Many clients close as soon as they have seen the sentinel, before the end of the body is here.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_right_after_the_end_changes_nothing() {
    // Role, three words, finish, sentinel; then the last chunk waits.
    let harness = Harness::start(Script::tokens(3).gate_after(6, "last")).await;
    let recorder = harness.mock.recorder();
    for turn in 0..10 {
        let mut response = harness.client.chat().await;
        let body = response.body.blocks(6).await;
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
        response.leave().await;
        harness.mock.gates().step("last");
        let ending = recorder.wait_closed(turn).await.expect("ends");
        assert_eq!(ending.outcome, Outcome::Finished, "turn {turn}");
    }
    let connections = recorder.accepted_connections();
    assert!(
        connections <= 2,
        "{connections} connections for ten requests"
    );
}
