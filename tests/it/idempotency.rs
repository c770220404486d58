//! The same key meets the same generation (protocol.md 9.1).

use std::sync::Arc;
use std::time::Duration;

use streamweld_journal::faulty::{Fault, Faulty, Op};
use streamweld_journal::{Memory, Refusal};
use streamweld_mock::{Outcome, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Response, Setup, events, leave, metric, patience, wait_end,
};
use tokio::net::TcpStream;

const PATH: &str = "/v1/chat/completions";
const KEY: &str = "idempotency-key";

async fn whole(response: Response) -> Vec<u8> {
    assert_eq!(response.status, 200);
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    body
}

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

/// A use of the key whose stream shows only with its head: nothing of the request says that there will be one, so the
/// log is not opened before. Nothing of the answer is read yet.
async fn begin_generic(client: &Client) -> TcpStream {
    let client = client.with(KEY, "k");
    client
        .begin(&client.request("POST", "/generic", "{}"))
        .await
}

async fn answer(stream: TcpStream) -> (String, Vec<u8>) {
    let response = patience(Response::read(stream)).await.expect("an answer");
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    (id, body)
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

async fn assert_refused(client: &Client, code: &str) {
    let answer = client.chat().await.error_code().await;
    assert_eq!(answer, (400, code.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_different_keys_are_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    let ours = "x-streamweld-idempotency-key";
    let client = &harness.client;
    for client in [
        client.with(KEY, "a").with(ours, "b"),
        client.with(KEY, "a").with(KEY, "b"),
        client.with(ours, "a").with(ours, "b"),
    ] {
        assert_refused(&client, "idempotency_conflict").await;
    }
    assert_eq!(harness.mock.recorder().count(), 0);
    let same = client.with(KEY, "a").with(ours, "a");
    whole(same.chat().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_that_are_no_key_are_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    for bad in ["", "a b", "a\tb", "é", &"k".repeat(256)] {
        let client = harness.client.with(KEY, bad);
        assert_refused(&client, "invalid_idempotency_key").await;
    }
    assert_eq!(harness.mock.recorder().count(), 0);
    for good in ["!", "~", "\"a\"", &"k".repeat(255)] {
        let client = harness.client.with(KEY, good);
        whole(client.chat().await).await;
    }
}

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
async fn a_key_is_the_callers_own() {
    let harness = Harness::start(Script::tokens(20)).await;
    let client = harness.client.with(KEY, "k");
    let mut ids = Vec::new();
    for client in [
        client.clone(),
        client.with("authorization", "Bearer a"),
        client.with("authorization", "Bearer b"),
        client.with("x-api-key", "Bearer a"),
    ] {
        let other = CHAT.replace("hi", &format!("{}", ids.len()));
        let response = client.send("POST", PATH, &other).await;
        ids.push(response.id());
        whole(response).await;
    }
    ids.dedup();
    assert_eq!(ids.len(), 4);
    assert_eq!(harness.mock.recorder().count(), 4);
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
async fn the_key_is_forwarded_and_what_is_ours_is_not() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = harness
        .client
        .with(KEY, "k")
        .with("X-Streamweld-Idempotency-Key", "k")
        .with("X-Streamweld-Events", "control")
        .with("X-Streamweld-Orphan-Policy", "cancel")
        .with("X-Streamweld-Anything", "x");
    client.chat().await.all().await;
    let request = harness.mock.recorder().request(0).expect("recorded");
    assert_eq!(request.header(KEY), Some("k"));
    let ours = request
        .headers
        .iter()
        .filter(|(name, _)| name.to_ascii_lowercase().starts_with("x-streamweld"));
    assert_eq!(ours.count(), 0, "{:?}", request.headers);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_get_has_no_key() {
    let setup = Setup::new(Script::tokens(3))
        .config(|config| config.generation.durable_get = vec!["/feed".to_owned()]);
    let harness = setup.start().await;
    let client = harness.client.with(KEY, "not a key");
    for _ in 0..2 {
        let response = client.get("/feed").await;
        assert_eq!(response.status, 200);
        response.all().await;
    }
    assert_eq!(harness.mock.recorder().count(), 2);
}
