//! A server that is not there: inference goes on, and whoever resumes is held and then told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use streamweld_mock::Script;
use streamweld_tests::{
    CHAT, Client, End, Pair, PairSetup, Response, Way, blocks, ends, events, metric, patience,
    wait_end,
};
use tokio::net::TcpListener;

use super::{
    AT_ONCE, PATH, Reading, assert_all, assert_let_go, assert_no_ids, in_three, patient, setup,
    whole, with_a_file,
};

const HOLD: Duration = Duration::from_millis(400);

fn start() -> PairSetup {
    let script = Script::tokens(20).id("fixed");
    patient(setup(script), AT_ONCE)
}

/// Asks the model and is answered, without a log.
async fn ask(client: &Client) {
    let response = client.chat().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_no_ids(&blocks(&body));
    assert_eq!(events(&body).len(), 23);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_can_be_asked_while_redis_is_away() {
    const ASKED: usize = 200;
    let mut pair = start().start().await;
    let address = pair.redis().address();
    pair.redis().kill();
    // Something else is in its place, that counts who comes.
    let listener = TcpListener::bind(&address).await.expect("its port is free");
    let came = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&came);
    let counting = tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counts.fetch_add(1, Ordering::Relaxed);
        }
    });
    for turn in 0..ASKED {
        let client = [&pair.one.client, &pair.other.client][turn % 2];
        match turn % 10 {
            9 => ask(&client.with("idempotency-key", &format!("k{turn}"))).await,
            _ => ask(client).await,
        }
    }
    counting.abort();
    _ = counting.await;
    assert_eq!(pair.mock.recorder().count(), ASKED);
    let came = came.load(Ordering::Relaxed);
    assert!(came < ASKED / 2, "{came} connections for {ASKED} requests");
    // Nobody has to be restarted.
    pair.redis().restart().await;
    for client in [&pair.one.client, &pair.other.client] {
        durable_again(client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_can_be_asked_while_redis_says_nothing() {
    let mut pair = start().start().await;
    pair.redis().pause();
    for client in [&pair.one.client, &pair.other.client] {
        let asked = Instant::now();
        ask(client).await;
        ask(&client.with("idempotency-key", "k")).await;
        assert!(asked.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(pair.mock.recorder().count(), 4);
    pair.redis().resume();
    for client in [&pair.one.client, &pair.other.client] {
        durable_again(client).await;
    }
    // What was on its way has left nothing that could be found.
    let started =
        r#"streamweld_generations_started_total{dialect="openai_chat",durability="degraded"}"#;
    assert!(metric(&pair.one.admin, started).await >= 2);
}

async fn durable_again(client: &Client) {
    let durable = async {
        loop {
            let response = client.chat().await;
            let durability = response
                .header("x-streamweld-durability")
                .map(str::to_owned);
            assert_eq!(response.all().await.1, End::Proper);
            if durability.as_deref() == Some("durable; level=async") {
                return;
            }
        }
    };
    patience(durable).await;
}

/// Begins an answer, which ends and is committed. Gives its id.
async fn ended(pair: &Pair) -> String {
    let response = pair.one.client.chat().await;
    let id = response.id();
    assert_eq!(response.all().await.1, End::Proper);
    wait_end(&pair.one.client, &id).await;
    id
}

fn kept(hold: Duration) -> PairSetup {
    start()
        .server(with_a_file())
        .config(move |config| config.edge.hold = hold)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_is_held_while_redis_is_away_and_then_told() {
    let mut pair = kept(HOLD).start().await;
    let id = ended(&pair).await;
    let cursor = format!("{id}:4");
    let refused = (503, "journal_unavailable".to_owned());
    for silent in [false, true] {
        if silent {
            pair.redis().pause();
        } else {
            pair.redis().kill();
        }
        for client in [&pair.one.client, &pair.other.client] {
            // What a replica still has in memory goes in a moment.
            let gone = async { while client.events(&id).await.status == 200 {} };
            patience(gone).await;
            for way in Way::ALL {
                let asked = Instant::now();
                let response = way.resume(client, &cursor, (PATH, CHAT)).await;
                assert_eq!(response.header("retry-after"), Some("1"));
                assert_eq!(response.error_code().await, refused);
                assert!(asked.elapsed() >= HOLD / 2, "it was held");
            }
        }
        if !silent {
            pair.redis().restart().await;
        }
    }
    pair.redis().resume();
    assert_eq!(pair.mock.recorder().count(), 1, "a resume asks no model");
    // It is all there as soon as Redis is.
    let back = async {
        loop {
            let response = pair.other.client.events(&id).await;
            if response.status == 200 {
                return response.all().await;
            }
        }
    };
    let expected = whole(&Script::tokens(20).id("fixed"), &id);
    assert!(patience(back).await == (expected, End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_that_is_held_is_served_when_redis_is_back() {
    let mut pair = kept(Duration::from_secs(30)).start().await;
    let id = ended(&pair).await;
    let expected = whole(&Script::tokens(20).id("fixed"), &id);
    pair.redis().kill();
    let mut held = Vec::new();
    for client in [&pair.one.client, &pair.other.client] {
        let client = client.with("last-event-id", &format!("{id}:4"));
        let request = client.request("GET", &format!("/v1/streams/{id}/events"), "");
        held.push(client.begin(&request).await);
    }
    pair.redis().restart().await;
    for stream in held {
        let response = patience(Response::read(stream)).await.expect("an answer");
        assert_eq!(response.status, 200);
        assert!(response.all().await.0 == expected[ends(&expected)[2]..]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_serves_what_it_writes_while_redis_is_away() {
    let script = in_three(20);
    let mut pair = kept(HOLD).start().await;
    pair.mock.set_script(script.clone());
    let first = Reading::begin(pair.one.client.chat().await, 20).await;
    let id = first.response.id();
    streamweld_tests::wait_seq(&pair.one.client, &id, 21).await;
    pair.redis().kill();
    let mut late = Reading::begin(pair.one.client.events(&id).await, 20).await;
    let expected = whole(&script, &id);
    assert!(expected.starts_with(&late.held));
    let refused = (503, "journal_unavailable".to_owned());
    assert_eq!(
        pair.other.client.events(&id).await.error_code().await,
        refused
    );
    pair.mock.gates().release("go");
    assert_no_ids(&late.more(20).await);
    pair.mock.gates().release("end");
    for reading in [first, late] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &expected);
    }
    pair.redis().restart().await;
    wait_end(&pair.one.client, &id).await;
    super::assert_stands(&pair, &id, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_the_owner_is_in_force_while_redis_is_away_and_says_so_in_time() {
    let script = in_three(20);
    for silent in [false, true] {
        let mut pair = kept(HOLD).start().await;
        pair.mock.set_script(script.clone());
        let first = Reading::begin(pair.one.client.chat().await, 20).await;
        let id = first.response.id();
        streamweld_tests::wait_seq(&pair.one.client, &id, 21).await;
        if silent {
            pair.redis().pause();
        } else {
            pair.redis().kill();
        }
        let stop = format!("/v1/streams/{id}/stop");
        let refused = (503, "journal_unavailable".to_owned());
        for _ in 0..2 {
            let answer = patience(pair.one.client.send("POST", &stop, "")).await;
            assert_eq!(answer.header("retry-after"), Some("1"));
            assert_eq!(answer.error_code().await, refused);
        }
        // It waits for nothing that a stop is for.
        assert_let_go(&pair).await;
        let (body, end) = first.rest().await;
        assert_eq!(end, End::Proper);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
        if silent {
            pair.redis().resume();
        } else {
            pair.redis().restart().await;
        }
        for client in [&pair.one.client, &pair.other.client] {
            let stopped = async {
                loop {
                    let answer = client.send("POST", &stop, "").await;
                    if answer.status != 503 {
                        return answer;
                    }
                }
            };
            let stopped = patience(stopped).await.json().await;
            assert_eq!(stopped["status"], "stopped");
        }
    }
}
