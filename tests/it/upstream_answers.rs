//! What a client is told when the backend answers with something else than an event stream, or not at all
//! (protocol.md 4.2, 7.4, 11).

use std::time::Duration;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, FaultRelay, FullBacklog, Raw, RelayPlan, Script};
use streamweld_tests::{End, Harness, Response, Setup, ask, blocks};
use streamweld_upstream::Backend;

/// A server in front of a backend at this address.
async fn in_front_of(addr: std::net::SocketAddr) -> Harness {
    Setup::new(Script::new())
        .config(move |config| {
            let url = format!("http://{addr}").parse().expect("a URL");
            config.backends = vec![Backend::named("big-model", url).into()];
            config.upstream.connect_timeout = Duration::from_millis(300);
            config.upstream.first_byte_timeout = Some(Duration::from_millis(300));
        })
        .start()
        .await
}

/// Checks an error of ours, and that it names the backend by its name alone.
async fn assert_error(response: Response, status: u16, code: &str, addr: std::net::SocketAddr) {
    assert_eq!(response.status, status);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    let request_id = response
        .header("x-streamweld-request-id")
        .map(str::to_owned);
    let (bytes, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let error: Value = serde_json::from_slice(&bytes).expect("JSON");
    let text = error.to_string();
    let error = &error["error"];
    assert_eq!(error["type"], "streamweld_error");
    assert_eq!(error["code"], code);
    assert_eq!(error["stream_id"], Value::Null);
    assert_eq!(error["request_id"].as_str(), request_id.as_deref());
    let message = error["message"].as_str().expect("a message");
    // What is behind it goes to the log alone.
    assert!(
        message.starts_with("backend big-model ") && !message.contains(':'),
        "{message}"
    );
    for secret in [
        addr.ip().to_string(),
        addr.port().to_string(),
        "sk-secret".to_owned(),
        "my prompt".to_owned(),
    ] {
        assert!(!text.contains(&secret), "{text} shows {secret}");
    }
}

/// Every way of asking gets the same error.
async fn check(harness: &Harness, addr: std::net::SocketAddr, status: u16, code: &str) {
    let client = harness.client.with("authorization", "Bearer sk-secret");
    let body = r#"{"stream":true,"messages":[{"role":"user","content":"my prompt"}]}"#;
    for (method, target, body) in [
        ("POST", "/v1/chat/completions", body),
        ("POST", "/anything", body),
        ("GET", "/v1/models", ""),
    ] {
        let response = client.send(method, target, body).await;
        assert_error(response, status, code, addr).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_refuses_is_unreachable_and_named_by_name_only() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    drop(listener);
    let harness = in_front_of(addr).await;
    check(&harness, addr, 502, "backend_unreachable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_resets_before_its_head_is_unreachable() {
    let relay = FaultRelay::start(([127, 0, 0, 1], 9).into())
        .await
        .expect("a port");
    relay.set_plan(RelayPlan::refuse());
    let harness = in_front_of(relay.addr()).await;
    check(&harness, relay.addr(), 502, "backend_unreachable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_dies_before_or_in_its_head_is_unreachable() {
    let whole =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    for length in [0, 1, 12, 30, whole.len() - 1] {
        for rst in [false, true] {
            let raw = Raw::new().write(&whole[..length]);
            let raw = if rst { raw.rst() } else { raw.fin() };
            let harness = Harness::start(Script::raw(raw)).await;
            let response = ask(&harness.client, Dialect::OpenAiChat).await;
            assert_eq!(
                response.error_code().await,
                (502, "backend_unreachable".to_owned()),
                "{length} bytes"
            );
            assert_eq!(harness.mock.recorder().count(), 1, "a POST is not repeated");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_dies_right_after_its_head_has_begun_a_generation() {
    for rst in [false, true] {
        let raw = Raw::new().stream_head().gate("head");
        let raw = if rst { raw.rst() } else { raw.fin() };
        let harness = Harness::start(Script::raw(raw)).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(response.status, 200);
        harness.mock.gates().release("head");
        let (body, end) = response.all().await;
        assert_eq!(blocks(&body).len(), 1, "the error form");
        assert_eq!(end, End::Fin);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_whose_queue_is_full_times_out() {
    let backlog = FullBacklog::bind().expect("a port");
    let harness = in_front_of(backlog.addr()).await;
    check(&harness, backlog.addr(), 504, "backend_timeout").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_gives_no_head_times_out_where_that_is_configured() {
    let relay = FaultRelay::start(([127, 0, 0, 1], 9).into())
        .await
        .expect("a port");
    relay.set_plan(RelayPlan::black_hole());
    let harness = in_front_of(relay.addr()).await;
    check(&harness, relay.addr(), 504, "backend_timeout").await;
    relay.wait_open(0).await.expect("is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_first_event_is_no_slow_head() {
    let script = Script::tokens(2).pause_after(0, Duration::from_millis(2500));
    let harness = Setup::new(script)
        .config(|config| config.upstream.first_byte_timeout = Some(Duration::from_millis(2000)))
        .start()
        .await;
    let (_, end) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    assert_eq!(end, End::Proper);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_in_answer_to_a_streaming_request_passes_whole() {
    let answer = json!({"object": "chat.completion", "choices": []});
    let harness = Harness::start(Script::answer(200, answer.clone()).header("etag", "\"e\"")).await;
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("etag"), Some("\"e\""));
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    assert_eq!(response.header("x-streamweld-durability"), None);
    assert_eq!(response.json().await, answer);
    let list = harness.admin.get("/admin/streams").await.json().await;
    assert_eq!(list["data"], json!([]), "the candidate left no trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_backend_pass_whole_with_what_a_retry_needs() {
    for status in [400, 401, 404, 408, 409, 422, 429, 500, 503, 529] {
        for dialect in Dialect::ALL {
            let script = Script::answer(status, json!({"error": {"message": "said so"}}))
                .header("retry-after", "7")
                .header("retry-after-ms", "7000")
                .header("x-request-id", "req_1")
                .header("x-ratelimit-remaining-requests", "0")
                .header("x-should-retry", "false");
            let harness = Harness::start(script).await;
            let response = ask(&harness.client, dialect).await;
            assert_eq!(response.status, status);
            for (name, value) in [
                ("retry-after", "7"),
                ("retry-after-ms", "7000"),
                ("x-request-id", "req_1"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-should-retry", "false"),
            ] {
                assert_eq!(response.header(name), Some(value));
            }
            assert_eq!(response.header("x-streamweld-stream-id"), None);
            assert_eq!(response.json().await["error"]["message"], "said so");
            assert_eq!(harness.mock.recorder().count(), 1, "no retry of ours");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_with_an_error_status_is_no_generation() {
    let raw = Raw::new()
        .write("HTTP/1.1 500 Oops\r\ncontent-type: text/event-stream\r\ncontent-length: 11\r\n\r\ndata: bad\r\r");
    let harness = Harness::start(Script::raw(raw)).await;
    let response = ask(&harness.client, Dialect::OpenAiChat).await;
    assert_eq!(response.status, 500);
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    let (body, end) = response.all().await;
    assert_eq!(
        (&*body, end),
        (&b"data: bad\r\r"[..], End::Proper),
        "untouched"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = streamweld_mock::Mock::start(Script::tokens(1))
            .await
            .expect("a port");
        let location = format!("{}/latest/meta-data", elsewhere.url());
        let harness =
            Harness::start(Script::answer(status, "").header("location", location.clone())).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("location"), Some(&*location));
        assert_eq!(elsewhere.recorder().accepted_connections(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_over_64_kib_is_a_bad_response() {
    for (size, passes) in [(60 << 10, true), (66 << 10, false)] {
        // In several fields, so that only their sum is at fault.
        let fields = (0..6).fold(Script::tokens(2), |script, number| {
            script.header(format!("x-large-{number}"), "x".repeat(size / 6))
        });
        let harness = Harness::start(fields).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        if passes {
            assert_eq!(response.status, 200);
            assert_eq!(response.all().await.1, End::Proper);
        } else {
            assert_eq!(
                response.error_code().await,
                (502, "backend_bad_response".to_owned())
            );
            let recorder = harness.mock.recorder();
            recorder.wait_open_connections(0).await.expect("is closed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_no_http_is_a_bad_response() {
    for head in [
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\r\n folded\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
    ] {
        let harness = Harness::start(Script::raw(Raw::new().write(head).stall())).await;
        let response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(
            response.error_code().await,
            (502, "backend_bad_response".to_owned()),
            "{head:?}"
        );
        let recorder = harness.mock.recorder();
        recorder.wait_open_connections(0).await.expect("is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_answer_that_is_cut_is_cut_for_the_client_too() {
    for rst in [false, true] {
        let raw = Raw::new()
            .write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{\"a\"")
            .gate("half");
        let raw = if rst { raw.rst() } else { raw.fin() };
        let harness = Harness::start(Script::raw(raw)).await;
        let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.body.chunk().await.as_deref(), Some(&b"{\"a\""[..]));
        harness.mock.gates().release("half");
        let (rest, end) = response.body.rest().await;
        assert_eq!((rest.len(), end), (0, End::Fin));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_before_a_cut_is_passed_on_when_the_cut_comes_at_once() {
    for rst in [false, true] {
        let raw = Raw::new().write(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100\r\n\r\ndata: a\n\n",
        );
        let raw = if rst { raw.rst() } else { raw.fin() };
        let harness = Harness::start(Script::new()).await;
        harness.mock.set_script_at("/live", Script::raw(raw));
        for _ in 0..20 {
            let response = harness.client.get("/live").await;
            assert_eq!(response.header("x-streamweld-stream-id"), None);
            assert_eq!(response.all().await, (b"data: a\n\n".to_vec(), End::Fin));
        }
    }
}
