//! Cursors that are written wrongly.

use streamweld_tests::CHAT;

use super::{UNKNOWN, by_each_way, ended, expected};

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
    "1~9223372036854775808",
    "1~2~3",
    "~2",
    "18446744073709551616",
    "99999999999999999999",
    "1 ~2",
    "\u{b2}",
];

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
