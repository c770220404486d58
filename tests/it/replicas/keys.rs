//! Idempotency keys that are used on both.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_server::Config;
use streamweld_tests::{CHAT, Client, End, Over, Pair, Response, patience, wait_end};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{PATH, answer, begin, gated};

over_both! {
    one_key_on_both_at_once_is_one_request
    a_use_at_the_other_replica_waits_for_the_first_event
    a_use_at_the_other_replica_is_dispatched_when_the_key_is_free
    the_key_is_free_at_the_other_replica_while_the_answer_is_degraded
    another_body_is_refused_at_the_other_replica_too
    a_use_that_waits_is_refused_when_its_replica_shuts_down
}

const KEY: &str = "idempotency-key";

/// A use of the key at this replica, whose answer is left to come.
async fn used(client: &Client, path: &str, body: &str) -> TcpStream {
    let client = client.with(KEY, "k");
    client.begin(&client.request("POST", path, body)).await
}

/// The same, once the server has it: a busy one may not have read a request that was just sent.
async fn taken(client: &Client, path: &str, body: &str) -> TcpStream {
    let client = client.with(KEY, "k").with("expect", "100-continue");
    let request = client.request("POST", path, body);
    let head = request.len() - body.len();
    let mut stream = client.begin(&request[..head]).await;
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    let read = patience(stream.read_exact(&mut go_on)).await;
    read.expect("it is taken");
    stream.write_all(&request[head..]).await.expect("sent");
    stream
}

/// Nothing has been answered for longer than it takes to look.
async fn assert_waits(stream: &TcpStream) {
    let mut byte = [0];
    let peeked = timeout(Duration::from_millis(250), stream.peek(&mut byte)).await;
    assert!(peeked.is_err(), "it was answered");
}

async fn one_key_on_both_at_once_is_one_request(over: Over) {
    for path in [PATH, "/generic"] {
        let pair = Pair::start(over, Script::tokens(100).head_gate("head")).await;
        let mut uses = Vec::new();
        for turn in 0..40 {
            let client = [&pair.one.client, &pair.other.client][turn % 2];
            uses.push(used(client, path, CHAT).await);
        }
        pair.mock.recorder().wait_requests(1).await.expect("one");
        assert_waits(&uses[0]).await;
        assert_waits(&uses[1]).await;
        pair.mock.gates().release("head");
        let mut answers = Vec::new();
        for used in uses {
            answers.push(answer(used).await);
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(pair.mock.recorder().count(), 1);
        // And later, when it is over.
        for client in [&pair.one.client, &pair.other.client] {
            let later = answer(used(client, path, CHAT).await).await;
            assert_eq!(later, answers[0]);
        }
        assert_eq!(pair.mock.recorder().count(), 1);
    }
}

async fn a_use_at_the_other_replica_waits_for_the_first_event(over: Over) {
    let pair = Pair::start(over, Script::tokens(20).gate_after(0, "first")).await;
    let first = used(&pair.one.client, PATH, CHAT).await;
    let first = patience(Response::read(first)).await.expect("a head");
    let second = used(&pair.other.client, PATH, CHAT).await;
    assert_waits(&second).await;
    pair.mock.gates().release("first");
    assert_eq!(answer(second).await, (first.id(), first.all().await.0));
    assert_eq!(pair.mock.recorder().count(), 1);
}

async fn a_use_at_the_other_replica_is_dispatched_when_the_key_is_free(over: Over) {
    for path in [PATH, "/generic"] {
        let pair = Pair::start(over, Script::tokens(20)).await;
        pair.mock.push_script(Script::error(503).head_gate("head"));
        let first = used(&pair.one.client, path, CHAT).await;
        pair.mock.recorder().wait_requests(1).await.expect("sent");
        let second = used(&pair.other.client, path, CHAT).await;
        assert_waits(&second).await;
        assert_eq!(pair.mock.recorder().count(), 1);
        pair.mock.gates().release("head");
        let first = patience(Response::read(first)).await.expect("an answer");
        assert_eq!(first.status, 503);
        answer(second).await;
        let request = pair.mock.recorder().request(1).expect("recorded");
        assert_eq!(request.body, CHAT.as_bytes());
    }
}

async fn the_key_is_free_at_the_other_replica_while_the_answer_is_degraded(over: Over) {
    // No log gets room in this one.
    let change = |config: &mut Config| config.journal.total = 1;
    let pair = Pair::with(over, gated(20, 3), change).await;
    let mut uses = Vec::new();
    for client in [&pair.one.client, &pair.other.client] {
        let response = patience(Response::read(used(client, PATH, CHAT).await)).await;
        let response = response.expect("a head");
        assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
        uses.push(response);
    }
    pair.mock.gates().release("go");
    for response in uses {
        assert_eq!(response.all().await.1, End::Proper);
    }
    assert_eq!(pair.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_owner_died_frees_the_key() {
    const CLAIM: Duration = Duration::from_secs(1);
    let change = |config: &mut Config| config.journal.claim = CLAIM;
    let pair = Pair::with(Over::Link, Script::tokens(20), change).await;
    pair.mock.push_script(Script::tokens(20).head_gate("head"));
    let _first = used(&pair.one.client, "/generic", CHAT).await;
    pair.mock.recorder().wait_requests(1).await.expect("sent");
    let second = used(&pair.other.client, "/generic", CHAT).await;
    // While it is renewed it stands, however long that is.
    sleep(CLAIM * 3 / 2).await;
    assert_eq!(pair.mock.recorder().count(), 1);
    pair.link().out_of_reach(0, true);
    answer(second).await;
    assert_eq!(pair.mock.recorder().count(), 2);
}

async fn another_body_is_refused_at_the_other_replica_too(over: Over) {
    let pair = Pair::start(over, gated(40, 10)).await;
    let mine = pair.one.client.with(KEY, "k");
    let (id, first) = begin(&pair, &mine, 10).await;
    let theirs = pair.other.client.with(KEY, "k");
    let refused = (422, "idempotency_key_reused".to_owned());
    let body = CHAT.replace("hi", "ho");
    let answered = theirs.send("POST", PATH, &body).await;
    assert_eq!(answered.error_code().await, refused);
    pair.mock.gates().release("go");
    first.all().await;
    wait_end(&pair.one.client, &id).await;
    let answered = theirs.send("POST", PATH, &body).await;
    assert_eq!(answered.error_code().await, refused);
    assert_eq!(theirs.chat().await.id(), id);
    assert_eq!(pair.mock.recorder().count(), 1);
}

async fn a_use_that_waits_is_refused_when_its_replica_shuts_down(over: Over) {
    let mut pair = Pair::start(over, Script::tokens(20).head_gate("head")).await;
    let first = used(&pair.one.client, "/generic", CHAT).await;
    pair.mock.recorder().wait_requests(1).await.expect("sent");
    let second = taken(&pair.other.client, "/generic", CHAT).await;
    assert_waits(&second).await;
    pair.other.begin_shutdown();
    let second = patience(Response::read(second)).await.expect("an answer");
    let refused = (503, "shutting_down".to_owned());
    assert_eq!(second.error_code().await, refused);
    pair.mock.gates().release("head");
    answer(first).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_answer_lost_its_owner_says_so() {
    let pair = Pair::start(Over::Link, gated(40, 10)).await;
    let mine = pair.one.client.with(KEY, "k");
    let (_id, _first) = begin(&pair, &mine, 10).await;
    pair.link().lose(0);
    let refused = (503, "owner_lost".to_owned());
    let answered = pair.other.client.with(KEY, "k").chat().await;
    assert_eq!(answered.error_code().await, refused);
    assert_eq!(pair.mock.recorder().count(), 1);
}
