//! What backends, networks and clients do to a stream, one story for each fault. The numbers are those of the list of
//! faults that this project tests itself against.
//!
//! In each story, whoever reads sees every event once and in order, and one terminal; `[DONE]` only after a real
//! finish.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{
    Cut, Deed, Dialect, Encoding, End as MockEnd, ErrorEvent, FaultRelay, FullBacklog, Mock,
    Outcome, Raw, RelayStep, Script, Writes,
};
use streamweld_tests::{
    Block, CHAT, Client, End, Harness, Setup, Shown, ask, blocks, events, patience, question,
    reset, without_ids,
};
use streamweld_upstream::Backend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;

/// Waits until a generation is in this state.
async fn reaches(client: &Client, id: &str, status: &str) -> Value {
    patience(async {
        loop {
            let state = client.get(&format!("/v1/streams/{id}")).await.json().await;
            if state["status"] == status {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn stop(client: &Client, id: &str) -> (u16, Value) {
    let response = client
        .send("POST", &format!("/v1/streams/{id}/stop"), "")
        .await;
    (response.status, response.json().await)
}

/// A server in front of the backend at this URL.
fn in_front_of(url: &str) -> Setup {
    let url = url.parse().expect("a URL");
    Setup::new(Script::new()).config(move |config| config.backend = Backend::named("llm", url))
}

// The backend.

#[tokio::test(flavor = "multi_thread")]
async fn row_01_engine_killed_after_every_event() {
    let script = || Script::tokens(3).id("x");
    for k in 0..=5 {
        let mock = Mock::start(script().gate_after(k, "kill"))
            .await
            .expect("a port");
        let harness = in_front_of(&mock.url()).start().await;
        let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
        let id = response.id();
        let mut body = response.body.blocks(k).await;
        mock.kill(Cut::Rst).await;
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        let shown = events(&body);
        let state = harness
            .client
            .get(&format!("/v1/streams/{id}"))
            .await
            .json()
            .await;
        // Five events: the role, three of text, the finish. After it the answer is whole.
        if k == 5 {
            assert_eq!((shown.len(), end), (5, End::Proper));
            assert_eq!(state["terminal"]["end"], "cut");
        } else {
            assert_eq!((shown.len(), end), (k + 1, End::Fin));
            assert_eq!(state["terminal"]["code"], "truncated");
            assert!(shown[k].contains("streamweld_error"));
        }
        assert!(!shown.contains(&"[DONE]".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_02_engine_told_to_terminate_aborts_with_a_false_success() {
    for k in 0..=4 {
        let harness = Harness::start(Script::tokens(8).abort_after(k)).await;
        let shown = Shown::of(&harness, Dialect::OpenAiChat).await;
        let expected = shown.expected(&harness, &Script::tokens(8).abort_after(k));
        assert_eq!(expected.len(), k);
        shown.assert_failed(&expected, "aborted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_03_engine_hangs_and_its_late_bytes_are_nobodys() {
    let harness = Setup::new(Script::tokens(8).gate_after(3, "hang"))
        .config(|config| config.edge.heartbeat = Duration::from_millis(40))
        .start()
        .await;
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    drop(response.body.blocks(3).await);
    for _ in 0..5 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
    let (status, stopped) = stop(&harness.client, &id).await;
    assert_eq!((status, &stopped["status"]), (200, &json!("stopped")));
    harness.mock.gates().release("hang");
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    assert_eq!(response.body.rest().await.1, End::Proper);
    let state = reaches(&harness.client, &id, "stopped").await;
    assert_eq!(state["last_seq"], 5, "open, three events, the terminal");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_04_reset_inside_a_character_or_line_at_every_byte() {
    let text = |text| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let wire = format!("data: {}\n\ndata: {}\n\n", text("日"), text("🦀"));
    let harness = Harness::start(Script::new()).await;
    for n in 0..=wire.len() {
        let mut chunk = format!("{n:x}\r\n").into_bytes();
        chunk.extend_from_slice(&wire.as_bytes()[..n]);
        chunk.extend_from_slice(b"\r\n");
        let raw = Raw::new().stream_head();
        let raw = if n == 0 { raw } else { raw.bytes(chunk) };
        harness.mock.push_script(Script::raw(raw.rst()));
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        let id = response.id();
        let (body, end) = response.all().await;
        assert_eq!(end, End::Fin, "{n} bytes");
        let mut shown = blocks(&body);
        let form = shown.pop().expect("the error form");
        assert!(form.data.expect("data").contains("truncated"));
        let whole = wire.as_bytes()[..n]
            .windows(2)
            .filter(|pair| pair == b"\n\n")
            .count();
        let whole = blocks(wire.as_bytes()).into_iter().take(whole);
        assert_eq!(without_ids(&shown), whole.collect::<Vec<_>>(), "{n} bytes");
        let (replay, _) = harness.client.events(&id).await.all().await;
        assert_eq!(blocks(&replay).len(), shown.len() + 1, "{n} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_05_close_without_a_finish() {
    for end in [MockEnd::NoFinish, MockEnd::SentinelOnly] {
        let harness = Harness::start(Script::tokens(4).end(end)).await;
        let (body, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
        assert_eq!(end, End::Fin);
        let shown = events(&body);
        assert_eq!(shown.len(), 6);
        assert!(shown[5].contains("truncated") && !shown.contains(&"[DONE]".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_06_half_open_engine_is_left_when_asked_to() {
    let mock = Mock::start(Script::tokens(8).gate_after(3, "more"))
        .await
        .expect("a port");
    let relay = FaultRelay::start(mock.addr()).await.expect("a port");
    let harness = in_front_of(&relay.url())
        .config({
            let url = relay.url().parse().expect("a URL");
            move |config| {
                config.backend = Backend::named("llm", url);
                config.edge.heartbeat = Duration::from_millis(40);
            }
        })
        .start()
        .await;
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    drop(response.body.blocks(3).await);
    relay.pause();
    mock.gates().release("more");
    for _ in 0..3 {
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b":\n"[..]));
    }
    assert_eq!(stop(&harness.client, &id).await.0, 200);
    assert_eq!(response.body.rest().await.1, End::Proper);
    relay.resume();
    relay.wait_open(0).await.expect("the socket is not leaked");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_07_one_byte_at_a_time() {
    let whole = Script {
        id: Some("x".to_owned()),
        ..Script::text("日本語 🦀")
    };
    for dialect in Dialect::ALL {
        let harness = Harness::start(whole.clone()).await;
        let (expected, _) = ask(&harness.client, dialect).await.all().await;
        harness
            .mock
            .set_script(whole.clone().writes(Writes::Bytes(1)));
        let (split, end) = ask(&harness.client, dialect).await.all().await;
        assert_eq!(end, End::Proper);
        assert_eq!(
            without_ids(&blocks(&split)),
            without_ids(&blocks(&expected))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_07_one_byte_at_a_time_with_pauses_from_a_relay() {
    let mock = Mock::start(Script::tokens(1)).await.expect("a port");
    let relay = FaultRelay::start(mock.addr()).await.expect("a port");
    relay.set_plan(
        streamweld_mock::RelayPlan::new().to_client(RelayStep::Split {
            bytes: 1,
            every: Duration::from_millis(1),
        }),
    );
    let harness = in_front_of(&relay.url()).start().await;
    let (body, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(events(&body).len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_08_errors_before_and_after_the_head() {
    for status in [429, 503] {
        let harness = Harness::start(Script::error(status).header("retry-after", "3")).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("retry-after"), Some("3"));
        assert_eq!(harness.mock.recorder().count(), 1);
    }
    let error = ErrorEvent {
        message: "overloaded".to_owned(),
        code: 503,
        sentinel: true,
        ..ErrorEvent::default()
    };
    let harness = Harness::start(Script::tokens(3).end(MockEnd::ErrorAfter(error))).await;
    let shown = Shown::of(&harness, Dialect::OpenAiChat).await;
    let terminal = shown.assert_failed(&[], "upstream_error");
    assert_eq!(terminal["upstream"]["code"], "503");
    assert_eq!(terminal["upstream"]["message"], "overloaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_09_a_line_of_64_mib() {
    let raw = Raw::new()
        .write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        .write(format!("data: {CHUNK}\n\n"))
        .write("data: ")
        .repeat("x".repeat(64 << 10), 1024)
        .fin();
    let harness = Setup::new(Script::raw(raw))
        .config(|config| config.generation.max_event = 1 << 20)
        .start()
        .await;
    let (body, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Fin);
    let shown = events(&body);
    assert_eq!(shown.len(), 2);
    assert!(shown[1].contains("event_too_large"), "{}", shown[1]);
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert!(ending.bytes < 32 << 20, "it was not read to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_gzip_bomb() {
    let script = Script {
        encoding: Encoding::Gzip,
        ..Script::tokens(4)
    }
    .huge_event_after(3, 12 << 20);
    let harness = Harness::start(script).await;
    let shown = Shown::of(&harness, Dialect::OpenAiChat).await;
    let events = blocks(&shown.replay.0).len() - 1;
    assert_eq!(events, 3, "what came before the bomb");
    shown.assert_failed(&blocks(&shown.replay.0)[..events], "encoding_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_codings_nobody_asked_for_are_undone() {
    let script = Script::tokens(4).id("x");
    let harness = Harness::start(script.clone()).await;
    let (expected, _) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    harness.mock.set_script(Script {
        encoding: Encoding::Gzip,
        ..script
    });
    let (gzip, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(without_ids(&blocks(&gzip)), without_ids(&blocks(&expected)));

    let wire = b"data: a\n\ndata: b\n\n";
    for (coding, body) in [("deflate", zlib(wire)), ("deflate", stored(wire))] {
        harness.mock.set_script(coded(coding, &[&body]));
        let (shown, end) = ask(&harness.client, Dialect::Generic).await.all().await;
        assert_eq!(
            (events(&shown), end),
            (vec!["a".into(), "b".into()], End::Proper)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_coding_that_is_corrupt_or_breaks_off_is_an_error() {
    let whole = zlib(b"data: a\n\n");
    let mut corrupt = whole.clone();
    *corrupt.last_mut().expect("a checksum") ^= 1;
    let torn = &whole[..whole.len() - 2];
    for body in [&corrupt, torn] {
        // The event has been read before what is wrong comes.
        let (good, bad) = body.split_at(whole.len() - 4);
        let harness = Harness::start(coded("deflate", &[good, bad])).await;
        let shown = Shown::held(&harness, Dialect::Generic, 1, Some("rest")).await;
        shown.assert_failed(&blocks(b"data: a\n\n"), "encoding_error");
    }
    let harness = Harness::start(coded("gzip", &[b"\x1f\x8bno gzip at all"])).await;
    let shown = Shown::of(&harness, Dialect::Generic).await;
    shown.assert_failed(&[], "encoding_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_coding_nobody_knows_is_a_bad_response() {
    for codings in [
        &["br"][..],
        &["zstd"],
        &["gzip, br"],
        &["compress"],
        &["gzip", "br"],
        &["identity", "gzip"],
    ] {
        let script = codings.iter().fold(Script::tokens(1), |script, coding| {
            script.header("content-encoding", *coding)
        });
        let harness = Harness::start(script).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(
            response.error_code().await,
            (502, "backend_bad_response".to_owned())
        );
        let recorder = harness.mock.recorder();
        patience(recorder.wait_closed(0)).await.expect("is left");
        let list = harness.admin.get("/admin/streams").await.json().await;
        assert_eq!(list["data"], json!([]));
    }
    // `identity` is none.
    let harness = Harness::start(Script::tokens(1).header("content-encoding", "identity")).await;
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(response.all().await.1, End::Proper);
}

/// An event stream with a body in this coding, held at the gate `rest` before each part but the first.
fn coded(coding: &str, parts: &[&[u8]]) -> Script {
    let length = parts.concat().len();
    let mut raw = Raw::new().write(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: {coding}\r\ncontent-length: {length}\r\n\r\n"
    ));
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            raw = raw.gate("rest");
        }
        raw = raw.bytes(*part);
    }
    Script::raw(raw)
}

/// One stored block of raw deflate.
fn stored(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short");
    let mut out = vec![1];
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(data);
    out
}

/// The same in the zlib format.
fn zlib(data: &[u8]) -> Vec<u8> {
    let (a, b) = data.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    let mut out = vec![0x78, 0x01];
    out.extend_from_slice(&stored(data));
    out.extend_from_slice(&((b << 16) | a).to_be_bytes());
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn row_11_carriage_returns_a_byte_order_mark_nul_ids_retry_and_comments() {
    let raw = Raw::new().stream_head().chunk(
        "\u{feff}: hello\r\rid: a\0b\rretry: 1\rdata: {\"x\":1}\r\r: ping\r\rid: 9\r\rdata: {\"x\":2}\r\r",
    );
    let harness = Harness::start(Script::raw(raw.last_chunk())).await;
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    let (body, _) = response.all().await;
    let text = String::from_utf8(body).expect("UTF-8");
    let expected = format!("data: {{\"x\":1}}\nid: {id}:2\n\ndata: {{\"x\":2}}\nid: {id}:3\n\n");
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_12_contradictory_framing_is_refused_and_its_connection_not_used_again() {
    let stream = "content-type: text/event-stream\r\n";
    for fields in [
        "content-length: 11\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 11\r\n",
        "content-length: 11\r\ncontent-length: 12\r\n",
        "content-length: 11, 12\r\n",
        "content-length: +11\r\n",
        "content-length: x\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: xchunked\r\n",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{stream}{fields}\r\n");
        let raw = Raw::new().write(format!("{head}b\r\ndata: abc\n\n\r\n0\r\n\r\n"));
        check_not_pooled(Script::raw(raw), Some(502)).await;
    }
    let old = format!("HTTP/1.0 200 OK\r\n{stream}transfer-encoding: chunked\r\n\r\n0\r\n\r\n");
    check_not_pooled(Script::raw(Raw::new().write(old)), Some(502)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_12_a_bad_chunk_size_is_a_cut() {
    let bad = Script::tokens(3).mark(2, Deed::BadChunk);
    check_not_pooled(bad, None).await;
    for size in ["zz", "-1", "", "ffffffffffffffffff"] {
        let raw = Raw::new()
            .stream_head()
            .chunk(format!("data: {CHUNK}\n\n"))
            .write(format!("{size}\r\n"))
            .stall();
        let (body, end) = check_not_pooled(Script::raw(raw), None).await;
        assert_eq!(end, End::Fin);
        let shown = events(&body);
        assert_eq!(shown.len(), 2, "{size:?}");
        assert!(shown[1].contains("truncated"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_12_bytes_behind_the_end_are_nobodys_answer() {
    let next = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled";
    let script = Script {
        after_end: Some(next.to_owned()),
        ..Script::tokens(1)
    };
    let (body, end) = check_not_pooled(script, None).await;
    assert_eq!(end, End::Proper);
    assert!(!String::from_utf8_lossy(&body).contains("smuggled"));
}

/// Gets one answer of this script, then an ordinary one, which must come over another connection.
async fn check_not_pooled(script: Script, status: Option<u16>) -> (Vec<u8>, End) {
    let harness = Harness::start(Script::tokens(2)).await;
    harness.mock.push_script(script);
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    if let Some(status) = status {
        assert_eq!(response.status, status);
        assert_eq!(response.header("x-streamweld-stream-id"), None);
    }
    let first = response.all().await;
    let second = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(second.status, 200);
    let (body, end) = second.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    let connections: Vec<usize> = harness
        .mock
        .recorder()
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [1, 2]);
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn row_13_an_accept_queue_that_is_full_costs_no_more_than_the_connect_timeout() {
    let backlog = FullBacklog::bind().expect("a port");
    let url = format!("http://{}", backlog.addr()).parse().expect("a URL");
    let harness = Setup::new(Script::new())
        .config(move |config| {
            config.backend = Backend::named("llm", url);
            config.upstream.connect_timeout = Duration::from_millis(200);
        })
        .start()
        .await;
    let begun = Instant::now();
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(
        response.error_code().await,
        (504, "backend_timeout".to_owned())
    );
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_14_an_unasked_101_is_no_upgrade() {
    let raw = || {
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
        Script::raw(Raw::new().write(head).stall())
    };
    let harness = Harness::start(raw()).await;
    harness.mock.set_script_at("/v1/models", raw());
    for (method, target) in [("POST", "/v1/chat/completions"), ("GET", "/v1/models")] {
        let response = harness.client.send(method, target, "").await;
        assert_eq!(
            response.error_code().await,
            (502, "backend_bad_response".to_owned())
        );
    }
    let recorder = harness.mock.recorder();
    recorder.wait_open_connections(0).await.expect("is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_14_interim_answers_are_dropped() {
    let script = Script {
        interim: vec![103, 102, 100, 103],
        ..Script::tokens(2)
    };
    let harness = Harness::start(script).await;
    let mut stream = TcpStream::connect(harness.client.addr)
        .await
        .expect("connects");
    let length = CHAT.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{CHAT}"
    );
    stream.write_all(request.as_bytes()).await.expect("is sent");
    let mut all = String::new();
    patience(stream.read_to_string(&mut all))
        .await
        .expect("UTF-8");
    assert!(all.starts_with("HTTP/1.1 200 "), "{all}");
    assert_eq!(all.matches("HTTP/1.1 ").count(), 1);
}

// Readers.

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_reader_that_leaves_is_no_stop() {
    for rude in [false, true] {
        let harness = Harness::start(Script::tokens(8).gate_after(3, "left")).await;
        let id = leave(&harness, "continue", rude).await;
        harness.mock.gates().release("left");
        reaches(&harness.client, &id, "done").await;
        let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
        assert_eq!(ending.outcome, Outcome::Finished);
        let (replay, end) = harness.client.events(&id).await.all().await;
        assert_eq!((blocks(&replay).len(), end), (11, End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_cancel_closes_the_connection_to_the_backend_within_a_second() {
    for rude in [false, true] {
        // Of a few tries the best counts: this machine may have been busy.
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let harness = Harness::start(Script::tokens(8).stall_after(3)).await;
            let id = leave(&harness, "cancel", rude).await;
            let left = Instant::now();
            let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
            best = best.min(left.elapsed());
            assert_ne!(ending.outcome, Outcome::Finished);
            let state = reaches(&harness.client, &id, "error").await;
            assert_eq!(state["terminal"]["code"], "orphan_cancelled");
            let (replay, end) = harness.client.events(&id).await.all().await;
            assert_eq!((blocks(&replay).len(), end), (4, End::Proper));
        }
        assert!(best < Duration::from_secs(1), "{best:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_reader_that_comes_back_in_time_ends_the_wait() {
    for rude in [false, true] {
        let harness = Harness::start(Script::tokens(8).gate_after(3, "left")).await;
        let id = leave(&harness, "cancel_after=1h", rude).await;
        reaches(&harness.client, &id, "streaming").await;
        harness.mock.gates().release("left");
        let back = harness
            .client
            .with("last-event-id", &format!("{id}:4"))
            .events(&id)
            .await;
        let (body, end) = back.all().await;
        assert_eq!((blocks(&body).len(), end), (8, End::Proper));
    }
    for rude in [false, true] {
        let harness = Harness::start(Script::tokens(8).stall_after(3)).await;
        let left = Instant::now();
        let id = leave(&harness, "cancel_after=300ms", rude).await;
        let state = reaches(&harness.client, &id, "error").await;
        assert!(left.elapsed() >= Duration::from_millis(300));
        assert_eq!(state["terminal"]["code"], "orphan_cancelled");
        let recorder = harness.mock.recorder();
        recorder.wait_open_connections(0).await.expect("is closed");
    }
}

/// Reads three events and leaves. Gives the id.
async fn leave(harness: &Harness, policy: &str, rude: bool) -> String {
    let client = harness.client.with("x-streamweld-orphan-policy", policy);
    let mut response = ask(&client, Dialect::OpenAiChat).await;
    let id = response.id();
    drop(response.body.blocks(3).await);
    let stream = response.body.into_stream();
    if rude {
        reset(stream);
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn row_17_a_slow_reader_holds_back_nobody_and_misses_nothing() {
    // More than the buffers of two sockets hold.
    let script = Script::tokens(60_000).writes(Writes::Batch(50));
    let harness = Harness::start(script).await;
    let mut slow = harness
        .client
        .post_slowly("/v1/chat/completions", &question())
        .await;
    let id = slow.id();
    // The producer and the others are done before the slow one has begun.
    let ending = harness
        .mock
        .recorder()
        .with_deadline(Duration::from_secs(30))
        .wait_closed(0)
        .await
        .expect("ends");
    assert_eq!(ending.outcome, Outcome::Finished);
    let (whole, end) = harness.client.events(&id).await.all().await;
    assert_eq!((blocks(&whole).len(), end), (60_003, End::Proper));
    let state = reaches(&harness.client, &id, "done").await;
    assert_eq!(state["readers"], 0, "a reader of what has ended is none");
    let (late, end) = slow.body.rest().await;
    assert_eq!(end, End::Proper);
    assert!(late == whole, "the slow reader was shown something else");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_18_a_reader_that_has_stopped_is_closed_and_can_resume() {
    let script = Script::tokens(60_000)
        .writes(Writes::Batch(50))
        .gate_after(60_000, "end");
    let harness = Setup::new(script)
        .config(|config| config.edge.write_timeout = Duration::from_millis(1500))
        .start()
        .await;
    let stopped = harness
        .client
        .post_slowly("/v1/chat/completions", &question())
        .await;
    let id = stopped.id();
    patience(async {
        let state = format!("/v1/streams/{id}");
        while harness.client.get(&state).await.json().await["readers"] != 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    harness.mock.gates().release("end");
    // What had been written before is still there, perhaps torn, and its last whole block is a cursor.
    let (had, end) = stopped.all().await;
    assert_ne!(end, End::Proper);
    let text = String::from_utf8_lossy(&had).into_owned();
    let whole = &text[..text.rfind("\n\n").map_or(0, |at| at + 2)];
    let had = blocks(whole.as_bytes());
    let cursor = had.last().and_then(|block| block.id.clone());
    let cursor = cursor.unwrap_or_else(|| format!("{id}:0"));
    let back = harness.client.with("last-event-id", &cursor);
    let (rest, end) = back.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    let all = [had, blocks(&rest)].concat();
    let seqs: Vec<u64> = all.iter().map(Block::seq).collect();
    assert_eq!(seqs, (2..60_005).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn row_19_a_head_that_takes_too_long_closes_its_connection() {
    let harness = Setup::new(Script::tokens(2))
        .config(|config| config.edge.header_timeout = Duration::from_millis(400))
        .start()
        .await;
    for begun in [
        "",
        "G",
        "PRI * HTTP/2",
        "GET /v1/models HTTP/1.1\r\n",
        "GET /v1/models HTTP/1.1\r\nhost: x\r\nx-slow: ",
    ] {
        let mut stream = TcpStream::connect(harness.client.addr)
            .await
            .expect("connects");
        stream.write_all(begun.as_bytes()).await.expect("is sent");
        let mut answer = Vec::new();
        // Closed or reset, perhaps after a 408 or a GOAWAY.
        let closed = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
        assert!(closed.await.is_ok(), "still open after {begun:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_19_a_head_that_trickles_in_is_cut_at_the_same_deadline() {
    let harness = Setup::new(Script::tokens(2))
        .config(|config| config.edge.header_timeout = Duration::from_millis(400))
        .start()
        .await;
    let mut stream = TcpStream::connect(harness.client.addr)
        .await
        .expect("connects");
    let (mut read, mut write) = stream.split();
    let trickle = async {
        let mut head = String::from("GET /v1/models HTTP/1.1\r\nx-slow: ");
        for _ in 0..10_000 {
            head.push('x');
        }
        for byte in head.bytes() {
            if write.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = trickle => panic!("it was let finish"),
        closed = patience(read.read_to_end(&mut answer)) => drop(closed),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_19_idle_connections_do_not_matter_to_others() {
    let harness = Harness::start(Script::tokens(4)).await;
    let mut idle = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(harness.client.addr)
            .await
            .expect("connects");
        if number % 2 == 0 {
            let begun = b"POST /v1/chat/completions HTTP/1.1\r\nx-slow: ";
            stream.write_all(begun).await.expect("is sent");
        }
        idle.push(stream);
    }
    for _ in 0..20 {
        let (_, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
        assert_eq!(end, End::Proper);
    }
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_20_many_readers_that_resume_at_once_all_see_the_same() {
    let harness = Harness::start(Script::tokens(60).gate_after(20, "join")).await;
    let mut first = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = first.id();
    let mut expected = first.body.blocks(20).await;
    let mut readers = JoinSet::new();
    for number in 0..300_u64 {
        let client = harness
            .client
            .with("last-event-id", &format!("{id}:{}", number % 22));
        let id = id.clone();
        readers.spawn(async move { (number % 22, client.events(&id).await.all().await) });
        if number == 150 {
            harness.mock.gates().release("join");
        }
    }
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    expected.extend_from_slice(&rest);
    let expected = blocks(&expected);
    assert_eq!(expected.len(), 63);
    while let Some(reader) = readers.join_next().await {
        let (after, (body, end)) = reader.expect("no panic");
        assert_eq!(end, End::Proper);
        let rest: Vec<Block> = expected
            .iter()
            .filter(|block| block.seq() > after)
            .cloned()
            .collect();
        assert!(blocks(&body) == rest, "after {after}");
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_21_bad_cursors_get_definite_answers() {
    let harness = Harness::start(Script::tokens(4)).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        ids.push(response.id());
        drop(response.all().await);
    }
    let (id, other) = (&ids[0], &ids[1]);
    for (cursor, status, code) in [
        (format!("{id}:900"), 409, "cursor_ahead"),
        ("900".to_owned(), 409, "cursor_ahead"),
        (format!("{id}:18446744073709551615"), 409, "cursor_ahead"),
        (format!("{id}:18446744073709551616"), 400, "invalid_cursor"),
        (format!("{id}:-1"), 400, "invalid_cursor"),
        (format!("{id}:01"), 400, "invalid_cursor"),
        (format!("{id}:"), 400, "invalid_cursor"),
        (format!("{id}:3~1"), 400, "invalid_cursor"),
        (format!("{id}:3~2"), 409, "journal_regressed"),
        (format!("{}:3", id.to_uppercase()), 400, "invalid_cursor"),
        ("text".to_owned(), 400, "invalid_cursor"),
        (String::new(), 400, "invalid_cursor"),
        (format!("{other}:3"), 400, "cursor_mismatch"),
    ] {
        let client = harness.client.with("last-event-id", &cursor);
        let error = client.events(id).await.error_code().await;
        assert_eq!(error, (status, code.to_owned()), "{cursor:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_22_the_same_idempotency_key_fifty_times_is_one_request() {
    let harness = Harness::start(Script::tokens(8).head_gate("head")).await;
    let client = harness.client.with("idempotency-key", "k");
    let mut readers = JoinSet::new();
    for _ in 0..50 {
        let client = client.clone();
        readers.spawn(async move {
            let response = client.chat().await;
            (response.id(), response.all().await)
        });
    }
    let recorder = harness.mock.recorder();
    recorder.wait_requests(1).await.expect("comes");
    harness.mock.gates().release("head");
    let mut ids = BTreeSet::new();
    let mut bodies = BTreeSet::new();
    while let Some(reader) = readers.join_next().await {
        let (id, (body, end)) = reader.expect("no panic");
        assert_eq!(end, End::Proper);
        assert_eq!(blocks(&body).len(), 11);
        ids.insert(id);
        bodies.insert(body);
    }
    assert_eq!((ids.len(), bodies.len()), (1, 1));
    assert_eq!(recorder.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_23_a_stop_that_races_with_the_end_gives_one_terminal() {
    let harness = Harness::start(Script::tokens(2).gate_after(4, "end")).await;
    for round in 0..40 {
        harness.mock.gates().close("end");
        let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
        let id = response.id();
        let mut body = response.body.blocks(4).await;
        let mut stops = JoinSet::new();
        for _ in 0..4 {
            let (client, id) = (harness.client.clone(), id.clone());
            stops.spawn(async move { stop(&client, &id).await });
        }
        harness.mock.gates().release("end");
        let mut answers = Vec::new();
        while let Some(answer) = stops.join_next().await {
            answers.push(answer.expect("no panic"));
        }
        let (more, end) = response.body.rest().await;
        body.extend_from_slice(&more);
        assert_eq!(end, End::Proper);
        let shown = blocks(&body);
        let sentinels = shown
            .iter()
            .filter(|block| block.data.as_deref() == Some("[DONE]"));
        assert_eq!(sentinels.count(), 1, "round {round}: {shown:#?}");
        // All answers tell of the one terminal.
        let state = harness
            .client
            .get(&format!("/v1/streams/{id}"))
            .await
            .json()
            .await;
        let mut told = String::new();
        for (status, answer) in &answers {
            match state["status"].as_str() {
                Some("done") => {
                    assert_eq!(
                        (*status, &answer["error"]["code"]),
                        (409, &json!("already_terminal"))
                    );
                }
                Some("stopped") => {
                    assert_eq!(
                        (*status, &answer["terminal"]),
                        (200, &answers[0].1["terminal"])
                    );
                    assert_eq!(answer["terminal"]["seq"], state["terminal"]["seq"]);
                }
                other => panic!("{other:?}"),
            }
            write!(told, "{status} ").expect("a string takes it");
        }
        // After the end they are what they were.
        let again = stop(&harness.client, &id).await;
        assert_eq!(again.0, answers[0].0, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_request_that_resumes_is_read_and_dropped() {
    let harness = Harness::start(Script::tokens(4)).await;
    let first = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = first.id();
    let (expected, _) = first.all().await;
    // An image or two, more than the buffers of two sockets hold; the client sends all of it before it reads.
    let body = format!(r#"{{"stream":true,"image":"{}"}}"#, "x".repeat(24 << 20));
    for (after, status) in [(0, 200), (8, 204), (900, 409)] {
        let client = harness
            .client
            .with("last-event-id", &format!("{id}:{after}"));
        let response = patience(client.send("POST", "/v1/chat/completions", &body)).await;
        assert_eq!(response.status, status);
        let (shown, end) = response.all().await;
        assert_eq!(end, End::Proper);
        if status == 200 {
            assert_eq!(shown, expected);
        }
    }
    assert_eq!(harness.mock.recorder().count(), 1);
}
