//! Connections that become something else.

use streamweld_mock::{Raw, Script};
use streamweld_tests::{Harness, Wire, leave};

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_becomes_a_tunnel() {
    let harness = Harness::start(Script::tokens(3)).await;
    let request = "GET /upgrade?a HTTP/1.1\r\nhost: h\r\nconnection: keep-alive, Upgrade\r\n\
                   upgrade: echo/2\r\nx-end: 1\r\n\r\nearly";
    let mut wire = Wire::open(&harness.client, request).await;
    let head = wire.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let lower = head.to_ascii_lowercase();
    assert!(lower.contains("\r\nupgrade: echo/2\r\n"), "{head}");
    assert!(lower.contains("\r\nconnection: upgrade\r\n"), "{head}");
    assert_eq!(wire.until("early").await, "early");
    for text in ["one", "\0\r\n\r\n", "two"] {
        wire.send(text).await;
        assert_eq!(wire.until(text).await, text);
    }
    let request = harness.mock.recorder().request(0).expect("recorded");
    assert_eq!(request.target, "/upgrade?a");
    assert_eq!(request.header("x-end"), Some("1"));
    // Each side's close is the other's.
    leave(wire.into_stream()).await;
    harness
        .mock
        .recorder()
        .wait_closed(0)
        .await
        .expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_refused_is_an_answer() {
    let harness = Harness::start(Script::tokens(3)).await;
    let script = Script::answer(403, "no");
    harness.mock.set_script_at("/upgrade", script);
    let client = harness
        .client
        .with("connection", "upgrade")
        .with("upgrade", "echo");
    let response = client.get("/upgrade").await;
    assert_eq!(response.status, 403);
    assert_eq!(response.all().await.0, b"no");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_nobody_asked_for_is_refused() {
    let harness = Harness::start(Script::tokens(3)).await;
    let raw = Raw::new()
        .write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    harness.mock.set_script_at("/a", Script::raw(raw));
    for method in ["GET", "POST"] {
        let response = harness.client.send(method, "/a", "").await;
        let answer = response.error_code().await;
        assert_eq!(answer, (502, "backend_bad_response".to_owned()), "{method}");
    }
}
