//! Requests that two readers could read in two ways: refused, or the last of their connection. Whatever is hidden in
//! one is never a request of its own to the backend.

use streamweld_mock::Script;
use streamweld_tests::{Harness, Wire};

const HIDDEN: &str = "GET /echo/hidden HTTP/1.1\r\nhost: h\r\n\r\n";

/// Sends it with a hidden request behind it, and gives the status of every answer.
async fn send(harness: &Harness, request: &str) -> Vec<u16> {
    let answer = Wire::open(&harness.client, format!("{request}{HIDDEN}")).await;
    let answer = answer.rest().await;
    answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|rest| rest[..3].parse().expect("a status"))
        .collect()
}

/// It is answered once at most, and the connection is closed.
async fn check(harness: &Harness, request: &str) {
    let count = harness.mock.recorder().count();
    let answers = send(harness, request).await;
    assert!(answers.len() <= 1, "{request:?}: {answers:?}");
    let seen = harness.mock.recorder().requests();
    for request_seen in &seen[count..] {
        assert_ne!(request_seen.target, "/echo/hidden", "{request:?}");
        let once = answers == [200];
        assert!(
            once,
            "{request:?} reached the backend, and was answered {answers:?}"
        );
    }
    assert!(seen.len() <= count + 1, "{request:?}");
}

/// It is refused as no valid HTTP, and nothing of it reaches the backend.
async fn check_refused(harness: &Harness, request: &str) {
    let count = harness.mock.recorder().count();
    let answers = send(harness, request).await;
    assert!(
        answers.is_empty() || answers == [400],
        "{request:?}: {answers:?}"
    );
    assert_eq!(harness.mock.recorder().count(), count, "{request:?}");
}

fn post(fields: &str, body: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nhost: h\r\n{fields}\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ways_to_tell_the_length_of_a_body() {
    let harness = Harness::start(Script::tokens(3)).await;
    for fields in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 0\r\n",
        "transfer-encoding: Chunked\r\ncontent-length: 4\r\n",
        "transfer-encoding: gzip, chunked\r\ncontent-length: 4\r\n",
    ] {
        check(&harness, &post(fields, "0\r\n\r\n")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lengths_that_differ_or_are_none() {
    let harness = Harness::start(Script::tokens(3)).await;
    for fields in [
        "content-length: 0\r\ncontent-length: 5\r\n",
        "content-length: 5\r\ncontent-length: 0\r\n",
        "content-length: 0, 5\r\n",
        "content-length: +0\r\n",
        "content-length: -1\r\n",
        "content-length: 0x5\r\n",
        "content-length: 5 5\r\n",
        "content-length: \r\n",
        "content-length: 18446744073709551616\r\n",
        "content-length: five\r\n",
    ] {
        check_refused(&harness, &post(fields, "")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transfer_codings_that_hide_or_repeat_themselves() {
    let harness = Harness::start(Script::tokens(3)).await;
    for fields in [
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, chunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: \u{b}chunked\r\n",
        "transfer-encoding:\tchunked\r\n",
        "transfer-encoding: \"chunked\"\r\n",
        "transfer-encoding: chunked;a=b\r\n",
        "transfer-encoding: identity\r\n",
        "transfer-encoding: gzip\r\n",
        "transfer-encoding: \r\n",
        "Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n",
    ] {
        check(&harness, &post(fields, "0\r\n\r\n")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_no_fields() {
    let harness = Harness::start(Script::tokens(3)).await;
    for fields in [
        "transfer-encoding:\r\n chunked\r\n",
        "x-a: 1\r\n transfer-encoding: chunked\r\n",
        "x-a: 1\r\n\tfolded\r\n",
        "content-length : 0\r\n",
        "transfer-encoding : chunked\r\n",
        "x-a: a\0b\r\n",
        "x-\0a: b\r\n",
        "x-a: a\rb\r\n",
        "x-a\r\n",
        ": a\r\n",
        "x a: b\r\n",
        "x(a): b\r\n",
    ] {
        check_refused(&harness, &post(fields, "")).await;
    }
    let leading = "GET /echo HTTP/1.1\r\n x-a: 1\r\nhost: h\r\n\r\n";
    check_refused(&harness, leading).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_that_are_no_chunks() {
    let harness = Harness::start(Script::tokens(3)).await;
    for body in [
        "zz\r\n",
        "-1\r\n",
        "+5\r\n12345\r\n0\r\n\r\n",
        "0x5\r\n12345\r\n0\r\n\r\n",
        "5 5\r\n12345\r\n0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "5\r\n1234567\r\n0\r\n\r\n",
        "5\n12345\r\n0\r\n\r\n",
        "5;a\n0\r\n\r\n12345\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n",
        "10000000000000000\r\n",
        "5\r\n123450\r\n\r\n",
        "5\r\n12345\n0\r\n\r\n",
    ] {
        let count = harness.mock.recorder().count();
        let request = post("transfer-encoding: chunked\r\n", body);
        let answers = send(&harness, &request).await;
        assert!(
            answers.iter().all(|status| *status >= 400),
            "{body:?}: {answers:?}"
        );
        assert!(answers.len() <= 1, "{body:?}: {answers:?}");
        assert_eq!(harness.mock.recorder().count(), count, "{body:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_05_what_chunks_say_beside_their_size_hides_nothing() {
    let harness = Harness::start(Script::tokens(3)).await;
    let long = format!("5;{}\r\n12345\r\n0\r\n\r\n", "x".repeat(64 << 10));
    for body in [
        "5;a=b\r\n12345\r\n0\r\n\r\n",
        "5;a=\"\r\n0\r\n\r\n\"\r\n12345\r\n0\r\n\r\n",
        "5 ;a\r\n12345\r\n0\r\n\r\n",
        "5;a=b\n12345\r\n0\r\n\r\n",
        "5;a\rb\r\n12345\r\n0\r\n\r\n",
        "5\r\n12345\r\n0;x\r\nhost: evil\r\ncontent-length: 5\r\n\r\n",
        "5\r\n12345\r\n0\r\ntransfer-encoding: chunked\r\n\r\n",
        "00000000000000000005\r\n12345\r\n0\r\n\r\n",
        &long,
    ] {
        check(&harness, &post("transfer-encoding: chunked\r\n", body)).await;
    }
}

/// What a client sends before it is told that its connection is another one now is never a request of HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn row_05_what_comes_early_behind_an_upgrade_is_no_request() {
    let harness = Harness::start(Script::tokens(3)).await;
    let upgrade = "connection: upgrade\r\nupgrade: echo\r\n";
    for (request, status) in [
        (
            format!("GET /upgrade HTTP/1.1\r\nhost: h\r\n{upgrade}\r\n"),
            "101",
        ),
        // Of these the backend makes no tunnel, or none is asked for, and the next request is one.
        (
            format!("GET /echo HTTP/1.1\r\nhost: h\r\n{upgrade}\r\n"),
            "200",
        ),
        (
            "GET /echo HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
                .to_owned(),
            "200",
        ),
    ] {
        let count = harness.mock.recorder().count();
        let mut wire = Wire::open(&harness.client, format!("{request}{HIDDEN}")).await;
        let head = wire.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        if status == "101" {
            assert_eq!(wire.until(HIDDEN).await, HIDDEN, "the tunnel gives it back");
            assert_eq!(harness.mock.recorder().count(), count + 1);
        } else {
            let next = wire.until("/echo/hidden").await;
            assert!(
                next.contains("HTTP/1.1 200 "),
                "it stood in the open: {next}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_has_no_transfer_coding() {
    let harness = Harness::start(Script::tokens(3)).await;
    for fields in [
        "transfer-encoding: chunked\r\n",
        "connection: keep-alive\r\ntransfer-encoding: chunked\r\n",
        "connection: keep-alive\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n",
    ] {
        let request = format!("POST /echo HTTP/1.0\r\n{fields}\r\n0\r\n\r\n");
        check(&harness, &request).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_requests() {
    let harness = Harness::start(Script::tokens(3)).await;
    for line in [
        "GET /echo HTTP/1.1 x",
        "GET /echo a HTTP/1.1",
        "GET  /echo HTTP/1.1",
        "GET\t/echo HTTP/1.1",
        "GET /echo HTTP/1.2",
        "GET /echo HTTP/3.0",
        "GET /echo http/1.1",
        "GET /echo\0 HTTP/1.1",
        "GET /echo",
        "G\0T /echo HTTP/1.1",
        "GET echo HTTP/1.1",
    ] {
        check_refused(&harness, &format!("{line}\r\nhost: h\r\n\r\n")).await;
    }
}

/// A body that nobody reads is not the beginning of the next request.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_behind_an_early_answer_is_no_request() {
    let harness = Harness::start(Script::tokens(3)).await;
    let length = HIDDEN.len();
    for head in [
        format!(
            "POST /echo HTTP/1.1\r\nhost: h\r\nx-streamweld-orphan-policy: no\r\ncontent-length: {length}\r\n\r\n"
        ),
        format!("POST /v1/streams/watch HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n"),
        format!("TRACE /echo HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n"),
        format!(
            "GET /v1/streams/01jcv5t0q4e8x2m7n9p3r6s1ab HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n"
        ),
    ] {
        let request = format!(
            "{head}{HIDDEN}GET /echo/open HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
        );
        Wire::open(&harness.client, request).await.rest().await;
    }
    for request in harness.mock.recorder().requests() {
        assert_eq!(request.target, "/echo/open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_and_targets_are_bounded() {
    let harness = Harness::start(Script::tokens(3)).await;
    let get = |target: &str, fields: &str| {
        format!("GET {target} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{fields}\r\n")
    };
    let long = |bytes: usize| format!("/echo/{}", "x".repeat(bytes - 6));
    let many = |count: usize| "x-a: 1\r\n".repeat(count - 2);
    let wide = |bytes: usize| format!("x-a: {}\r\n", "x".repeat(bytes));
    for (request, status) in [
        (get(&long(16 << 10), ""), 200),
        (get(&long((16 << 10) + 1), ""), 414),
        (get(&long(60 << 10), ""), 414),
        (get("/echo", &many(100)), 200),
        (get("/echo", &many(101)), 431),
        (get("/echo", &wide(60 << 10)), 200),
        (get("/echo", &wide(65 << 10)), 431),
        (get("/echo", &wide(200 << 10)), 431),
    ] {
        let answer = Wire::open(&harness.client, &request).await.rest().await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{status}: {answer:.60}");
        if status != 200 {
            assert!(answer.ends_with("\r\n\r\n"), "an empty body: {answer:.200}");
        }
    }
}
