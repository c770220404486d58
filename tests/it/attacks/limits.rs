//! Requests that are too much: attacks 14, 15 and 16.

use std::io::Write;
use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::frames::{END_HEADERS, END_STREAM, Frame, block, kind, open, request};
use streamweld_tests::{CHAT, Client, End, Harness, Response, Setup, Wire, metric, patience};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::{assert_serves, start, until};

async fn put(client: &Client, fields: &str, body: &[u8]) -> serde_json::Value {
    let head = format!(
        "PUT /echo HTTP/1.1\r\nhost: h\r\n{fields}content-length: {}\r\n\r\n",
        body.len()
    );
    let answer = client.raw(&[head.as_bytes(), body].concat()).await;
    assert_eq!(answer.status, 200);
    answer.json().await
}

/// Over HTTP/2 the same bounds hold for fields and targets.
#[tokio::test(flavor = "multi_thread")]
async fn row_15_heads_are_bounded_over_http_2_as_well() {
    let harness = start().await;
    let long = "x".repeat(16 << 10);
    let wide = |count| vec![("x-a".to_owned(), "x".repeat(12 << 10)); count];
    for fields in [
        request("GET", &format!("/echo/{long}")),
        [request("GET", "/echo"), wide(6)].concat(),
        [request("GET", "/echo"), wide(100)].concat(),
    ] {
        let (mut sending, mut receiving) = open(&harness.client).await;
        let block = block(&fields);
        let mut parts = block.chunks(16 << 10).peekable();
        let mut at = (kind::HEADERS, END_STREAM);
        while let Some(part) = parts.next() {
            let last = if parts.peek().is_none() {
                END_HEADERS
            } else {
                0
            };
            sending
                .send(&[Frame::new(at.0, at.1 | last, 1, part)])
                .await;
            at = (kind::CONTINUATION, 0);
        }
        let answered = [kind::HEADERS, kind::RST_STREAM, kind::GOAWAY];
        let answer = receiving.first_of(&answered).await;
        if let Some(answer) = answer.filter(|answer| answer.kind == kind::HEADERS) {
            // 200 has a place of its own in the table of RFC 7541, and what is told here has none.
            assert_eq!(answer.payload.first(), Some(&0x48), "414 or 431");
        }
        assert_eq!(harness.mock.recorder().count(), 0);
    }
    assert_serves(&harness.client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_15_deep_and_odd_json_does_no_harm() {
    let harness = start().await;
    let deep = |open: &str, close: &str, depth: usize| {
        format!(
            r#"{{"model":"m","stream":true,"messages":{}{}}}"#,
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    let number = |member: &str, value: &str| {
        format!(r#"{{"model":"m","stream":true,"{member}":{value},"messages":[]}}"#)
    };
    let mut bodies = vec![
        deep("[", "]", 200_000),
        deep("[", "", 200_000),
        deep(r#"{"a":"#, "}", 50_000).replace(r#"{"a":}"#, r#"{"a":1}"#),
        r#"{"stream":true,"stream":false,"model":"m","model":["m"]}"#.to_owned(),
        format!(r#"{{"model":"{}","stream":true}}"#, "m".repeat(1 << 20)),
        r#"{"model":"\ud800","stream":true}"#.to_owned(),
        r#"{"model":"m","stream":true"#.to_owned(),
        "\0".repeat(1 << 10),
        "[".repeat(100),
    ];
    for member in [
        "n",
        "best_of",
        "max_tokens",
        "max_completion_tokens",
        "logprobs",
        "seed",
    ] {
        for value in [
            "0",
            "-1",
            "1e308",
            "1e999",
            "18446744073709551616",
            "\"1\"",
            "null",
            "{}",
        ] {
            bodies.push(number(member, value));
        }
        bodies.push(number(member, &"9".repeat(10_000)));
    }
    for body in &bodies {
        let count = harness.mock.recorder().count();
        let answer = harness
            .client
            .send("POST", "/v1/chat/completions", body)
            .await;
        assert!(answer.status < 500, "{body:.80}");
        answer.all().await;
        let seen = harness.mock.recorder().request(count).expect("forwarded");
        assert!(*seen.body == *body.as_bytes(), "to the letter: {body:.80}");
    }
    assert_serves(&harness.client).await;
}

/// What is compressed is the backend's to undo: here it is as long as it is.
#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_compressed_request_body_is_not_undone_here() {
    let harness = Setup::new(Script::tokens(3))
        .config(|config| config.edge.max_request_body = Some(1 << 20))
        .start()
        .await;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        bomb.write_all(&[b' '; 1 << 20]).expect("in memory");
    }
    bomb.write_all(CHAT.as_bytes()).expect("in memory");
    let bomb = bomb.finish().expect("in memory");
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"] {
        let fields = format!("content-encoding: {coding}\r\n");
        let echo = put(&harness.client, &fields, &bomb).await;
        assert_eq!(echo["body_len"], bomb.len(), "{coding}");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\n{fields}content-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            bomb.len()
        );
        let count = harness.mock.recorder().count();
        let answer = harness.client.raw(&[head.as_bytes(), &bomb].concat()).await;
        assert!(answer.status < 500, "{coding}");
        answer.all().await;
        let seen = harness.mock.recorder().request(count).expect("forwarded");
        assert!(*seen.body == bomb, "{coding}: to the letter");
    }
    assert_serves(&harness.client).await;
}

/// Connections on which bodies, or the fields of HTTP/2, do not go on: nobody else notices.
#[tokio::test(flavor = "multi_thread")]
async fn row_14_bodies_that_do_not_come_do_not_matter_to_others() {
    // What is open to the backend is in use.
    let harness = Setup::new(Script::tokens(3))
        .config(|config| config.upstream.pool_max_idle = 0)
        .start()
        .await;
    let mut held = Vec::new();
    let mut streams = Vec::new();
    for number in 0..200 {
        let begun = match number % 4 {
            0 => "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 1000\r\n\r\n{",
            1 => "PUT /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12",
            2 => {
                "POST /v1/streams/01arz3ndektsv4rrffq69g5fav HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n"
            }
            _ => "GET / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n",
        };
        held.push(Wire::open(&harness.client, begun).await);
        if number % 4 == 0 {
            let (mut sending, receiving) = open(&harness.client).await;
            let fields = block(&request("GET", "/echo"));
            sending
                .send(&[Frame::new(kind::HEADERS, END_STREAM, 1, fields)])
                .await;
            streams.push((sending, receiving));
        }
    }
    for _ in 0..10 {
        assert_serves(&harness.client).await;
    }
    assert_eq!(harness.admin.get("/readyz").await.status, 200);
    drop((held, streams));
    // When they are gone nothing of them is left.
    let gone = harness.mock.recorder().wait_open_connections(0).await;
    gone.expect("what was begun is let go");
}

/// A client that takes nothing of a plain answer is cut off as well, so that its backend is let go.
#[tokio::test(flavor = "multi_thread")]
async fn row_14_who_reads_nothing_of_a_plain_answer_is_cut_off() {
    let script = Script::answer(200, "x".repeat(64 << 20));
    let harness: Harness = Setup::new(Script::tokens(3))
        .config(|config| config.edge.write_timeout = Duration::from_millis(500))
        .start()
        .await;
    harness.mock.set_script_at("/large", script);
    let asked = harness.client.request("GET", "/large", "");
    let mut stream = harness.client.begin(&asked).await;
    let closed = harness.mock.recorder().wait_closed(0).await;
    closed.expect("the backend is let go");
    let mut rest = Vec::new();
    let read = patience(stream.read_to_end(&mut rest)).await;
    let whole = read.is_ok() && rest.len() > 64 << 20;
    assert!(!whole, "it was cut off");
    assert_serves(&harness.client).await;
    let (_, end) = harness.client.chat().await.all().await;
    assert_eq!(end, End::Proper);
}

/// A body that stands still, and one that trickles in: each is told, whoever waits for it, and its connection is closed.
#[tokio::test(flavor = "multi_thread")]
async fn row_14_bodies_that_come_too_slowly_are_refused() {
    for (kept, path) in [
        (false, "/v1/chat/completions"),
        (true, "/v1/chat/completions"),
        (false, "/echo"),
    ] {
        let harness = Setup::new(Script::tokens(3))
            .config(move |config| {
                // What is open to the backend is in use.
                config.upstream.pool_max_idle = 0;
                config.edge.body_timeout = Duration::from_millis(1500);
                config.edge.body_time = Duration::from_secs(3);
                if kept {
                    let policy = streamweld_generation::migration::Policy::Exact;
                    config.migration.groups.insert("g".to_owned(), policy);
                    config.backends[0].group = Some("g".to_owned());
                }
            })
            .start()
            .await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
        );
        for trickles in [false, true] {
            let (mut reading, mut writing) =
                harness.client.begin(head.as_bytes()).await.into_split();
            let trickle = async {
                while trickles && writing.write_all(b" ").await.is_ok() {
                    sleep(Duration::from_millis(200)).await;
                }
                std::future::pending::<()>().await;
            };
            let mut rest = Vec::new();
            tokio::select! {
                read = patience(reading.read_to_end(&mut rest)) => drop(read),
                () = trickle => {}
            }
            let answer = String::from_utf8_lossy(&rest);
            assert!(answer.starts_with("HTTP/1.1 408"), "{path}: {answer}");
            assert!(answer.contains("request_timeout"), "{path}: {answer}");
            assert!(answer.contains("connection: close"), "{path}: {answer}");
        }
        let gone = harness.mock.recorder().wait_open_connections(0).await;
        gone.expect("its backend is let go");
        assert_serves(&harness.client).await;
    }
}

/// Connections beyond the most wait, and are served when there is room; operators have room of their own.
#[tokio::test(flavor = "multi_thread")]
async fn row_14_connections_beyond_the_most_wait() {
    let harness = Setup::new(Script::tokens(3))
        .config(|config| config.edge.max_connections = 3)
        .start()
        .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let begun = "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n1";
        held.push(Wire::open(&harness.client, begun).await);
    }
    let open = r#"streamweld_connections{listener="data"}"#;
    until(|| async { metric(&harness.admin, open).await == 3 }).await;
    let asked = harness.client.request("GET", "/echo", "");
    let waits = harness.client.begin(&asked).await;
    assert_eq!(harness.admin.get("/readyz").await.status, 200);
    assert_eq!(metric(&harness.admin, open).await, 3);
    let mut byte = [0];
    assert!(waits.try_read(&mut byte).is_err(), "it is not answered yet");
    held.pop();
    let answer = patience(Response::read(waits)).await.expect("answered");
    assert_eq!(answer.status, 200);
}
