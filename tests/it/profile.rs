//! What a client reads: the head of a durable response and the output profile (protocol.md 4.4 and 5).

use std::time::Duration;

use streamweld_mock::{Dialect, Encoding, Framing, LineEnd, Raw, Script};
use streamweld_tests::{
    Block, End, Harness, Response, Setup, ask, blocks, patience, question, without_ids,
};

const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

/// What a client gets of this event stream: the exact bytes, with `ID` for the stream id.
async fn exact(dialect: Dialect, wire: &str) -> String {
    let raw = Raw::new().stream_head().chunk(wire).last_chunk();
    let harness = Harness::start(Script::raw(raw)).await;
    let response = ask(&harness.client, dialect).await;
    let id = response.id();
    let (bytes, end) = response.all().await;
    assert_eq!(end, End::Proper);
    drop(blocks(&bytes));
    String::from_utf8(bytes).expect("UTF-8").replace(&id, "ID")
}

#[track_caller]
fn check_generic(wire: &str, expected: &str) -> impl Future<Output = ()> {
    let (wire, expected) = (wire.to_owned(), expected.to_owned());
    async move { assert_eq!(exact(Dialect::Generic, &wire).await, expected, "{wire:?}") }
}

/// In a chat stream, before an ordinary finish.
async fn check_chat(wire: &str, expected: &str) {
    let rest = format!("data: {FINISH}\n\ndata: [DONE]\n\n");
    let shown = exact(Dialect::OpenAiChat, &format!("{wire}{rest}")).await;
    let seq = 2 + expected.matches("\n\n").count();
    let finish = format!("data: {FINISH}\nid: ID:{seq}\n\n");
    let sentinel = format!("data: [DONE]\nid: ID:{}\n\n", seq + 1);
    assert_eq!(shown, format!("{expected}{finish}{sentinel}"), "{wire:?}");
}

// Blocks.

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_written_anew_with_our_id_last() {
    let wire = "retry: 5\nid: 7\ndata: a\n: comment\nevent: x\ndata:b\nfoo: bar\nevent: y\n\n";
    check_generic(wire, "event: y\ndata: a\ndata: b\nretry: 5\nid: ID:2\n\n").await;
    check_chat(wire, "event: y\ndata: a\ndata: b\nid: ID:2\n\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_forwarded_and_its_last_line_counts() {
    check_generic(
        "event: a\nevent: b c\ndata: 1\n\ndata: 2\nevent:d\n\nevent\ndata: 3\n\n",
        "event: b c\ndata: 1\nid: ID:2\n\nevent: d\ndata: 2\nid: ID:3\n\ndata: 3\nid: ID:4\n\n",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_data_stay_apart_and_unchanged() {
    check_generic(
        "data: a\ndata:\ndata:  b \ndata:{\"c\": 1}\n\n",
        "data: a\ndata: \ndata:  b \ndata: {\"c\": 1}\nid: ID:2\n\n",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_without_data_are_dropped_in_every_dialect() {
    let wire = "id: 1\n\nretry: 9\n\nevent: ping\n\n: comment\n\nfoo: bar\n\n:\n\n\n\n";
    check_generic(&format!("{wire}data: a\n\n"), "data: a\nid: ID:2\n\n").await;
    check_chat(wire, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_data_is_kept_in_generic_streams_only() {
    let wire = "data\n\ndata:\n\nevent: e\ndata: \n\n";
    check_generic(
        wire,
        "data: \nid: ID:2\n\ndata: \nid: ID:3\n\nevent: e\ndata: \nid: ID:4\n\n",
    )
    .await;
    check_chat(wire, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_forwarded_in_generic_streams_inside_an_event_and_only_digits() {
    check_generic(
        "retry: 10\ndata: a\n\nretry: 1s\ndata: b\n\nretry: 7\n\nretry: 8\nretry: -1\ndata: c\n\n",
        "data: a\nretry: 10\nid: ID:2\n\ndata: b\nid: ID:3\n\ndata: c\nretry: 8\nid: ID:4\n\n",
    )
    .await;
    check_chat("retry: 10\ndata: {}\n\n", "data: {}\nid: ID:2\n\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_the_backend_are_replaced_whatever_they_hold() {
    check_generic(
        "id: 7\ndata: a\n\nid: a\0b\ndata: b\n\nid\ndata: c\n\nid: 01jcv5t0q4e8x2m7n9p3r6s1ab:9\ndata: d\n\n",
        "data: a\nid: ID:2\n\ndata: b\nid: ID:3\n\ndata: c\nid: ID:4\n\ndata: d\nid: ID:5\n\n",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn line_ends_of_every_kind_and_a_byte_order_mark_are_understood() {
    let expected = "event: e\ndata: a\ndata: b\nid: ID:2\n\ndata: c\nid: ID:3\n\n";
    for end in ["\n", "\r\n", "\r"] {
        for bom in ["", "\u{feff}"] {
            let wire = "event: e\ndata: a\ndata: b\n\ndata: c\n\n".replace('\n', end);
            check_generic(&format!("{bom}{wire}"), expected).await;
        }
    }
    // Mixed: a line ends at each of them.
    check_generic("event: e\rdata: a\r\ndata: b\n\r\ndata: c\n\r", expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_byte_order_mark_is_none_of_the_data() {
    check_generic(
        "\u{feff}data: a\u{feff}\n\n\u{feff}data: unknown field\n\ndata: \u{feff}b\n\n",
        "data: a\u{feff}\nid: ID:2\n\ndata: \u{feff}b\nid: ID:3\n\n",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_line_separators_and_control_characters_are_data() {
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\0g\u{1b}h\u{202e}i";
    check_generic(
        &format!("event: {odd}\ndata: {odd}\n\n"),
        &format!("event: {odd}\ndata: {odd}\nid: ID:2\n\n"),
    )
    .await;
    check_chat(
        &format!("data: {{\"x\":\"{odd}\"}}\n\n"),
        &format!("data: {{\"x\":\"{odd}\"}}\nid: ID:2\n\n"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_nobody_knows_pass_unchanged_in_order() {
    check_chat(
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":1}\n\ndata: no json\n\ndata: [1]\n\n",
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":1}\nid: ID:2\n\ndata: no json\nid: ID:3\n\ndata: [1]\nid: ID:4\n\n",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_of_the_backend_are_never_events() {
    check_chat(
        ": OPENROUTER PROCESSING\n\ndata: {\"x\":1}\n\n:\n\n",
        "data: {\"x\":1}\nid: ID:2\n\n",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_dress_of_a_dialect_gives_the_same_events() {
    for dialect in Dialect::ALL {
        let plain = Script {
            id: Some("x".to_owned()),
            ..Script::text("日本 🦀")
        };
        let harness = Harness::start(plain.clone()).await;
        let (expected, _) = ask(&harness.client, dialect).await.all().await;
        for line_end in [LineEnd::Lf, LineEnd::Crlf, LineEnd::Cr] {
            harness.mock.set_script(Script {
                line_end,
                bom: true,
                comment_every: 1,
                upstream_ids: Some(100),
                no_space: true,
                ..plain.clone()
            });
            let (dressed, end) = ask(&harness.client, dialect).await.all().await;
            assert_eq!(end, End::Proper);
            assert_eq!(
                without_ids(&blocks(&dressed)),
                without_ids(&blocks(&expected))
            );
        }
    }
}

// Pace.

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_at_the_client_before_the_next_leaves_the_backend() {
    for dialect in Dialect::ALL {
        let script = Script::tokens(4).step_gate("step");
        let harness = Harness::start(script.clone()).await;
        // Compression is no reason to wait either.
        let client = harness.client.with("accept-encoding", "gzip, br");
        // The head comes before the first event.
        let mut response = ask(&client, dialect).await;
        let request = harness.mock.recorder().request(0).expect("the request");
        let mut due = Vec::new();
        for (before, event) in script.expected(&request.ask(dialect)).iter().enumerate() {
            let gates = harness.mock.gates();
            gates.wait_arrived("step", before + 1).await.expect("waits");
            gates.step("step");
            due.extend(blocks(event));
            // This one comes with what is behind it (protocol.md 7.2).
            if event.starts_with(b"event: message_delta") {
                continue;
            }
            let shown = blocks(&response.body.blocks(due.len()).await);
            assert_eq!(without_ids(&shown), due);
            due.clear();
        }
        assert_eq!(response.body.rest().await, (Vec::new(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_is_sent_as_soon_as_the_backends_is_here() {
    for durable in [true, false] {
        let harness = Harness::start(Script::tokens(3).gate_after(0, "first")).await;
        let body = if durable {
            question()
        } else {
            String::from("{\"stream\":true}")
        };
        let response = harness
            .client
            .send("POST", "/v1/chat/completions", &body)
            .await;
        assert_eq!(response.status, 200);
        harness.mock.gates().release("first");
        assert_eq!(response.all().await.1, End::Proper);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_come_from_the_head_on_between_blocks_and_are_no_entries() {
    let beat = Duration::from_millis(100);
    let script = Script::tokens(3)
        .gate_after(0, "first")
        .gate_after(2, "second");
    let harness = Setup::new(script)
        .config(move |config| config.edge.heartbeat = beat)
        .start()
        .await;
    let before = tokio::time::Instant::now();
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    for count in 1..=3 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
        assert!(before.elapsed() >= beat * count, "not before it is due");
    }
    harness.mock.gates().release("first");
    let mut all = response.body.blocks(2).await;
    // An event and a heartbeat may have met on the way; after that come heartbeats alone.
    for _ in 0..3 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
    harness.mock.gates().release("second");
    let (more, end) = response.body.rest().await;
    assert_eq!(end, End::Proper);
    all.extend_from_slice(&more);
    let (replay, _) = harness.client.events(&id).await.all().await;
    assert_eq!(blocks(&replay), blocks(&all));
    assert!(
        !replay.windows(2).any(|pair| pair == b"\n:"),
        "a heartbeat was kept"
    );
    let seqs: Vec<u64> = blocks(&replay).iter().map(Block::seq).collect();
    assert_eq!(seqs, (2..2 + seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_heartbeat_is_sent_while_events_flow() {
    let script = Script {
        pace: Duration::from_millis(25),
        ..Script::tokens(120)
    };
    let harness = Setup::new(script)
        .config(|config| config.edge.heartbeat = Duration::from_secs(2))
        .start()
        .await;
    let (body, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Proper);
    let text = String::from_utf8(body).expect("UTF-8");
    assert!(!text.lines().any(|line| line == ":"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_reader_gets_heartbeats_too() {
    let harness = Setup::new(Script::tokens(3).stall_after(2))
        .config(|config| config.edge.heartbeat = Duration::from_millis(50))
        .start()
        .await;
    let mut first = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = first.id();
    drop(first.body.blocks(2).await);
    let mut resumed = harness
        .client
        .with("last-event-id", &format!("{id}:3"))
        .events(&id)
        .await;
    for _ in 0..3 {
        assert_eq!(resumed.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
}

// The head.

fn names(response: &Response) -> Vec<&str> {
    let mut names: Vec<_> = response
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != "date")
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_is_the_backends_but_for_what_a_durable_response_says_itself() {
    let script = Script {
        content_type: Some("text/event-stream; charset=utf-8; x=1".to_owned()),
        framing: Framing::Length,
        ..Script::tokens(3)
    }
    .header("etag", "\"e\"")
    .header("accept-ranges", "bytes")
    .header("cache-control", "public, max-age=60")
    .header("x-accel-buffering", "yes")
    .header("connection", "x-hop")
    .header("x-hop", "1")
    .header("keep-alive", "timeout=5")
    .header("proxy-authenticate", "Basic")
    .header("x-streamweld-stream-id", "forged")
    .header("x-streamweld-durability", "forged")
    .header("x-streamweld-request-id", "forged")
    .header("x-request-id", "r")
    .header("openai-processing-ms", "7")
    .header("set-cookie", "a=1")
    .header("set-cookie", "b=2");
    let harness = Harness::start(script).await;
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(
        names(&response),
        [
            "cache-control",
            "content-type",
            "openai-processing-ms",
            "set-cookie",
            "set-cookie",
            "transfer-encoding",
            "x-accel-buffering",
            "x-request-id",
            "x-streamweld-durability",
            "x-streamweld-request-id",
            "x-streamweld-stream-id",
        ]
    );
    for (name, value) in [
        ("cache-control", "no-cache, no-store, no-transform"),
        ("content-type", "text/event-stream; charset=utf-8; x=1"),
        ("transfer-encoding", "chunked"),
        ("x-accel-buffering", "no"),
        ("x-request-id", "r"),
        ("x-streamweld-durability", "durable"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
    let id = response.id();
    for ulid in [
        &id,
        response.header("x-streamweld-request-id").expect("an id"),
    ] {
        assert!(is_ulid(ulid), "{ulid}");
    }
    assert_ne!(response.header("x-streamweld-request-id"), Some(&*id));
    drop(response.all().await);

    let attached = harness.client.events(&id).await;
    assert_eq!(
        names(&attached),
        [
            "cache-control",
            "content-type",
            "transfer-encoding",
            "x-accel-buffering",
            "x-streamweld-durability",
            "x-streamweld-request-id",
            "x-streamweld-stream-id",
            "x-streamweld-verdict",
        ]
    );
    assert_eq!(attached.header("content-type"), Some("text/event-stream"));
    assert_eq!(attached.id(), id);
}

fn is_ulid(text: &str) -> bool {
    let digits = "0123456789abcdefghjkmnpqrstvwxyz";
    text.len() == 26 && text.chars().all(|digit| digits.contains(digit)) && &text[..1] <= "7"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coding_that_was_undone_is_not_named() {
    let script = Script {
        encoding: Encoding::Gzip,
        ..Script::tokens(3)
    };
    let harness = Harness::start(script).await;
    let client = harness.client.with("accept-encoding", "gzip, br");
    let response = ask(&client, Dialect::OpenAiChat).await;
    assert_eq!(response.header("content-encoding"), None);
    assert_eq!(blocks(&response.all().await.0).len(), 6);
    let request = harness.mock.recorder().request(0).expect("the request");
    assert_eq!(request.header("accept-encoding"), Some("identity"));
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_case_of_the_media_type_do_not_matter() {
    for media in ["Text/Event-Stream", "text/event-stream ; charset=UTF-8"] {
        let script = Script {
            content_type: Some(media.to_owned()),
            ..Script::tokens(1)
        };
        let harness = Harness::start(script).await;
        let response = ask(&harness.client, Dialect::Generic).await;
        assert_eq!(response.header("content-type"), Some(media));
        assert!(is_ulid(&response.id()));
        patience(response.all()).await;
    }
}
