//! What a cursor may look like, and what each that may not is told (protocol.md 3.2, 4.1, 6.3, 11).

use streamweld_mock::Script;
use streamweld_tests::{CHAT, Client, End, Harness, Response};

/// A generation of ten events that has ended: its terminal is entry 12.
async fn ended() -> (Harness, String) {
    let harness = Harness::start(Script::tokens(7)).await;
    let response = harness.client.chat().await;
    let id = response.id();
    response.all().await;
    (harness, id)
}

const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";
/// What is written in a place of a cursor that only the start, or a number, may have.
const MALFORMED: [&str; 24] = [
    "",
    "+1",
    "-1",
    "01",
    "00",
    "1.0",
    "1e3",
    "0x1",
    "one",
    "1,2",
    ":",
    "1:2",
    "1~",
    "1~0",
    "1~1",
    "1~02",
    "1~+2",
    "1~4294967296",
    "1~2~3",
    "~2",
    "18446744073709551616",
    "99999999999999999999",
    "1 ~2",
    "\u{b2}",
];

#[track_caller]
fn expected(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Asks for a generation with this cursor: by the header, by both spellings of the query, and by the same request.
async fn by_each_way(client: &Client, id: &str, cursor: &str) -> Vec<Response> {
    let events = format!("/v1/streams/{id}/events");
    let escaped: String = cursor.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let by_header = client.with("last-event-id", cursor);
    vec![
        by_header.get(&events).await,
        client
            .get(&format!("{events}?last_event_id={escaped}"))
            .await,
        client.get(&format!("{events}?lastEventId={escaped}")).await,
        by_header.send("POST", "/v1/chat/completions", CHAT).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_cursor_is_refused_and_never_forwarded() {
    let (harness, id) = ended().await;
    for place in MALFORMED {
        let cursor = format!("{id}:{place}");
        for answer in by_each_way(&harness.client, &id, &cursor).await {
            assert_eq!(
                answer.error_code().await,
                expected(400, "invalid_cursor"),
                "{cursor:?}"
            );
        }
    }
    for cursor in [
        id.to_uppercase() + ":1",
        id[..25].to_owned() + &id[25..].to_uppercase() + ":1",
        id.to_uppercase() + ":",
        id.to_uppercase() + ":x",
    ] {
        // An id whose last character is a digit has only one case.
        if cursor.starts_with(&id) {
            continue;
        }
        for answer in by_each_way(&harness.client, &id, &cursor).await {
            assert_eq!(
                answer.error_code().await,
                expected(400, "invalid_cursor"),
                "{cursor:?}"
            );
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_cursor_at_all_is_malformed_on_the_events_url_only() {
    let (harness, id) = ended().await;
    let events = format!("/v1/streams/{id}/events");
    let mut forwarded = 1;
    for foreign in [
        "x",
        "msg_1:2",
        "chatcmpl-123",
        &id,
        &id[1..],
        &format!("{}:1", &id[1..]),
        &format!("{id}0:1"),
        &format!("{id}-1"),
        &format!("x{id}:1"),
        // Not a stream id: the first character is beyond 7, or it has a letter that the alphabet lacks.
        &format!("8{}:1", &id[1..]),
        &format!("{}i:1", &id[..25]),
        &format!("{}U:1", &id[..25]),
        "18446744073709551616",
        "-1",
        "01",
        "1~2",
        "\u{e9}",
    ] {
        let by_header = harness.client.with("last-event-id", foreign);
        let refused = by_header.get(&events).await;
        assert_eq!(
            refused.error_code().await,
            expected(400, "invalid_cursor"),
            "{foreign:?}"
        );
        // On the data path it is the backend's business.
        for (method, target) in [("POST", "/v1/chat/completions"), ("GET", "/echo")] {
            let answer = by_header.send(method, target, CHAT).await;
            assert_eq!(answer.status, 200, "{foreign:?}");
            let seen = harness
                .mock
                .recorder()
                .request(forwarded)
                .expect("was forwarded");
            assert_eq!(seen.header("last-event-id"), Some(foreign), "verbatim");
            forwarded += 1;
            answer.all().await;
        }
    }
    // A bare sequence is ours below /v1/streams only; on the data path it is a feed's own id.
    let bare = harness.client.with("last-event-id", "3");
    assert_eq!(bare.get(&events).await.status, 200);
    bare.get("/echo").await.all().await;
    let seen = harness
        .mock
        .recorder()
        .request(forwarded)
        .expect("was forwarded");
    assert_eq!(seen.header("last-event-id"), Some("3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_query_is_read_byte_for_byte() {
    let (harness, id) = ended().await;
    let events = format!("/v1/streams/{id}/events");
    for value in [
        "", "%00", "1%00", "%001", "%", "1%", "%zz", "+1", "1+", "%2B1", "%201", "1%20", "1%0A",
        "%FF", "١",
    ] {
        // The last is a digit to Unicode and nothing to us; a target is ASCII, so it is escaped.
        let value: String = value
            .bytes()
            .map(|byte| {
                if byte.is_ascii() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
        for name in ["last_event_id", "lastEventId"] {
            let answer = harness
                .client
                .get(&format!("{events}?{name}={value}"))
                .await;
            assert_eq!(
                answer.error_code().await,
                expected(400, "invalid_cursor"),
                "{value:?}"
            );
        }
    }
    // Names are exact.
    for other in [
        "last-event-id=x",
        "Last_Event_Id=x",
        "lasteventid=x",
        "xlast_event_id=x",
    ] {
        let answer = harness.client.get(&format!("{events}?{other}")).await;
        assert_eq!(answer.status, 200, "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nul_in_a_header_is_no_http() {
    let (harness, id) = ended().await;
    for cursor in [format!("{id}:1\0"), "\0".to_owned()] {
        let head = format!(
            "GET /v1/streams/{id}/events HTTP/1.1\r\nhost: h\r\nlast-event-id: {cursor}\r\n\r\n"
        );
        let answer = harness.client.raw(head.as_bytes()).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.all().await.0, b"");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_fields_are_refused_when_one_of_them_is_ours() {
    let (harness, id) = ended().await;
    let ours = format!("{id}:1");
    let malformed = format!("{id}:x");
    let upper = ours.to_uppercase();
    let events = format!("/v1/streams/{id}/events");
    for pair in [
        [&*ours, &*ours],
        [&ours, "7"],
        ["7", &ours],
        [&malformed, "7"],
        ["7", &upper],
        ["", &ours],
    ] {
        let client = harness
            .client
            .with("last-event-id", pair[0])
            .with("Last-Event-ID", pair[1]);
        for answer in [
            client.get(&events).await,
            client.chat().await,
            client.get("/echo").await,
        ] {
            assert_eq!(
                answer.error_code().await,
                expected(400, "invalid_cursor"),
                "{pair:?}"
            );
        }
    }
    // Several of which none is ours are the backend's business, but not a place below /v1/streams.
    let client = harness
        .client
        .with("last-event-id", "7")
        .with("last-event-id", "8");
    assert_eq!(
        client.get(&events).await.error_code().await,
        expected(400, "invalid_cursor")
    );
    client.get("/echo").await.all().await;
    let seen = harness.mock.recorder().request(1).expect("was forwarded");
    let values: Vec<_> = seen
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("last-event-id"))
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(values, ["7", "8"]);
    assert_eq!(harness.mock.recorder().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_never_was_is_ahead_or_regressed() {
    let (harness, id) = ended().await;
    for (place, status, code) in [
        ("13", 409, "cursor_ahead"),
        ("18446744073709551615", 409, "cursor_ahead"),
        ("1~2", 409, "journal_regressed"),
        ("12~4294967295", 409, "journal_regressed"),
        ("0~2", 409, "journal_regressed"),
    ] {
        for answer in by_each_way(&harness.client, &id, &format!("{id}:{place}")).await {
            assert_eq!(answer.error_code().await, expected(status, code), "{place}");
        }
    }
    for answer in by_each_way(&harness.client, &id, &format!("{id}:12")).await {
        assert_eq!(answer.status, 204, "the terminal itself is no place ahead");
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_epoch_is_regressed_however_far_ahead() {
    let (harness, id) = ended().await;
    for place in ["13~2", "18446744073709551615~2", "99~4294967295"] {
        for answer in by_each_way(&harness.client, &id, &format!("{id}:{place}")).await {
            let regressed = expected(409, "journal_regressed");
            assert_eq!(answer.error_code().await, regressed, "{place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_case_is_named_on_both_paths() {
    let (harness, id) = ended().await;
    // An id whose letters are known: one with none has no case.
    let cursor = format!("{}:1", UNKNOWN.to_uppercase());
    for answer in by_each_way(&harness.client, &id, &cursor).await {
        assert_eq!(answer.status, 400);
        let error = answer.json().await["error"].take();
        assert_eq!(error["code"], "invalid_cursor");
        let message = error["message"].as_str().expect("text");
        assert!(message.contains("lowercase"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_cannot_be_read_is_told_with_the_stream_of_the_path() {
    let (harness, id) = ended().await;
    let events = format!("/v1/streams/{id}/events");
    let upper = format!("{}:1", UNKNOWN.to_uppercase());
    let twice = harness.client.with("last-event-id", "1");
    let mut answers = vec![twice.with("last-event-id", "2").get(&events).await];
    for cursor in ["x", "01", &format!("{id}:"), &upper] {
        answers.push(
            harness
                .client
                .with("last-event-id", cursor)
                .get(&events)
                .await,
        );
        let query = format!("{events}?last_event_id={cursor}");
        answers.push(harness.client.get(&query).await);
    }
    for answer in answers {
        assert_eq!(answer.status, 400);
        let error = answer.json().await["error"].take();
        assert_eq!(error["code"], "invalid_cursor");
        assert_eq!(error["stream_id"], id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_ahead_of_a_running_generation_is_ahead() {
    let harness = Harness::start(Script::tokens(7).gate_after(4, "gate")).await;
    let mut first = harness.client.chat().await;
    let id = first.id();
    first.body.blocks(4).await;
    for answer in by_each_way(&harness.client, &id, &format!("{id}:6")).await {
        assert_eq!(answer.error_code().await, expected(409, "cursor_ahead"));
    }
    for answer in by_each_way(&harness.client, &id, &format!("{id}:5")).await {
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_another_generation_than_the_path_is_a_mismatch() {
    let (harness, id) = ended().await;
    let other = harness
        .client
        .with("x-other", "1")
        .send("POST", "/v1/completions", CHAT)
        .await;
    let other_id = other.id();
    other.all().await;
    for cursor in [
        format!("{other_id}:1"),
        format!("{UNKNOWN}:1"),
        format!("{other_id}:99~7"),
    ] {
        let events = format!("/v1/streams/{id}/events");
        for answer in [
            harness
                .client
                .with("last-event-id", &cursor)
                .get(&events)
                .await,
            harness
                .client
                .get(&format!("{events}?last_event_id={cursor}"))
                .await,
            harness
                .client
                .get(&format!("{events}?lastEventId={cursor}"))
                .await,
        ] {
            assert_eq!(
                answer.error_code().await,
                expected(400, "cursor_mismatch"),
                "{cursor}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_existed_is_not_found_before_its_cursor_is_looked_at() {
    let (harness, _) = ended().await;
    for cursor in ["1", "x", "18446744073709551615"] {
        let client = harness.client.with("last-event-id", cursor);
        let answer = client.get(&format!("/v1/streams/{UNKNOWN}/events")).await;
        assert_eq!(
            answer.error_code().await,
            expected(404, "stream_not_found"),
            "{cursor}"
        );
    }
    for answer in [
        harness.client.get(&format!("/v1/streams/{UNKNOWN}")).await,
        harness
            .client
            .get(&format!("/v1/streams/{UNKNOWN}/events"))
            .await,
        harness
            .client
            .send("POST", &format!("/v1/streams/{UNKNOWN}/stop"), "")
            .await,
        harness
            .client
            .with("last-event-id", &format!("{UNKNOWN}:1"))
            .chat()
            .await,
        harness
            .client
            .with("last-event-id", &format!("{UNKNOWN}:1~2"))
            .get("/echo")
            .await,
    ] {
        assert_eq!(answer.error_code().await, expected(404, "stream_not_found"));
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_the_right_length_that_is_none_is_invalid() {
    let (harness, id) = ended().await;
    for wrong in [
        id.to_uppercase(),
        format!("{}i", &id[..25]),
        format!("{}l", &id[..25]),
        format!("{}o", &id[..25]),
        format!("{}u", &id[..25]),
        format!("8{}", &id[1..]),
        format!("{}-", &id[..25]),
        "%30arz3ndektsv4rrffq69g5fa".to_owned(),
        "..........................".to_owned(),
    ] {
        assert_eq!(wrong.len(), 26);
        for answer in [
            harness.client.get(&format!("/v1/streams/{wrong}")).await,
            harness
                .client
                .with("last-event-id", "x")
                .get(&format!("/v1/streams/{wrong}/events"))
                .await,
            harness
                .client
                .send("POST", &format!("/v1/streams/{wrong}/stop"), "")
                .await,
        ] {
            assert_eq!(
                answer.error_code().await,
                expected(400, "invalid_stream_id"),
                "{wrong}"
            );
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_are_not_ours_are_the_backends() {
    let (harness, id) = ended().await;
    let paths = [
        "/v1/streams",
        "/v1/streams/",
        "/v1/streams/lookup",
        "/v1/streams/abc/events",
        &format!("/v1/streams/{id}0"),
        &format!("/v1/streams/{}/events", &id[1..]),
        &format!("/v2/streams/{id}"),
        &format!("/V1/streams/{id}"),
        &format!("//v1/streams/{id}"),
        &format!("/v1//streams/{id}"),
        "/v1/streams/watch/x",
    ];
    for (forwarded, path) in (1..).zip(paths) {
        let answer = harness.client.get(path).await;
        assert_eq!(answer.status, 404, "the mock's own");
        assert_eq!(
            answer.json().await["error"]["type"],
            "not_found_error",
            "{path}"
        );
        let seen = harness
            .mock
            .recorder()
            .request(forwarded)
            .expect("was forwarded");
        assert_eq!(seen.target, path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_below_an_id_that_do_not_exist_are_ours_and_not_found() {
    let (harness, id) = ended().await;
    for path in [
        format!("/v1/streams/{id}/nothing"),
        format!("/v1/streams/{id}/"),
        format!("/v1/streams/{id}/events/"),
        format!("/v1/streams/{id}/Events"),
        format!("/v1/streams/{id}/stop/now"),
        format!("/v1/streams/{id}//events"),
        format!("/v1/streams/{UNKNOWN}/nothing"),
        format!("/v1/streams/{}/nothing", id.to_uppercase()),
        "/v1/streams/watch".to_owned(),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let answer = harness.client.send(method, &path, "").await;
            assert_eq!(
                answer.error_code().await,
                expected(404, "not_found"),
                "{method} {path}"
            );
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_a_path_lacks_is_told_which_it_has() {
    let (harness, id) = ended().await;
    for (path, allowed) in [
        (format!("/v1/streams/{id}"), "GET"),
        (format!("/v1/streams/{id}/events"), "GET"),
        (format!("/v1/streams/{id}/stop"), "POST"),
        // The method is looked at first: it does not depend on who asks, or for what.
        (format!("/v1/streams/{UNKNOWN}/stop"), "POST"),
    ] {
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND",
        ] {
            if method == allowed {
                continue;
            }
            let answer = harness.client.send(method, &path, "").await;
            assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
            assert_eq!(
                answer.error_code().await,
                expected(405, "method_not_allowed")
            );
        }
    }
    for target in [
        "/",
        "/v1/chat/completions",
        "/v1/streams/lookup",
        &format!("/v1/streams/{id}"),
    ] {
        let answer = harness.client.send("TRACE", target, "").await;
        let allow = answer
            .header("allow")
            .expect("says what is allowed")
            .to_owned();
        assert!(allow.contains("GET") && !allow.contains("TRACE") && !allow.contains("CONNECT"));
        assert_eq!(
            answer.error_code().await,
            expected(405, "method_not_allowed")
        );
    }
    let connect = harness
        .client
        .raw(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n")
        .await;
    assert!(connect.header("allow").is_some());
    assert_eq!(
        connect.error_code().await,
        expected(405, "method_not_allowed")
    );
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_events_are_asked_for_in_one_word() {
    let (harness, id) = ended().await;
    let events = format!("/v1/streams/{id}/events");
    let invalid = expected(400, "invalid_parameter");
    for word in ["", "all", "Control", "control,all", "true"] {
        let client = harness.client.with("x-streamweld-events", word);
        let resumes = client.with("last-event-id", &format!("{id}:1"));
        for answer in [
            client.get(&events).await,
            client.chat().await,
            resumes.chat().await,
            harness.client.get(&format!("{events}?events={word}")).await,
        ] {
            assert_eq!(answer.error_code().await, invalid, "{word:?}");
        }
    }
    let both = harness
        .client
        .with("x-streamweld-events", "control")
        .with("x-streamweld-events", "all");
    assert_eq!(both.get(&events).await.error_code().await, invalid);
    assert_eq!(
        harness.mock.recorder().count(),
        1,
        "nothing was sent to the backend"
    );
    // On the data path the query may be the backend's.
    let answer = harness
        .client
        .with("x-other", "1")
        .send("POST", "/v1/completions?events=all", CHAT)
        .await;
    assert_eq!(answer.status, 200);
    let seen = harness.mock.recorder().request(1).expect("was forwarded");
    assert_eq!(seen.target, "/v1/completions?events=all");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_ours_has_one_shape() {
    let (harness, id) = ended().await;
    let cursor = |text: &str| harness.client.with("last-event-id", text);
    let ahead = format!("{id}:99");
    for (answer, about) in [
        (cursor(&ahead).events(&id).await, Some(&*id)),
        (cursor(&ahead).chat().await, Some(&*id)),
        (harness.client.events(UNKNOWN).await, Some(UNKNOWN)),
        (
            harness.client.events("8zzzzzzzzzzzzzzzzzzzzzzzzz").await,
            None,
        ),
        (
            harness
                .client
                .get(&format!("/v1/streams/{id}/nothing"))
                .await,
            None,
        ),
        (
            harness
                .client
                .send("PUT", &format!("/v1/streams/{id}"), "")
                .await,
            None,
        ),
        (
            harness
                .client
                .send("POST", &format!("/v1/streams/{id}/stop"), "")
                .await,
            Some(&*id),
        ),
    ] {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let request = answer
            .header("x-streamweld-request-id")
            .expect("an id")
            .to_owned();
        assert!(is_ulid(&request), "{request}");
        let body = answer.json().await;
        assert_eq!(body.as_object().expect("an object").len(), 1);
        let error = body["error"].as_object().expect("an object");
        let mut members: Vec<_> = error.keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(
            members,
            ["code", "message", "request_id", "stream_id", "type"]
        );
        assert_eq!(error["type"], "streamweld_error");
        assert_eq!(error["request_id"], request, "the header's");
        assert_eq!(error["stream_id"].as_str(), about);
        assert!(!error["message"].as_str().expect("a message").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_a_request_id_of_its_own() {
    let (harness, id) = ended().await;
    let mut ids = Vec::new();
    let over = harness.client.with("last-event-id", &format!("{id}:12"));
    for answer in [
        harness.client.chat().await,
        harness.client.events(&id).await,
        harness.client.events(&id).await,
        over.events(&id).await,
        harness.client.get(&format!("/v1/streams/{id}")).await,
        harness.client.get("/v1/models").await,
        harness.client.get("/not/there").await,
        harness.client.events(UNKNOWN).await,
        harness.admin.get("/livez").await,
    ] {
        let id = answer
            .header("x-streamweld-request-id")
            .expect("an id")
            .to_owned();
        assert!(is_ulid(&id), "{id}");
        ids.push(id);
        assert_eq!(answer.all().await.1, End::Proper);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 9);
}

fn is_ulid(text: &str) -> bool {
    text.len() == 26
        && text.as_bytes()[0] <= b'7'
        && text
            .bytes()
            .all(|byte| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&byte))
}
