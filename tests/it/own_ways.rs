//! Resuming in the dialect's own way (protocol.md 6.1, 6.8): by the number that an event of a response has, and by the
//! count of events that were seen, for clients that know nothing of ids of ours.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use streamweld_generation::OrphanPolicy;
use streamweld_journal::Memory;
use streamweld_journal::faulty::{Faulty, Op};
use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Over, Pair, Response, Setup, ask, blocks, ends, numbered, patience,
    question, state, wait_end, wait_seq,
};
use tokio::time::timeout;

const RESPONSES: Dialect = Dialect::OpenAiResponses;
/// Long enough to be a secret of its own.
const NAME: &str = "resp_0123456789abcdef0123456789abcdef";

fn script() -> Script {
    Script::text("Good morning to you").id(NAME)
}

fn events(script: &Script, dialect: Dialect) -> Vec<Bytes> {
    script.expected(&Ask::read(dialect, CHAT.as_bytes(), 1))
}

async fn respond(client: &Client) -> Response {
    client.send("POST", RESPONSES.path(), CHAT).await
}

/// What the SDKs of OpenAI send.
async fn retrieve(client: &Client, after: impl std::fmt::Display) -> Response {
    let target = format!("/v1/responses/{NAME}?stream=true&starting_after={after}");
    client.get(&target).await
}

/// An answer of the backend, whose word it is that there is no such response.
async fn assert_the_backends(harness: &Harness, answer: Response) {
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("x-streamweld-stream-id"), None);
    let error = answer.json().await;
    assert_ne!(error["error"]["type"], "streamweld_error");
    let last = harness.mock.recorder().count() - 1;
    let request = harness.mock.recorder().request(last).expect("it came");
    assert_eq!(request.method, "GET");
}

fn short_hold(harness: Setup) -> Setup {
    harness.config(|config| config.edge.hold = Duration::from_millis(200))
}

#[track_caller]
fn number(data: Option<String>) -> Value {
    let data: Value = serde_json::from_str(&data.expect("data")).expect("JSON");
    data["sequence_number"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_number_of_a_response_gives_the_rest() {
    let harness = Harness::start(script()).await;
    let first = respond(&harness.client).await;
    let id = first.id();
    let (all, _) = first.all().await;
    assert_eq!(all, numbered(&id, &events(&script(), RESPONSES)));
    let ends = ends(&all);
    for (number, end) in ends.iter().enumerate() {
        let rest = retrieve(&harness.client, number).await;
        assert_eq!(rest.status, 200, "behind {number}");
        assert_eq!(rest.id(), id);
        assert_eq!(rest.header("content-type"), Some("text/event-stream"));
        assert_eq!(rest.all().await, (all[*end..].to_vec(), End::Proper));
    }
    let start = format!("/v1/responses/{NAME}?stream=true");
    assert_eq!(
        harness.client.get(&start).await.all().await,
        (all, End::Proper)
    );
    let beyond = retrieve(&harness.client, ends.len()).await;
    assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_response_is_joined_behind_every_number() {
    let script = script().gate_after(6, "go");
    let harness = Harness::start(script.clone()).await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 7).await;
    let mut joined = Vec::new();
    for number in 0..6 {
        joined.push(retrieve(&harness.client, number).await);
    }
    harness.mock.gates().release("go");
    let (all, _) = first.all().await;
    assert_eq!(all, numbered(&id, &events(&script, RESPONSES)));
    for (rest, end) in joined.into_iter().zip(ends(&all)) {
        assert_eq!(rest.all().await, (all[end..].to_vec(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_ahead_is_waited_for() {
    let script = script().gate_after(6, "go");
    let harness = Harness::start(script.clone()).await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 7).await;
    let mut ahead = Box::pin(retrieve(&harness.client, 7));
    let early = timeout(Duration::from_millis(100), &mut ahead).await;
    assert!(early.is_err(), "there is nothing to answer yet");
    harness.mock.gates().release("go");
    let (all, _) = first.all().await;
    let rest = ahead.await.all().await;
    assert_eq!(rest, (all[ends(&all)[7]..].to_vec(), End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_does_not_come_is_ahead() {
    let harness = short_hold(Setup::new(script().stall_after(6)))
        .start()
        .await;
    let first = respond(&harness.client).await;
    wait_seq(&harness.client, &first.id(), 7).await;
    let ahead = retrieve(&harness.client, 6).await;
    assert_eq!(ahead.error_code().await, (409, "cursor_ahead".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_number_is_refused() {
    let harness = Harness::start(script()).await;
    respond(&harness.client).await.all().await;
    for bad in ["", "-1", "x", "1.0", "99999999999999999999"] {
        let refused = retrieve(&harness.client, bad).await;
        let expected = (400, "invalid_parameter".to_owned());
        assert_eq!(refused.error_code().await, expected, "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_the_backends() {
    let harness = Harness::start(script()).await;
    let maker = harness.client.with("authorization", "Bearer a");
    respond(&maker).await.all().await;
    assert_eq!(retrieve(&maker, 0).await.status, 200);
    let stranger = harness.client.with("authorization", "Bearer b");
    for other in [stranger, harness.client.clone()] {
        assert_the_backends(&harness, retrieve(&other, 0).await).await;
    }
    for target in [
        format!("/v1/responses/{NAME}"),
        format!("/v1/responses/{NAME}?stream=false"),
        format!("/v1/responses/{NAME}/input_items?stream=true"),
        format!("/v2/responses/{NAME}?stream=true"),
        "/v1/responses/resp_other?stream=true".to_owned(),
        "/v1/responses/?stream=true".to_owned(),
    ] {
        assert_the_backends(&harness, maker.get(&target).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_runs_here_is_known_whatever_the_journal_says() {
    let journal = Faulty::new(Memory::default());
    let held = journal.faults().hold(Op::Claim);
    let script = script().gate_after(6, "go");
    let setup = Setup::new(script.clone()).journal(Arc::new(journal));
    let harness = setup.start().await;
    let mut first = respond(&harness.client).await;
    let id = first.id();
    first.body.blocks(6).await;
    wait_seq(&harness.client, &id, 7).await;
    let rest = retrieve(&harness.client, 2).await;
    assert_eq!((rest.status, rest.id()), (200, id.clone()));
    harness.mock.gates().release("go");
    let all = numbered(&id, &events(&script, RESPONSES));
    let from = ends(&all)[2];
    assert_eq!(rest.all().await, (all[from..].to_vec(), End::Proper));
    assert_eq!(harness.mock.recorder().count(), 1);
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_path_has_to_encode_is_found() {
    let script = Script::text("Hello").id("resp /?#% ü_0123456789abcdef0123456789abcdef");
    let harness = Harness::start(script).await;
    let all = respond(&harness.client).await.all().await;
    let name = "resp%20%2F%3F%23%25%20%C3%BC_0123456789abcdef0123456789abcdef";
    let target = format!("/v1/responses/{name}?stream=true");
    assert_eq!(harness.client.get(&target).await.all().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_a_short_id_is_no_secret() {
    let short = Script::text("Hello").id("resp_7");
    let harness = Harness::start(short.clone()).await;
    respond(&harness.client).await.all().await;
    let target = "/v1/responses/resp_7?stream=true";
    assert_the_backends(&harness, harness.client.get(target).await).await;
    harness.mock.push_script(short);
    let maker = harness.client.with("authorization", "Bearer a");
    let all = respond(&maker).await.all().await;
    assert_eq!(maker.get(target).await.all().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_responses_of_one_name_the_newer_is_meant() {
    let harness = Harness::start(script()).await;
    let mut older = respond(&harness.client).await;
    older.body.blocks(1).await;
    assert_eq!(retrieve(&harness.client, 0).await.id(), older.id());
    older.all().await;
    let newer = respond(&harness.client).await;
    let id = newer.id();
    newer.all().await;
    assert_eq!(retrieve(&harness.client, 0).await.id(), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_failed_fails_again() {
    let script = script().fin_after(6);
    let harness = Harness::start(script.clone()).await;
    let (all, end) = respond(&harness.client).await.all().await;
    assert_eq!(end, End::Fin);
    let ends = ends(&all);
    assert_eq!(ends.len(), 7, "six events and the form");
    for (number, end) in ends[..6].iter().enumerate() {
        let rest = retrieve(&harness.client, number).await.all().await;
        assert_eq!(rest, (all[*end..].to_vec(), End::Fin));
    }
    // The form itself has a number too. Whoever saw it is not to take what comes now for a success.
    let again = retrieve(&harness.client, 6).await.all().await;
    assert_eq!(again, (all[ends[5]..].to_vec(), End::Fin));
    let beyond = retrieve(&harness.client, 7).await;
    assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_was_stopped_ends_with_the_number_of_its_form() {
    let harness = Harness::start(script().stall_after(6)).await;
    let mut first = respond(&harness.client).await;
    let stop = format!("/v1/streams/{}/stop", first.id());
    first.body.blocks(6).await;
    harness.client.send("POST", &stop, "").await.json().await;
    let (form, _) = first.body.rest().await;
    assert_eq!(blocks(&form).len(), 1);
    let rest = retrieve(&harness.client, 5).await.all().await;
    assert_eq!(rest, (form, End::Proper));
    let nothing = retrieve(&harness.client, 6).await;
    assert_eq!(nothing.status, 200);
    assert_eq!(nothing.all().await, (Vec::new(), End::Proper));
    let beyond = retrieve(&harness.client, 7).await;
    assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn keepalives_count_and_what_has_no_number_is_shown_again() {
    let script = script()
        .block_after(5, "event: x\ndata: {\"type\":\"x\"}\n\n")
        .block_after(
            8,
            "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":8}\n\n",
        )
        .fin_after(8);
    let harness = Harness::start(script).await;
    let (all, _) = respond(&harness.client).await.all().await;
    let ends = ends(&all);
    // 0 to 4, the one without, 5 to 7, the keepalive and the form.
    assert_eq!(ends.len(), 11);
    for (number, block) in [(4, 4), (5, 6), (7, 8), (8, 9)] {
        let (rest, _) = retrieve(&harness.client, number).await.all().await;
        assert_eq!(rest, all[ends[block]..], "behind {number}");
    }
    let form = blocks(&all).pop().expect("the form");
    assert_eq!(number(form.data), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_do_not_count_on_have_no_places() {
    for again in ["", ",\"sequence_number\":0"] {
        let created = format!(
            "event: response.created\ndata: {{\"type\":\"response.created\"{again},\"response\":{{\"id\":\"{NAME}\"}}}}\n\n"
        );
        let delta = format!("event: x\ndata: {{\"type\":\"x\"{again}}}\n\n");
        let done = format!(
            "event: response.completed\ndata: {{\"type\":\"response.completed\"{again},\"response\":{{\"status\":\"completed\"}}}}\n\n"
        );
        let raw = streamweld_mock::Raw::new().stream_head();
        let raw = [created, delta, done]
            .into_iter()
            .fold(raw, |raw, event| raw.chunk(event));
        let harness = Harness::start(Script::raw(raw.last_chunk())).await;
        let all = respond(&harness.client).await.all().await;
        assert_eq!(blocks(&all.0).len(), 3);
        let refused = retrieve(&harness.client, 1).await;
        let expected = (400, "invalid_parameter".to_owned());
        assert_eq!(refused.error_code().await, expected, "{again:?}");
        let start = format!("/v1/responses/{NAME}?stream=true");
        assert_eq!(harness.client.get(&start).await.all().await, all);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_have_left_the_ring_are_told() {
    let script = Script::tokens(400).id(NAME);
    let script = script.gate_after(1, "named").gate_after(300, "go");
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 16 << 10)
        .start()
        .await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 2).await;
    assert_eq!(retrieve(&harness.client, 0).await.status, 200);
    harness.mock.gates().release("named");
    wait_seq(&harness.client, &id, 301).await;
    let earliest = state(&harness.client, &id).await["earliest_seq"].clone();
    let earliest = earliest.as_u64().expect("a number");
    assert!(earliest > 10, "the ring has turned");
    // Entry 2 has number 0.
    let kept = earliest - 2;
    for number in [0, kept - 2] {
        let gone = retrieve(&harness.client, number).await;
        assert_eq!(gone.error_code().await, (410, "cursor_expired".to_owned()));
    }
    for number in [kept - 1, kept, 297] {
        let mut rest = retrieve(&harness.client, number).await;
        assert_eq!(rest.status, 200, "behind {number}");
        let next = blocks(&rest.body.blocks(1).await).remove(0);
        assert_eq!(self::number(next.data), number + 1);
    }
    // What cannot be counted from its beginning cannot be counted.
    let counted = format!("/v1/streams/{id}/events?after_events=280");
    let gone = harness.client.get(&counted).await;
    assert_eq!(gone.error_code().await, (410, "cursor_expired".to_owned()));
    harness.mock.gates().release("go");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_response_is_the_backends() {
    let harness = Setup::new(script())
        .config(|config| config.journal.retention = Duration::from_secs(1))
        .start()
        .await;
    respond(&harness.client).await.all().await;
    assert_eq!(retrieve(&harness.client, 0).await.status, 200);
    let expired = async {
        while retrieve(&harness.client, 0).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    patience(expired).await;
    assert_the_backends(&harness, retrieve(&harness.client, 0).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_by_number_keeps_a_cancel_away_like_any_other() {
    let harness = Setup::new(script().gate_after(6, "go"))
        .config(|config| {
            config.generation.orphan_policy = OrphanPolicy::CancelAfter(Duration::from_secs(1));
        })
        .start()
        .await;
    let first = respond(&harness.client).await;
    let id = first.id();
    wait_seq(&harness.client, &id, 7).await;
    let rest = retrieve(&harness.client, 0).await;
    first.leave().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    harness.mock.gates().release("go");
    let (rest, end) = rest.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest).len(), events(&script(), RESPONSES).len() - 1);
}

async fn another_replica_resumes_a_response(over: Over) {
    let script = script().gate_after(6, "go");
    let pair = Pair::start(over, script.clone()).await;
    let first = respond(&pair.one.client).await;
    let id = first.id();
    wait_seq(&pair.other.client, &id, 7).await;
    // Its name is told a moment after its first event.
    let found = async {
        loop {
            let rest = retrieve(&pair.other.client, 3).await;
            if rest.status == 200 {
                return rest;
            }
        }
    };
    let running = patience(found).await;
    pair.mock.gates().release("go");
    let (all, _) = first.all().await;
    assert_eq!(all, numbered(&id, &events(&script, RESPONSES)));
    let ends = ends(&all);
    assert_eq!(running.all().await, (all[ends[3]..].to_vec(), End::Proper));
    wait_end(&pair.other.client, &id).await;
    for client in pair.clients() {
        for (number, end) in ends.iter().enumerate() {
            let rest = retrieve(&client, number).await.all().await;
            assert_eq!(rest, (all[*end..].to_vec(), End::Proper));
            let counted = format!("/v1/streams/{id}/events?after_events={}", number + 1);
            let counted = client.get(&counted).await;
            assert_eq!(counted.status, if *end == all.len() { 204 } else { 200 });
            assert_eq!(counted.all().await.0, all[*end..]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_linked_replica_resumes_a_response() {
    another_replica_resumes_a_response(Over::Link).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_of_one_redis_resumes_a_response() {
    another_replica_resumes_a_response(Over::Redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_count_of_events_gives_the_rest_in_the_form_that_its_client_reads() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(script()).await;
        let response = harness
            .client
            .send("POST", dialect.path(), &question())
            .await;
        let id = response.id();
        let (native, _) = response.all().await;
        let (ids, _) = harness.client.events(&id).await.all().await;
        // Of Gemini the two forms differ.
        assert_eq!(native == ids, dialect != Dialect::Gemini);
        let (native_ends, ids_ends) = (ends(&native), ends(&ids));
        assert_eq!(native_ends.len(), ids_ends.len());
        for count in 0..=native_ends.len() {
            let behind = |ends: &[usize]| count.checked_sub(1).map_or(0, |last| ends[last]);
            for (form, rest) in [
                ("&form=native", &native[behind(&native_ends)..]),
                ("", &ids[behind(&ids_ends)..]),
            ] {
                let target = format!("/v1/streams/{id}/events?after_events={count}{form}");
                let answer = harness.client.get(&target).await;
                let left = if rest.is_empty() { 204 } else { 200 };
                assert_eq!(answer.status, left, "{dialect}: {target}");
                assert_eq!(answer.all().await, (rest.to_vec(), End::Proper));
            }
        }
        let beyond = format!(
            "/v1/streams/{id}/events?after_events={}",
            ids_ends.len() + 1
        );
        let beyond = harness.client.get(&beyond).await;
        assert_eq!(beyond.error_code().await, (409, "cursor_ahead".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_looks_native_to_whoever_asks_for_that() {
    for dialect in Dialect::ALL {
        let harness = Harness::start(script().fin_after(3)).await;
        let response = ask(&harness.client, dialect).await;
        let id = response.id();
        let (native, end) = response.all().await;
        assert_eq!(end, End::Fin);
        let count = blocks(&native)
            .iter()
            .filter(|one| one.data.is_some())
            .count();
        let three = ends(&native)[2];
        for seen in [0, 3, count] {
            let target = format!("/v1/streams/{id}/events?after_events={seen}&form=native");
            let answer = harness.client.get(&target).await;
            if dialect == Dialect::Generic && seen == 3 {
                assert_eq!(answer.status, 204, "this dialect has no form");
                continue;
            }
            let rest = if seen == 0 { 0 } else { three };
            assert_eq!(answer.status, 200, "{dialect}: {target}");
            assert_eq!(answer.all().await, (native[rest..].to_vec(), End::Fin));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_answer_is_counted_with_its_form() {
    let harness = Harness::start(script().stall_after(2)).await;
    let mut response = ask(&harness.client, Dialect::Gemini).await;
    let id = response.id();
    response.body.blocks(2).await;
    let stop = format!("/v1/streams/{id}/stop");
    harness.client.send("POST", &stop, "").await.json().await;
    let (form, _) = response.body.rest().await;
    assert_eq!(blocks(&form).len(), 1);
    let at = |count: usize| format!("/v1/streams/{id}/events?after_events={count}&form=native");
    let rest = harness.client.get(&at(2)).await.all().await;
    assert_eq!(rest, (form, End::Proper));
    assert_eq!(harness.client.get(&at(3)).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn native_readers_of_gemini_are_given_plain_heartbeats() {
    let harness = Setup::new(script().gate_after(2, "go"))
        .config(|config| config.edge.heartbeat = Duration::from_millis(20))
        .start()
        .await;
    let response = ask(&harness.client, Dialect::Gemini).await;
    let id = response.id();
    let target = format!("/v1/streams/{id}/events?after_events=2&form=native");
    let mut rest = harness.client.get(&target).await;
    for _ in 0..3 {
        assert_eq!(rest.body.chunk().await.as_deref(), Some(&b"\n"[..]));
    }
    harness.mock.gates().release("go");
    let (rest, end) = rest.all().await;
    assert_eq!(end, End::Proper);
    let text = String::from_utf8(rest).expect("UTF-8");
    assert!(text.contains("data: "));
    assert!(
        !text.contains("\nid: ") && !text.contains("\n:\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_says_no_place_or_two_is_refused() {
    let harness = Harness::start(script()).await;
    let response = harness.client.chat().await;
    let id = response.id();
    response.all().await;
    let invalid = (400, "invalid_parameter".to_owned());
    for bad in [
        "after_events=",
        "after_events=-1",
        "after_events=x",
        "form=plain",
        "form=",
        "after_events=1&last_event_id=2",
    ] {
        let answer = harness
            .client
            .get(&format!("/v1/streams/{id}/events?{bad}"))
            .await;
        assert_eq!(answer.error_code().await, invalid, "{bad}");
    }
    let resumes = harness.client.with("last-event-id", &format!("{id}:2"));
    let both = format!("/v1/streams/{id}/events?after_events=1");
    assert_eq!(resumes.get(&both).await.error_code().await, invalid);
    // A form and a cursor go together.
    let native = format!("/v1/streams/{id}/events?form=native");
    assert_eq!(resumes.get(&native).await.status, 200);
}
