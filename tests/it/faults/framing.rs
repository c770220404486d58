//! Bytes and heads that are framed badly, or oddly (rows 7, 9, 11, 12 and 14).

use std::time::Duration;

use streamweld_mock::{Deed, Dialect, FaultRelay, Mock, Raw, RelayStep, Script, Writes};
use streamweld_tests::{CHAT, End, Harness, Setup, ask, blocks, events, patience, without_ids};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::in_front_of;

const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;

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
