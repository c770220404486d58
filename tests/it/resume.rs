//! Resume (protocol.md 3.2, 4.4, 5.1, 6.1 to 6.4): whoever comes back, by whichever way, is given the bytes that an
//! uninterrupted reader is given, from where it stood; and where that cannot be, it is told so and never skipped.

use std::time::Duration;

use http::Method;
use streamweld_mock::{Dialect, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Response, Setup, Way, blocks, ends, get_slowly, numbered, patience,
    state, wait_end, wait_seq,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const CHAT_PATH: &str = "/v1/chat/completions";

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

/// Status of a read after `seq`, as an ordinary reader and as one with control events, by each way.
async fn check_over(script: Script, dialect: Dialect, stop: bool, ordinary: bool) {
    let harness = Harness::start(script.clone()).await;
    let response = harness.client.send("POST", dialect.path(), CHAT).await;
    let id = response.id();
    if stop {
        harness
            .mock
            .gates()
            .wait_arrived("gate", 1)
            .await
            .expect("the mock comes there");
        let stopped = harness
            .client
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await;
        assert_eq!(stopped.status, 200);
    }
    response.all().await;
    let state = state(&harness.client, &id).await;
    let terminal = state["terminal"]["seq"].as_u64().expect("it has ended");
    let control = harness.client.with("x-streamweld-events", "control");
    for way in Way::ALL {
        for (client, seq, shown) in [
            // Behind the last event: what is left is the terminal.
            (&harness.client, terminal - 1, ordinary),
            (&control, terminal - 1, true),
            (&harness.client, terminal, false),
            (&control, terminal, false),
        ] {
            let cursor = format!("{id}:{seq}");
            let answer = way.resume(client, &cursor, (dialect.path(), CHAT)).await;
            let place = format!("{script:?} {way:?} after {seq} of {terminal}");
            if shown {
                assert_eq!(answer.status, 200, "{place}");
                let (bytes, end) = answer.all().await;
                assert_eq!(end, End::Proper, "{place}");
                let last = blocks(&bytes).pop().expect("the terminal's form");
                assert_eq!(last.id, Some(format!("{id}:{terminal}")), "{place}");
            } else {
                assert_eq!(answer.status, 204, "{place}");
                assert!(answer.header("x-streamweld-request-id").is_some());
                assert_eq!(answer.header("content-type"), None);
                assert_eq!(answer.all().await, (Vec::new(), End::Proper));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_done_nothing_is_left_to_an_ordinary_reader() {
    for dialect in Dialect::ALL {
        check_over(Script::tokens(3), dialect, false, false).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_the_form_is_left_where_the_dialect_has_one() {
    for dialect in Dialect::ALL {
        let has_form = dialect != Dialect::Generic;
        check_over(Script::tokens(8).fin_after(4), dialect, false, has_form).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_the_form_is_left_where_the_dialect_has_one() {
    for dialect in Dialect::ALL {
        let has_form = dialect != Dialect::Generic;
        check_over(
            Script::tokens(8).gate_after(4, "gate"),
            dialect,
            true,
            has_form,
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_generation_is_over_from_its_start() {
    let harness = Harness::start(Script::tokens(0)).await;
    let response = harness.client.send("POST", "/generic", "{}").await;
    let id = response.id();
    assert_eq!(response.all().await, (Vec::new(), End::Proper));
    assert_eq!(harness.client.events(&id).await.status, 204);
    let control = harness.client.with("x-streamweld-events", "control");
    let (bytes, _) = control.events(&id).await.all().await;
    let names: Vec<_> = blocks(&bytes)
        .into_iter()
        .filter_map(|block| block.event)
        .collect();
    assert_eq!(names, ["streamweld.open", "streamweld.done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_events_are_the_same_bytes_on_every_path() {
    let harness = Harness::start(Script::tokens(4)).await;
    let control = harness.client.with("x-streamweld-events", "control");
    let first = control.with("x-kept", "1").chat().await;
    let id = first.id();
    let (body, end) = first.all().await;
    assert_eq!(end, End::Proper);
    let shown = blocks(&body);
    let seqs: Vec<u64> = shown.iter().map(streamweld_tests::Block::seq).collect();
    assert_eq!(
        seqs,
        (1..=shown.len() as u64).collect::<Vec<_>>(),
        "every entry is shown"
    );

    let open = &shown[0];
    assert_eq!(open.event.as_deref(), Some("streamweld.open"));
    let open: serde_json::Value =
        serde_json::from_str(open.data.as_deref().expect("data")).expect("JSON");
    assert_eq!(open["stream_id"], id);
    assert_eq!(open["seq"], 1);
    assert_eq!(open["dialect"], "openai_chat");
    assert_eq!(open["model"], "m");
    assert_eq!(open["backend"], "llm");
    assert_eq!(open["orphan_policy"], "continue");
    assert!(open["request_id"].is_string() && open["time"].is_string());
    assert_eq!(open.as_object().expect("an object").len(), 8);

    let done = shown.last().expect("the terminal");
    assert_eq!(done.event.as_deref(), Some("streamweld.done"));
    let done: serde_json::Value =
        serde_json::from_str(done.data.as_deref().expect("data")).expect("JSON");
    assert_eq!(done["stream_id"], id);
    assert_eq!(done["seq"], shown.len() as u64);
    assert_eq!(done["end"], "sentinel");
    assert_eq!(done["reasons"], serde_json::json!(["stop"]));
    assert_eq!(done["attempts"], 1);
    assert!(done["time"].is_string());
    assert_eq!(done.as_object().expect("an object").len(), 6);

    // An ordinary reader is given the same without these two.
    let places = ends(&body);
    let (plain, _) = harness.client.events(&id).await.all().await;
    assert_eq!(plain, &body[places[0]..places[places.len() - 2]]);

    let events = format!("/v1/streams/{id}/events");
    for (seq, at) in (0..).zip([0].into_iter().chain(places.iter().copied())) {
        for way in Way::ALL {
            let cursor = format!("{id}:{seq}");
            let rest = way.resume(&control, &cursor, (CHAT_PATH, CHAT)).await;
            if at == body.len() {
                assert_eq!(rest.status, 204);
            } else {
                assert_eq!(
                    rest.all().await,
                    (body[at..].to_vec(), End::Proper),
                    "{way:?} after {seq}"
                );
            }
        }
        if at < body.len() {
            let target = format!("{events}?events=control&last_event_id={seq}");
            let by_query = harness.client.get(&target).await;
            assert_eq!(by_query.all().await.0, &body[at..]);
            let again = harness.client.with("last-event-id", &format!("{id}:{seq}"));
            let again = again.send("POST", "/v1/chat/completions?events=control", CHAT);
            assert_eq!(again.await.all().await.0, &body[at..]);
        }
    }
    let seen = harness.mock.recorder().request(0).expect("one request");
    assert_eq!(seen.header("x-kept"), Some("1"));
    assert_eq!(
        seen.header("x-streamweld-events"),
        None,
        "ours is not forwarded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn control_events_are_asked_for_in_the_query_of_the_first_request_too() {
    let harness = Harness::start(Script::tokens(4)).await;
    let target = "/v1/chat/completions?a=1&events=control";
    let first = harness.client.send("POST", target, CHAT).await;
    let (body, _) = first.all().await;
    assert_eq!(blocks(&body)[0].event.as_deref(), Some("streamweld.open"));
    let seen = harness.mock.recorder().request(0).expect("one request");
    assert_eq!(seen.target, target, "the query is the backend's as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn control_readers_see_the_form_without_an_id_and_then_the_terminal() {
    let harness = Harness::start(Script::tokens(8).fin_after(4)).await;
    let control = harness.client.with("x-streamweld-events", "control");
    let first = control.chat().await;
    let id = first.id();
    let (body, end) = first.all().await;
    assert_eq!(end, End::Proper, "the terminal says it, so no abort has to");
    let shown = blocks(&body);
    let [.., form, terminal] = &shown[..] else {
        panic!("too short")
    };
    assert_eq!(form.id, None);
    assert!(
        form.data
            .as_deref()
            .expect("data")
            .contains("streamweld_error")
    );
    assert_eq!(terminal.event.as_deref(), Some("streamweld.error"));
    assert_eq!(terminal.seq(), 6);
    assert!(
        terminal
            .data
            .as_deref()
            .expect("data")
            .contains(r#""code":"truncated""#)
    );
    for way in Way::ALL {
        let rest = way
            .resume(&control, &format!("{id}:0"), (CHAT_PATH, CHAT))
            .await;
        assert_eq!(rest.all().await, (body.clone(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_looks_resumable_only_to_whoever_resumes() {
    let harness = Harness::start(Script::tokens(8).fin_after(4)).await;
    let first = harness.client.chat().await;
    let id = first.id();
    let (body, end) = first.all().await;
    assert_eq!(end, End::Fin, "the abort");
    assert_eq!(blocks(&body).pop().expect("the form").id, None);
    let places = ends(&body);
    for way in Way::ALL {
        let rest = way
            .resume(&harness.client, &format!("{id}:3"), (CHAT_PATH, CHAT))
            .await;
        let (rest, end) = rest.all().await;
        assert_eq!(end, End::Proper);
        let form = &body[places[3]..body.len() - 1];
        let expected = [
            &body[places[1]..places[3]],
            form,
            format!("id: {id}:6\n\n").as_bytes(),
        ]
        .concat();
        assert_eq!(rest, expected);
    }
}

/// A generation that has outgrown its ring, held before its end.
async fn outgrown() -> (Harness, Response, u64) {
    let script = Script::tokens(1_000).gate_after(1_000, "end");
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 32 << 10)
        .start()
        .await;
    let first = harness.client.chat().await;
    let id = first.id();
    wait_seq(&harness.client, &id, 1_001).await;
    let earliest = state(&harness.client, &id).await["earliest_seq"]
        .as_u64()
        .expect("a number");
    assert!(earliest > 500, "{earliest}");
    (harness, first, earliest)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_left_the_ring_is_refused_and_not_skipped() {
    let (harness, first, mut earliest) = outgrown().await;
    let id = first.id();
    for ended in [false, true] {
        if ended {
            harness.mock.gates().release("end");
            wait_end(&harness.client, &id).await;
            earliest = state(&harness.client, &id).await["earliest_seq"]
                .as_u64()
                .expect("a number");
        }
        for way in Way::ALL {
            for seq in [0, 1, 2, earliest - 2] {
                let answer = way
                    .resume(&harness.client, &format!("{id}:{seq}"), (CHAT_PATH, CHAT))
                    .await;
                assert_eq!(
                    answer.error_code().await,
                    (410, "cursor_expired".to_owned()),
                    "{way:?} after {seq} of {earliest}, ended: {ended}"
                );
            }
            let cursor = format!("{id}:{}", earliest - 1);
            let mut kept = way
                .resume(&harness.client, &cursor, (CHAT_PATH, CHAT))
                .await;
            assert_eq!(kept.status, 200);
            let shown = blocks(&kept.body.blocks(1).await);
            assert_eq!(shown[0].seq(), earliest);
        }
        let start = harness.client.events(&id).await;
        assert_eq!(start.error_code().await, (410, "cursor_expired".to_owned()));
    }
}

/// Large events behind small ones, in a dialect without a closing event: what is lost is then all that there was.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_event_is_never_taken_for_nothing_left() {
    let script = Script::tokens(3).huge_event_after(3, 64 << 10);
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 16 << 10)
        .start()
        .await;
    let response = harness.client.send("POST", "/generic", "{}").await;
    let id = response.id();
    response.all().await;
    let state = state(&harness.client, &id).await;
    assert_eq!(state["status"], "done");
    assert_eq!(state["last_seq"], 6);
    assert_eq!(state["earliest_seq"], 6, "the terminal alone is left");
    for way in Way::ALL {
        for (seq, status) in [(0, 410), (3, 410), (4, 410), (5, 204), (6, 204)] {
            let cursor = format!("{id}:{seq}");
            let answer = way
                .resume(&harness.client, &cursor, ("/generic", "{}"))
                .await;
            assert_eq!(answer.status, status, "{way:?} after {seq}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_retention_overtakes_is_aborted_and_never_skipped() {
    const EVENTS: usize = 200;
    let mut script = Script::tokens(4)
        .gate_after(2, "reader")
        .gate_after(4, "end");
    for _ in 0..EVENTS {
        script = script.huge_event_after(3, 64 << 10);
    }
    let harness = Setup::new(script)
        .config(|config| config.journal.per_generation = 256 << 10)
        .start()
        .await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    first.body.blocks(2).await;
    let mut slow = get_slowly(&harness.client, &format!("/v1/streams/{id}/events")).await;
    assert_eq!(slow.status, 200);
    drop(first);
    harness.mock.gates().release("reader");
    let last = EVENTS as u64 + 5;
    wait_seq(&harness.client, &id, last).await;

    let (body, end) = patience(slow.body.rest()).await;
    assert_eq!(end, End::Fin, "an abort, though the generation goes on");
    assert!(slow.body.torn().is_empty(), "between blocks");
    let seqs: Vec<u64> = blocks(&body)
        .iter()
        .map(streamweld_tests::Block::seq)
        .collect();
    let reached = *seqs.last().expect("something was read");
    assert_eq!(
        seqs,
        (2..=reached).collect::<Vec<_>>(),
        "nothing is skipped"
    );
    assert!(reached < last, "it was overtaken");
    for way in Way::ALL {
        let cursor = format!("{id}:{reached}");
        let answer = way
            .resume(&harness.client, &cursor, (CHAT_PATH, CHAT))
            .await;
        assert_eq!(
            answer.error_code().await,
            (410, "cursor_expired".to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_retention_the_maker_is_told_that_it_expired_and_then_that_it_never_was() {
    let harness = Setup::new(Script::tokens(3))
        .config(|config| config.journal.retention = Duration::from_secs(1))
        .start()
        .await;
    let maker = harness.client.with("authorization", "Bearer a");
    let stranger = harness.client.with("authorization", "Bearer b");
    let response = maker.chat().await;
    let id = response.id();
    response.all().await;
    assert_eq!(maker.events(&id).await.status, 200);

    let cursor = format!("{id}:0");
    let expired = (410, "stream_expired".to_owned());
    let unknown = (404, "stream_not_found".to_owned());
    // What each of the three is told by the paths of ours and by the same request again.
    let ask = async |client: &Client| {
        let path = format!("/v1/streams/{id}");
        let again = client.with("last-event-id", &cursor);
        [
            client.events(&id).await,
            client.get(&path).await,
            client.send("POST", &format!("{path}/stop"), "").await,
            again.chat().await,
        ]
    };
    let (mut told_expired, mut told_unknown) = (0, 0);
    patience(async {
        while told_unknown < 4 {
            for answer in ask(&stranger).await {
                assert_eq!(
                    answer.error_code().await,
                    unknown,
                    "a stranger is never told more"
                );
            }
            for answer in ask(&maker).await {
                match answer.status {
                    // Still there: the state and events, or a stop too late.
                    200 | 409 => assert_eq!((told_expired, told_unknown), (0, 0)),
                    410 => {
                        assert_eq!(told_unknown, 0);
                        assert_eq!(answer.error_code().await, expired);
                        told_expired += 1;
                    }
                    _ => {
                        assert_eq!(answer.error_code().await, unknown);
                        told_unknown += 1;
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(told_expired >= 4);
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
