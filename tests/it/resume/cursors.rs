//! Every cursor, by every way that leads back.

use http::Method;
use streamweld_mock::{Dialect, Script};
use streamweld_tests::{CHAT, End, Harness, Response, Way, ends, numbered, patience, wait_seq};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::CHAT_PATH;

/// Every cursor, by every way, against what the mock is known to say.
async fn check_every_cursor(dialect: Dialect) {
    let script = Script::tokens(6).id("fixed");
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.send("POST", dialect.path(), CHAT).await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let seen = harness.mock.recorder().request(0).expect("one request");
    assert_eq!(body, numbered(&id, &script.expected(&seen.ask(dialect))));
    let places = ends(&body);
    for way in Way::ALL {
        // The cursor behind entry 1, which is `open` and hidden, is the start as well.
        let starts = [0, 1].map(|seq| (seq, 0));
        let behind = (2..).zip(places.iter().copied());
        for (seq, at) in starts.into_iter().chain(behind) {
            let cursor = format!("{id}:{seq}");
            let again = (dialect.path(), CHAT);
            let rest = way.resume(&harness.client, &cursor, again).await;
            if at == body.len() {
                assert_eq!(rest.status, 204, "{dialect} {way:?} after {seq}");
                continue;
            }
            assert_eq!(rest.status, 200, "{dialect} {way:?} after {seq}");
            assert_eq!(rest.id(), id);
            let (rest, end) = rest.all().await;
            assert_eq!(end, End::Proper);
            assert_eq!(rest, &body[at..], "{dialect} {way:?} after {seq}");
        }
    }
    assert_eq!(
        harness.mock.recorder().count(),
        1,
        "nothing was asked again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_gives_the_rest_of_an_uninterrupted_read_in_chat() {
    check_every_cursor(Dialect::OpenAiChat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_gives_the_rest_of_an_uninterrupted_read_in_completions() {
    check_every_cursor(Dialect::OpenAiCompletions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_gives_the_rest_of_an_uninterrupted_read_in_responses() {
    check_every_cursor(Dialect::OpenAiResponses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_gives_the_rest_of_an_uninterrupted_read_in_messages() {
    check_every_cursor(Dialect::AnthropicMessages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_gives_the_rest_of_an_uninterrupted_read_in_generic() {
    check_every_cursor(Dialect::Generic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_sequence_is_a_cursor_on_the_events_url() {
    let harness = Harness::start(Script::tokens(6)).await;
    let (id, body) = whole(&harness).await;
    let places = ends(&body);
    let events = format!("/v1/streams/{id}/events");
    for (seq, at) in [(0, 0), (1, 0), (2, places[0]), (5, places[3])] {
        let by_header = harness.client.with("last-event-id", &seq.to_string());
        for rest in [
            by_header.get(&events).await,
            harness
                .client
                .get(&format!("{events}?last_event_id={seq}"))
                .await,
            harness
                .client
                .get(&format!("{events}?lastEventId={seq}"))
                .await,
            // Percent escapes are the same text, and other parameters are nobody's business.
            harness
                .client
                .get(&format!("{events}?a=b&last_event_id={id}%3A{seq}&c"))
                .await,
        ] {
            assert_eq!(rest.all().await, (body[at..].to_vec(), End::Proper));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_wins_over_the_query() {
    let harness = Harness::start(Script::tokens(6)).await;
    let (id, body) = whole(&harness).await;
    let places = ends(&body);
    for spelling in ["last_event_id", "lastEventId"] {
        let target = format!("/v1/streams/{id}/events?{spelling}={id}:6");
        let client = harness.client.with("last-event-id", &format!("{id}:3"));
        let (rest, _) = client.get(&target).await.all().await;
        assert_eq!(rest, &body[places[1]..]);
        // Even a header that cannot be read: guessing which one was meant could skip or repeat.
        let client = harness.client.with("last-event-id", "nonsense");
        let refused = client.get(&target).await.error_code().await;
        assert_eq!(refused, (400, "invalid_cursor".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_method_but_connect_and_trace_resumes() {
    let harness = Harness::start(Script::tokens(6)).await;
    let (id, body) = whole(&harness).await;
    let client = harness.client.with("last-event-id", &format!("{id}:1"));
    for method in [
        Method::GET,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        for target in [CHAT_PATH, "/v1/models", "/", "/anything?x=1"] {
            let rest = client.send(method.as_str(), target, "").await;
            assert_eq!(
                rest.all().await,
                (body.clone(), End::Proper),
                "{method} {target}"
            );
        }
    }
    let head = client
        .send("POST", "/v1/chat/completions", "not even JSON")
        .await;
    assert_eq!(head.all().await.0, body);
    assert_eq!(
        harness.mock.recorder().count(),
        1,
        "none reached the backend"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_resumed_answer_is_ours_alone() {
    let script = Script::tokens(2)
        .header("x-backend", "1")
        .header("content-language", "en");
    let harness = Harness::start(script).await;
    let first = harness.client.chat().await;
    assert_eq!(first.header("x-backend"), Some("1"));
    let id = first.id();
    first.all().await;
    for way in Way::ALL {
        let resumed = way
            .resume(&harness.client, &format!("{id}:0"), (CHAT_PATH, CHAT))
            .await;
        assert_eq!(resumed.status, 200);
        let mut names: Vec<_> = resumed
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        // On the data path there is no session that it could be of.
        let verdict = names
            .iter()
            .position(|name| *name == "x-streamweld-verdict");
        assert_eq!(verdict.is_none(), way == Way::Again);
        verdict.map(|at| names.remove(at));
        assert_eq!(
            names,
            [
                "cache-control",
                "content-type",
                "date",
                "transfer-encoding",
                "x-accel-buffering",
                "x-streamweld-durability",
                "x-streamweld-request-id",
                "x-streamweld-stream-id"
            ]
        );
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache, no-store, no-transform"),
            ("x-accel-buffering", "no"),
            ("x-streamweld-durability", "durable"),
            ("x-streamweld-stream-id", &id),
            ("transfer-encoding", "chunked"),
        ] {
            assert_eq!(resumed.header(name), Some(value), "{way:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_join_a_running_generation_see_every_entry_once() {
    let script = Script::tokens(30).id("fixed").step_gate("step");
    let harness = Harness::start(script.clone()).await;
    let first = harness.client.chat().await;
    let id = first.id();
    let seen = harness.mock.recorder().request(0).expect("one request");
    let expected = numbered(&id, &script.expected(&seen.ask(Dialect::OpenAiChat)));
    let places = ends(&expected);
    let mut readers = vec![(0, first)];
    for event in 0..places.len() {
        // One that joins at the tail, one from the start, one from the middle: while the next event is on its way.
        for (way, seq) in Way::ALL
            .into_iter()
            .zip([event + 1, 1, event / 2 + 1, event + 1])
        {
            let cursor = format!("{id}:{seq}");
            let reader = way.resume(&harness.client, &cursor, (CHAT_PATH, CHAT));
            let at = seq.checked_sub(2).map_or(0, |index| places[index]);
            let reader = reader.await;
            assert_eq!(reader.status, 200);
            readers.push((at, reader));
        }
        harness.mock.gates().step("step");
        wait_seq(&harness.client, &id, event as u64 + 2).await;
    }
    for (at, reader) in readers {
        let (rest, end) = reader.all().await;
        assert_eq!(end, End::Proper);
        assert_eq!(rest, &expected[at..]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_at_the_tail_waits_and_is_not_told_that_it_is_over() {
    let harness = Harness::start(Script::tokens(6).gate_after(4, "gate")).await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    let mut body = first.body.blocks(4).await;
    let mut waiting = Vec::new();
    for way in Way::ALL {
        let cursor = format!("{id}:5");
        let reader = way
            .resume(&harness.client, &cursor, (CHAT_PATH, CHAT))
            .await;
        assert_eq!(reader.status, 200);
        waiting.push(reader);
    }
    harness.mock.gates().release("gate");
    let (rest, _) = first.body.rest().await;
    body.extend_from_slice(&rest);
    for reader in waiting {
        assert_eq!(reader.all().await, (rest.clone(), End::Proper));
    }
    assert_eq!(
        harness.client.events(&id).await.all().await,
        (body, End::Proper)
    );
}

/// A client that writes its whole body before it reads, as many do, must not be stuck behind a body that nobody takes.
#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_request_that_resumes_is_read_and_dropped() {
    let harness = Harness::start(Script::tokens(6)).await;
    let (id, body) = whole(&harness).await;
    let unknown = "01arz3ndektsv4rrffq69g5fav";
    for (cursor, status) in [
        (format!("{id}:1"), 200),
        (format!("{id}:99"), 409),
        (format!("{unknown}:1"), 404),
        (format!("{id}:x"), 400),
    ] {
        let size = 32 << 20;
        let mut stream = TcpStream::connect(harness.client.addr)
            .await
            .expect("connects");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nlast-event-id: {cursor}\r\ncontent-length: {size}\r\n\r\n"
        );
        patience(async {
            stream
                .write_all(head.as_bytes())
                .await
                .expect("the head is taken");
            stream
                .write_all(&vec![b' '; size])
                .await
                .expect("the body is taken");
        })
        .await;
        let response = patience(Response::read(stream)).await.expect("a response");
        assert_eq!(response.status, status);
        if status == 200 {
            assert_eq!(response.all().await, (body.clone(), End::Proper));
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

async fn whole(harness: &Harness) -> (String, Vec<u8>) {
    let response = harness.client.chat().await;
    let id = response.id();
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    (id, body)
}
