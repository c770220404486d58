//! Answers that are there before their request was read whole (protocol.md 4.6).
//!
//! Each client here sends everything before it reads a byte, and more than the buffers of the sockets hold. If nobody
//! took the rest of its body it would be stuck, or its connection reset under the answer.

use std::time::Duration;

use streamweld_mock::{FullBacklog, Script};
use streamweld_server::Config;
use streamweld_server::config::Secret;
use streamweld_tests::{
    CHAT, Client, End, Harness, RawBackend, Response, Setup, Wire, patience, wait_end,
};
use streamweld_upstream::Backend;
use tokio::net::TcpListener;

const PATH: &str = "/v1/chat/completions";
const UNKNOWN: &str = "01arz3ndektsv4rrffq69g5fav";

/// An image or two.
fn large() -> String {
    format!(r#"{{"stream":true,"image":"{}"}}"#, "x".repeat(16 << 20))
}

/// The same as one chunked request.
fn chunked(method: &str, path: &str, fields: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: h\r\n{fields}transfer-encoding: chunked\r\n\r\n"
    );
    let mut request = head.into_bytes();
    for piece in body.as_bytes().chunks(64 << 10) {
        request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

/// Sends a large body, all of it, and reads the error that comes.
async fn check(client: &Client, method: &str, path: &str, status: u16, code: &str) {
    let body = large();
    let response = patience(client.send(method, path, &body)).await;
    let answer = response.error_code().await;
    assert_eq!(answer, (status, code.to_owned()), "{method} {path}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_client_that_sends_everything_first_reads_its_answer() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = &harness.client;
    let ours = format!("/v1/streams/{UNKNOWN}");
    for (method, path, status, code) in [
        ("TRACE", "/anything".to_owned(), 405, "method_not_allowed"),
        ("POST", ours.clone(), 405, "method_not_allowed"),
        ("POST", format!("{ours}/nothing"), 404, "not_found"),
        ("POST", format!("{ours}/stop"), 404, "stream_not_found"),
        (
            "POST",
            format!("/v1/streams/{}/stop", "u".repeat(26)),
            400,
            "invalid_stream_id",
        ),
    ] {
        check(client, method, &path, status, code).await;
    }
    let cursor = "last-event-id";
    for (name, value, status, code) in [
        (cursor, format!("{UNKNOWN}:x"), 400, "invalid_cursor"),
        (cursor, format!("{UNKNOWN}:1"), 404, "stream_not_found"),
        (
            "x-streamweld-events",
            "all".to_owned(),
            400,
            "invalid_parameter",
        ),
        (
            "x-streamweld-orphan-policy",
            "perhaps".to_owned(),
            400,
            "invalid_orphan_policy",
        ),
        (
            "idempotency-key",
            "a b".to_owned(),
            400,
            "invalid_idempotency_key",
        ),
    ] {
        check(&client.with(name, &value), "POST", PATH, status, code).await;
    }
    let two = client
        .with("idempotency-key", "a")
        .with("idempotency-key", "b");
    check(&two, "POST", PATH, 400, "idempotency_conflict").await;
    let long = format!("/{}", "x".repeat(16 << 10));
    let response = patience(client.send("POST", &long, &large())).await;
    assert_eq!(response.status, 414);
    assert_eq!(harness.mock.recorder().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_goes_on_behind_a_refusal() {
    let harness = Harness::start(Script::tokens(3)).await;
    let client = harness.client.with("x-streamweld-orphan-policy", "perhaps");
    let mut wire = Wire::open(&client, client.request("POST", PATH, &large())).await;
    let head = wire.head().await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    wire.until("}}").await;
    wire.send("GET /echo/next HTTP/1.1\r\nhost: h\r\n\r\n")
        .await;
    let next = wire.head().await;
    assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_shutting_down_it_is_the_same() {
    let setup = Setup::new(Script::tokens(3).gate_after(1, "go"))
        .config(|config| config.shutdown_grace = Duration::from_secs(60));
    let mut harness = setup.start().await;
    let mut running = harness.client.chat().await;
    running.body.blocks(1).await;
    harness.begin_shutdown();
    let begun = async { while harness.admin.get("/readyz").await.status == 200 {} };
    patience(begun).await;
    for path in [PATH, "/anything"] {
        check(&harness.client, "POST", path, 503, "shutting_down").await;
    }
    harness.mock.gates().release("go");
    assert_eq!(running.all().await.1, End::Proper);
    harness.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_limit_it_is_the_same() {
    let setup =
        Setup::new(Script::tokens(3)).config(|config| config.edge.max_request_body = Some(1000));
    let harness = setup.start().await;
    let too_large = (413, "request_too_large".to_owned());
    for method in ["PUT", "POST"] {
        check(&harness.client, method, "/echo", 413, "request_too_large").await;
        let request = chunked(method, "/echo", "", &large());
        let response = patience(harness.client.raw(&request)).await;
        assert_eq!(response.error_code().await, too_large, "{method}");
    }
    assert_eq!(harness.mock.recorder().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_only_compared_is_bounded_as_well() {
    for kept in [8, 32 << 20] {
        let setup = Setup::new(Script::tokens(3)).config(move |config| {
            config.edge.max_request_body = Some(1000);
            config.edge.max_kept_body = kept;
        });
        let harness = setup.start().await;
        let client = harness.client.with("idempotency-key", "k");
        let first = client.chat().await;
        assert_eq!(first.status, 200);
        let first = first.all().await;
        for body in [format!("{CHAT}{}", " ".repeat(1000)), large()] {
            let request = chunked("POST", PATH, "idempotency-key: k\r\n", &body);
            let response = patience(client.raw(&request)).await;
            let answer = response.error_code().await;
            assert_eq!(answer, (413, "request_too_large".to_owned()), "{kept}");
        }
        // What fits is compared, and joins.
        let request = chunked("POST", PATH, "idempotency-key: k\r\n", CHAT);
        let again = patience(client.raw(&request)).await;
        assert_eq!(again.all().await, first);
        assert_eq!(harness.mock.recorder().count(), 1);
    }
}

/// In front of a backend at this address, which has little time.
async fn before(addr: std::net::SocketAddr) -> Harness {
    let change = move |config: &mut Config| {
        let url = format!("http://{addr}").parse().expect("a URL");
        config.backends = vec![Backend::named("llm", url).into()];
        config.upstream.connect_timeout = Duration::from_millis(300);
        config.upstream.first_byte_timeout = Some(Duration::from_millis(300));
    };
    Setup::new(Script::new()).config(change).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_backend_it_is_the_same() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = gone.local_addr().expect("bound");
    drop(gone);
    let harness = before(addr).await;
    for method in ["PUT", "POST"] {
        check(&harness.client, method, PATH, 502, "backend_unreachable").await;
    }
    let full = FullBacklog::bind().expect("a full queue");
    let harness = before(full.addr()).await;
    for method in ["PUT", "POST"] {
        check(&harness.client, method, PATH, 504, "backend_timeout").await;
    }
    // It takes the connection and never reads.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let harness = before(silent.local_addr().expect("bound")).await;
    for method in ["PUT", "POST"] {
        check(&harness.client, method, PATH, 504, "backend_timeout").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_answers_early_is_heard() {
    let backend = RawBackend::bind().await;
    let address = backend.backend();
    let setup =
        Setup::new(Script::new()).config(move |config| config.backends = vec![address.into()]);
    let harness = setup.start().await;
    for method in ["PUT", "POST"] {
        let client = harness.client.clone();
        let asked = tokio::spawn(async move { client.send(method, "/a", &large()).await });
        let mut wire = backend.accept().await;
        wire.head().await;
        // It reads no further.
        wire.send("HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno")
            .await;
        let response: Response = patience(asked).await.expect("no panic");
        assert_eq!(response.status, 401, "{method}");
        assert_eq!(response.all().await, (b"no".to_vec(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_admin_listener_it_is_the_same() {
    let setup = Setup::new(Script::tokens(3))
        .config(|config| config.admin_token = Secret::new("the-token".to_owned()));
    let harness = setup.start().await;
    let stop = format!("/admin/streams/{UNKNOWN}/stop");
    check(&harness.admin, "POST", &stop, 401, "unauthorized").await;
    check(&harness.admin, "POST", "/livez", 405, "method_not_allowed").await;
    check(&harness.admin, "POST", "/nothing", 404, "not_found").await;
    let operator = harness.admin.with("authorization", "Bearer the-token");
    check(&operator, "POST", &stop, 404, "stream_not_found").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_client_that_asks_first_is_not_told_to_send() {
    let harness = Harness::start(Script::tokens(3)).await;
    let ours = format!("/v1/streams/{UNKNOWN}/stop");
    for (path, field, status) in [
        (PATH, "x-streamweld-orphan-policy: no".to_owned(), 400),
        (PATH, format!("last-event-id: {UNKNOWN}:1"), 404),
        (ours.as_str(), "x-a: b".to_owned(), 404),
    ] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n{field}\r\n\
             content-length: 5\r\n\r\n"
        );
        let answer = Wire::open(&harness.client, request).await.rest().await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(!answer.contains(" 100 "), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_an_answer_without_a_100_the_connection_is_closed() {
    let harness = Harness::start(Script::tokens(3)).await;
    let response = harness.client.chat().await;
    let id = response.id();
    assert_eq!(response.all().await.1, End::Proper);
    wait_end(&harness.client, &id).await;
    for (client, target, field, status) in [
        (
            &harness.client,
            PATH.to_owned(),
            format!("last-event-id: {id}:2"),
            200,
        ),
        (
            &harness.client,
            PATH.to_owned(),
            format!("last-event-id: {id}:99"),
            409,
        ),
        (
            &harness.client,
            format!("/v1/streams/{id}/stop"),
            "x-a: b".to_owned(),
            409,
        ),
        (
            &harness.admin,
            format!("/admin/streams/{id}/stop"),
            "x-a: b".to_owned(),
            409,
        ),
    ] {
        let request = format!(
            "POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\n{field}\r\n\
             content-length: 5\r\n\r\n"
        );
        // The answer is whole, and nothing that is sent behind it can be taken for the body, or for a request.
        let answer = Wire::open(client, request).await.rest().await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(
            answer.to_lowercase().contains("\r\nconnection: close\r\n"),
            "{answer}"
        );
        assert!(!answer.contains(" 100 "), "{answer}");
    }
    // One that is told to send stays open, as ever.
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        CHAT.len()
    );
    let mut wire = Wire::open(&harness.client, request).await;
    wire.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    wire.send(CHAT).await;
    let head = wire.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(!head.to_lowercase().contains("connection: close"), "{head}");
}
