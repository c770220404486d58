//! A POST that is repeated because its answer never began joins the answer that is under way (protocol.md 6.5):
//! every condition, and what happens without it.

use std::future::Future;
use std::time::Duration;

use streamweld_mock::{Outcome, Script};
use streamweld_server::Config;
use streamweld_tests::{
    CHAT, Client, End, Harness, Response, Setup, events, leave, patience, wait_end, wait_state,
};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

const PATH: &str = "/v1/chat/completions";

async fn start() -> Harness {
    start_with(|_| {}).await
}

/// A backend that holds every head back.
async fn start_with(change: impl FnOnce(&mut Config) + Send + 'static) -> Harness {
    Setup::new(Script::tokens(20).head_gate("head"))
        .config(change)
        .start()
        .await
}

/// A backend that sends its head, and then waits before its first event.
async fn headed() -> Harness {
    Harness::start(Script::tokens(20).gate_after(0, "head")).await
}

/// Sends a request that reaches the backend, and leaves its answer to come.
async fn first(harness: &Harness, client: &Client) -> TcpStream {
    let count = harness.mock.recorder().count();
    let stream = client.begin(&client.request("POST", PATH, CHAT)).await;
    let sent = harness.mock.recorder().wait_requests(count + 1).await;
    sent.expect("reaches the backend");
    stream
}

/// Sends a request that reaches the backend, and loses its client.
async fn lost(harness: &Harness, client: &Client) {
    leave(first(harness, client).await).await;
    // The connection is closed an instant before the reader is gone.
    let gone = async {
        loop {
            let metrics = harness.admin.get("/metrics").await.all().await.0;
            let metrics = String::from_utf8(metrics).expect("text");
            if metrics.contains("\nstreamweld_readers 0\n") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(gone).await;
}

/// Reads an answer to its end, which must be whole.
async fn whole(response: Response) -> Vec<u8> {
    assert_eq!(response.status, 200);
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(events(&body).len(), 23, "from its start");
    body
}

/// The repeat is answered without another request to the backend.
async fn assert_joins(harness: &Harness, repeat: impl Future<Output = Response>) {
    let count = harness.mock.recorder().count();
    harness.mock.gates().release("head");
    whole(repeat.await).await;
    assert_eq!(harness.mock.recorder().count(), count, "it joins");
}

/// The repeat is a new request.
async fn assert_is_new(harness: &Harness, repeat: impl Future<Output = Response>) {
    let count = harness.mock.recorder().count();
    harness.mock.gates().release("head");
    let response = patience(repeat).await;
    assert_eq!(response.status, 200);
    response.all().await;
    assert_eq!(harness.mock.recorder().count(), count + 1, "it is new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_a_lost_request_joins_its_answer() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    assert_joins(&harness, harness.client.chat()).await;
    let metrics = harness.admin.get("/metrics").await.all().await.0;
    let metrics = String::from_utf8(metrics).expect("text");
    assert!(
        metrics.contains("streamweld_retries_joined_total 1\n"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_joins_an_answer_that_has_ended_meanwhile() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    harness.mock.gates().release("head");
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_eq!(ending.outcome, Outcome::Finished);
    assert_joins(&harness, harness.client.chat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_repeats_join_one_answer() {
    let harness = headed().await;
    lost(&harness, &harness.client).await;
    let one = harness.client.chat().await;
    let client = harness.client.with("x-stainless-retry-count", "2");
    let two = client.chat().await;
    assert_eq!(one.id(), two.id());
    harness.mock.gates().release("head");
    assert_eq!(whole(one).await, whole(two).await);
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_target_is_another_request() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    let target = format!("{PATH}?a=1");
    assert_is_new(&harness, harness.client.send("POST", &target, CHAT)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_another_request() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    let count = harness.mock.recorder().count();
    harness.client.send("PUT", PATH, CHAT).await.all().await;
    assert_eq!(harness.mock.recorder().count(), count + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_body_is_another_request_and_arrives_whole() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    let other = CHAT.replace("hi", "ho");
    assert_is_new(&harness, harness.client.send("POST", PATH, &other)).await;
    let request = harness.mock.recorder().request(1).expect("recorded");
    assert_eq!(request.body, other.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_credential_is_another_request() {
    for name in ["authorization", "x-api-key", "api-key", "x-goog-api-key"] {
        let harness = start().await;
        lost(&harness, &harness.client.with(name, "a")).await;
        assert_is_new(&harness, harness.client.with(name, "b").chat()).await;
        assert_is_new(&harness, harness.client.chat()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_idempotency_key_is_another_request() {
    let harness = start().await;
    lost(&harness, &harness.client.with("idempotency-key", "a")).await;
    assert_is_new(&harness, harness.client.with("idempotency-key", "b").chat()).await;
}

/// Sends the same request from another address of this machine.
async fn from_elsewhere(client: &Client) -> Response {
    let socket = TcpSocket::new_v4().expect("a socket");
    let address = "127.0.0.9:0".parse().expect("an address");
    socket.bind(address).expect("loopback is wide");
    let mut stream = socket.connect(client.addr).await.expect("connects");
    let request = client.request("POST", PATH, CHAT);
    stream.write_all(&request).await.expect("is sent");
    patience(Response::read(stream)).await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_the_peer_has_to_be_the_same() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    assert_is_new(&harness, from_elsewhere(&harness.client)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_credential_the_peer_does_not_matter() {
    let harness = start().await;
    let client = harness.client.with("authorization", "Bearer a");
    lost(&harness, &client).await;
    assert_joins(&harness, from_elsewhere(&client)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_has_begun_to_be_read_is_not_joined() {
    let harness = Harness::start(Script::tokens(20).gate_after(1, "head")).await;
    let mut response = harness.client.chat().await;
    let id = response.id();
    response.body.blocks(1).await;
    response.leave().await;
    wait_state(&harness.client, &id, |state| state["readers"] == 0).await;
    // It still runs, and could be joined.
    let again = harness.client.chat().await;
    assert_ne!(again.id(), id);
    assert_eq!(harness.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_joined_and_read_is_not_joined_again() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    assert_joins(&harness, harness.client.chat()).await;
    assert_is_new(&harness, harness.client.chat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_try_is_never_a_repeat() {
    let harness = start().await;
    lost(&harness, &harness.client).await;
    let client = harness.client.with("x-stainless-retry-count", "0");
    assert_is_new(&harness, client.chat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_first_client_waits_a_second_one_asks_for_itself() {
    let harness = start().await;
    let waiting = first(&harness, &harness.client).await;
    assert_is_new(&harness, harness.client.chat()).await;
    drop(waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_it_repeats_joins_though_its_first_self_seems_to_wait() {
    let harness = headed().await;
    let waiting = harness.client.chat().await;
    let client = harness.client.with("x-stainless-retry-count", "1");
    let repeat = client.chat().await;
    assert_eq!(repeat.id(), waiting.id());
    assert_joins(&harness, std::future::ready(repeat)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_window_a_repeat_is_a_new_request() {
    let window = |config: &mut Config| config.generation.retry_join = Duration::from_millis(100);
    let harness = start_with(window).await;
    lost(&harness, &harness.client).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_is_new(&harness, harness.client.chat()).await;

    let harness = start_with(window).await;
    let waiting = first(&harness, &harness.client).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let client = harness.client.with("x-stainless-retry-count", "1");
    assert_is_new(&harness, client.chat()).await;
    drop(waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_failed_is_not_joined() {
    let script = Script::tokens(20).head_gate("head").error_after(3);
    let harness = Harness::start(script).await;
    lost(&harness, &harness.client).await;
    harness.mock.gates().release("head");
    harness.mock.recorder().wait_closed(0).await.expect("ends");
    let failed = async {
        loop {
            let list = harness.admin.get("/admin/streams?status=error").await;
            if let Some(one) = list.json().await["data"].get(0) {
                return one["stream_id"].as_str().expect("an id").to_owned();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let id = patience(failed).await;
    wait_end(&harness.client, &id).await;
    harness.mock.set_script(Script::tokens(20));
    assert_is_new(&harness, harness.client.chat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_stream_is_not_joined() {
    let harness = start().await;
    harness
        .mock
        .push_script(Script::error(503).head_gate("head"));
    lost(&harness, &harness.client).await;
    let count = harness.mock.recorder().count();
    let request = harness.client.request("POST", PATH, CHAT);
    // It waits for what becomes of the first, and is sent when nothing does.
    let stream = harness.client.begin(&request).await;
    harness.mock.gates().release("head");
    let response = patience(Response::read(stream)).await.expect("an answer");
    whole(response).await;
    assert_eq!(harness.mock.recorder().count(), count + 1);
    let request = harness.mock.recorder().request(count).expect("recorded");
    assert_eq!(request.body, CHAT.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_to_compare_is_a_new_request_and_arrives_whole() {
    let harness = start_with(|config| config.edge.max_kept_body = CHAT.len() - 1).await;
    lost(&harness, &harness.client).await;
    assert_is_new(&harness, harness.client.chat()).await;
    let request = harness.mock.recorder().request(1).expect("recorded");
    assert_eq!(request.body, CHAT.as_bytes());

    let harness = start_with(|config| config.edge.max_kept_body = CHAT.len()).await;
    lost(&harness, &harness.client).await;
    assert_joins(&harness, harness.client.chat()).await;
}
