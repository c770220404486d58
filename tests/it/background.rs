//! Background responses that break off are gone on with where they were (protocol.md 8.6).

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use streamweld_mock::{Ask, Dialect, Raw, Script};
use streamweld_tests::{
    Client, End, Harness, Response, blocks, numbered, state, wait_end, wait_seq, without_ids,
};

const RESPONSES: Dialect = Dialect::OpenAiResponses;
const NAME: &str = "resp_0123456789abcdef0123456789abcdef";
const BODY: &str = r#"{"model":"m","stream":true,"background":true,"input":"hi"}"#;
const REST: &str = "/v1/responses/resp_0123456789abcdef0123456789abcdef";

fn script() -> Script {
    Script::text("Good morning to you").id(NAME)
}

fn events() -> Vec<Bytes> {
    script().expected(&Ask::read(RESPONSES, BODY.as_bytes(), 1))
}

/// A stream of exactly these events.
fn stream(events: &[Bytes]) -> Raw {
    events.iter().fold(Raw::new().stream_head(), |raw, event| {
        raw.chunk(std::str::from_utf8(event).expect("UTF-8"))
    })
}

/// A mock whose answer is cut behind so many events, and that gives this as the rest of it.
async fn cut(after: usize, rest: Raw) -> Harness {
    let harness = Harness::start(script().fin_after(after)).await;
    harness.mock.set_script_at(REST, Script::raw(rest));
    harness
}

async fn respond(client: &Client) -> Response {
    client.send("POST", RESPONSES.path(), BODY).await
}

#[track_caller]
fn targets(harness: &Harness) -> Vec<String> {
    let recorder = harness.mock.recorder();
    let request = |number| recorder.request(number).expect("it came");
    (0..recorder.count())
        .map(|number| request(number).target)
        .collect()
}

/// The client was shown the events up to the cut and an error, after this many wishes for the rest.
async fn assert_ended(harness: &Harness, after: usize, wishes: usize) {
    let response = respond(&harness.client).await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Fin);
    let mut shown = without_ids(&blocks(&body));
    shown.pop().expect("the form");
    assert_eq!(shown, blocks(&events()[..after].concat()));
    let state = state(&harness.client, &id).await;
    assert_eq!(state["terminal"]["code"], "truncated");
    assert_eq!(state["attempts"], 1);
    assert_eq!(harness.mock.recorder().count(), 1 + wishes);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_anywhere_is_one_answer() {
    let events = events();
    for after in 1..events.len() {
        for script in [script().fin_after(after), script().clean_after(after)] {
            let harness = Harness::start(script).await;
            let rest = stream(&events[after..]).last_chunk();
            harness.mock.set_script_at(REST, Script::raw(rest));
            let maker = harness.client.with("authorization", "Bearer a");
            let response = respond(&maker).await;
            let id = response.id();
            let whole = (numbered(&id, &events), End::Proper);
            assert_eq!(response.all().await, whole, "cut after {after}");
            assert_eq!(maker.events(&id).await.all().await, whole);
            let state = state(&maker, &id).await;
            assert_eq!(state["status"], "done");
            assert_eq!(state["attempts"], 2);
            let control = maker.with("x-streamweld-events", "control");
            let shown = blocks(&control.events(&id).await.all().await.0);
            let terminal = shown.last().and_then(|block| block.data.as_deref());
            let terminal: Value = serde_json::from_str(terminal.expect("data")).expect("JSON");
            assert_eq!(terminal["attempts"], 2);
            let request = harness.mock.recorder().request(1).expect("the second");
            assert_eq!(request.method, "GET");
            let number = after - 1;
            let target = format!("{REST}?stream=true&starting_after={number}");
            assert_eq!(request.target, target);
            assert_eq!(request.header("authorization"), Some("Bearer a"));
            assert_eq!(request.header("accept-encoding"), Some("identity"));
            assert_eq!(request.header("content-type"), None);
            assert_eq!(request.header("content-length"), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_torn_event_is_forgotten() {
    let events = events();
    let (torn, whole) = (&events[6], &events[..6]);
    let torn = std::str::from_utf8(&torn[..torn.len() / 2]).expect("UTF-8");
    let harness = Harness::start(Script::raw(stream(whole).chunk(torn).fin())).await;
    let rest = stream(&events[6..]).last_chunk();
    harness.mock.set_script_at(REST, Script::raw(rest));
    let response = respond(&harness.client).await;
    let all = numbered(&response.id(), &events);
    assert_eq!(response.all().await, (all, End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_may_be_cut_again_and_again() {
    let events = events();
    let one_more = stream(&events[6..7]).gate("cut").fin();
    let harness = cut(6, one_more).await;
    let response = respond(&harness.client).await;
    let id = response.id();
    wait_seq(&harness.client, &id, 8).await;
    let rest = stream(&events[7..]).last_chunk();
    harness.mock.set_script_at(REST, Script::raw(rest));
    harness.mock.gates().release("cut");
    let all = numbered(&id, &events);
    assert_eq!(response.all().await, (all, End::Proper));
    assert_eq!(state(&harness.client, &id).await["attempts"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_away_is_asked_three_times() {
    let harness = Harness::start(script().fin_after(6)).await;
    harness.mock.set_script_at(REST, Script::error(503));
    let begun = Instant::now();
    assert_ended(&harness, 6, 3).await;
    assert!(begun.elapsed() >= Duration::from_millis(2500));
    // One that is back in time goes on.
    let away = Script::error(503).head_gate("away");
    harness.mock.set_script_at(REST, away);
    let response = respond(&harness.client).await;
    let recorder = harness.mock.recorder();
    recorder.wait_requests(6).await.expect("a wish more");
    let rest = stream(&events()[6..]).last_chunk();
    harness.mock.set_script_at(REST, Script::raw(rest));
    harness.mock.gates().release("away");
    let all = numbered(&response.id(), &events());
    assert_eq!(response.all().await, (all, End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_the_very_rest_is_not_taken() {
    let events = events();
    let other = |event: &Bytes, from: &str, to: &str| {
        let text = std::str::from_utf8(event).expect("UTF-8");
        vec![Bytes::from(text.replace(from, to))]
    };
    let last = events.len() - 1;
    for (after, rest) in [
        // A gap, a repeat, the whole answer, another response, no number.
        (6, events[7..].to_vec()),
        (6, events[5..].to_vec()),
        (6, events.clone()),
        (last, other(&events[last], NAME, "resp_other")),
        (6, other(&events[6], "sequence_number", "number")),
    ] {
        let harness = cut(after, stream(&rest).last_chunk()).await;
        assert_ended(&harness, after, 1).await;
    }
    // No stream at all, and none that can be read.
    let unreadable = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: br\r\ntransfer-encoding: chunked\r\n\r\n";
    for rest in [
        Script::answer(200, "{}"),
        Script::error(404),
        Script::raw(Raw::new().write(unreadable).last_chunk()),
    ] {
        let harness = Harness::start(script().fin_after(6)).await;
        harness.mock.set_script_at(REST, rest);
        assert_ended(&harness, 6, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_background_response_ends_where_it_broke_off() {
    let rest = || stream(&events()[6..]).last_chunk();
    for body in [
        BODY.replace(r#""background":true,"#, ""),
        BODY.replace(r#""background":true"#, r#""background":false"#),
    ] {
        let harness = cut(6, rest()).await;
        let response = harness.client.send("POST", RESPONSES.path(), &body).await;
        assert_eq!(response.all().await.1, End::Fin);
        assert_eq!(targets(&harness), [RESPONSES.path()]);
    }
    // Before the first event nobody knows its name.
    let harness = cut(0, rest()).await;
    assert_ended(&harness, 0, 0).await;
    // What the backend itself calls an error is one.
    let harness = Harness::start(script().error_after(6)).await;
    harness.mock.set_script_at(REST, Script::raw(rest()));
    let (_, end) = respond(&harness.client).await.all().await;
    assert_eq!(end, End::Fin);
    assert_eq!(targets(&harness), [RESPONSES.path()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_rest_is_asked_for_is_a_stop() {
    let harness = cut(6, Raw::new().stream_head().stall()).await;
    let response = respond(&harness.client).await;
    let id = response.id();
    let recorder = harness.mock.recorder();
    recorder.wait_requests(2).await.expect("the wish");
    let stop = format!("/v1/streams/{id}/stop");
    let stopped = harness.client.send("POST", &stop, "").await.json().await;
    assert_eq!(stopped["status"], "stopped");
    assert_eq!(response.all().await.1, End::Proper);
    recorder.wait_closed(1).await.expect("its connection ends");
    let state = wait_end(&harness.client, &id).await;
    assert_eq!(state["status"], "stopped");
}
