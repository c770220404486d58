//! Requests that mean to go, or to seem to go, somewhere else: attacks 9 and 10.

use serde_json::Value;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{CHAT, Harness, Wire};

use super::{assert_serves, start};

/// What the backend is told of its own name, whatever the client has said.
fn assert_ours(harness: &Harness) {
    for request in harness.mock.recorder().requests() {
        let hosts: Vec<_> = request
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
            .map(|(_, value)| value.clone())
            .collect();
        assert_eq!(hosts, [harness.mock.addr().to_string()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_09_a_host_that_is_none_or_two_is_refused() {
    let harness = start().await;
    for fields in [
        "",
        "host: a\r\nhost: b\r\n",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nx: 1\r\nHOST: evil.example\r\n",
    ] {
        let request = format!("GET /echo HTTP/1.1\r\n{fields}\r\n");
        for client in [&harness.client, &harness.admin] {
            let answer = Wire::open(client, &request).await.rest().await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{fields:?}: {answer}");
            assert!(answer.ends_with("\r\n\r\n"), "an empty body: {answer}");
        }
    }
    // The version before had no such field.
    let old = Wire::open(&harness.client, "GET /echo HTTP/1.0\r\n\r\n").await;
    assert!(old.rest().await.contains(" 200 "));
    assert_eq!(harness.mock.recorder().count(), 1);
    assert_ours(&harness);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_09_whatever_host_is_named_the_backend_is_the_configured_one() {
    let harness = start().await;
    for host in [
        "evil.example",
        "evil.example:443",
        "user:pass@evil.example",
        "169.254.169.254",
        "localhost:9090",
        "a,b",
        "a/../b",
        "[::1]",
        "",
    ] {
        let request = format!("GET /echo HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = Wire::open(&harness.client, &request).await.rest().await;
        let status = &answer[9..12];
        assert!(["200", "400"].contains(&status), "{host:?}: {answer}");
    }
    assert!(harness.mock.recorder().count() > 0);
    assert_ours(&harness);
}

/// No path leads to what another one is refused, and none of ours is known to the backend.
#[tokio::test(flavor = "multi_thread")]
async fn row_09_a_path_is_what_it_says() {
    let harness = start().await;
    let id = "01arz3ndektsv4rrffq69g5fav";
    for target in [
        format!("/v1/streams/x/../{id}"),
        format!("/v1//streams/{id}"),
        format!("//v1/streams/{id}"),
        format!("/v1/streams%2f{id}"),
        format!("/v1/streams/%2e%2e/{id}"),
        format!("/./v1/streams/{id}"),
        format!("/V1/streams/{id}"),
        format!("/v1/streams\\{id}"),
        "/admin/../metrics".to_owned(),
        "/%61dmin/streams".to_owned(),
    ] {
        let count = harness.mock.recorder().count();
        let request = format!("GET {target} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        let answer = Wire::open(&harness.client, &request).await.rest().await;
        if answer.starts_with("HTTP/1.1 400 ") {
            assert_eq!(harness.mock.recorder().count(), count, "{target}");
            continue;
        }
        let seen = harness.mock.recorder().request(count).expect("forwarded");
        assert_eq!(seen.target, target, "to the letter");
    }
    assert_ours(&harness);
}

/// A backend that a client names is asked nothing.
#[tokio::test(flavor = "multi_thread")]
async fn row_10_no_client_chooses_a_backend() {
    let harness = start().await;
    let other = Mock::start(Script::tokens(3)).await.expect("a port");
    let (addr, url) = (other.addr().to_string(), other.url());
    let mut client = harness.client.clone();
    for name in [
        "x-backend",
        "x-upstream",
        "x-target-url",
        "x-api-base",
        "x-base-url",
        "x-forwarded-host",
        "x-forwarded-server",
        "x-original-host",
        "x-host",
        "x-streamweld-backend",
        "x-envoy-original-dst-host",
        "x-rewrite-url",
        "x-original-url",
        "proxy-host",
        "forwarded",
        "via",
        "alt-svc",
    ] {
        let value = if name == "forwarded" {
            format!("host={addr}")
        } else {
            url.clone()
        };
        client = client.with(name, &value);
    }
    let mut body: Value = serde_json::from_str(CHAT).expect("JSON");
    for member in [
        "api_base",
        "base_url",
        "backend",
        "endpoint",
        "custom_llm_provider",
        "host",
    ] {
        body[member] = url.clone().into();
    }
    let target = format!("/v1/chat/completions?backend={url}&api_base={url}&url={url}");
    let answer = client.send("POST", &target, &body.to_string()).await;
    assert_eq!(answer.status, 200);
    answer.all().await;
    let seen = harness
        .mock
        .recorder()
        .request(0)
        .expect("the configured one");
    assert_eq!(seen.target, target);
    assert_eq!(other.recorder().accepted_connections(), 0);
    assert_ours(&harness);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_11_no_answer_leads_anywhere_else() {
    let harness = start().await;
    let inside = Mock::start(Script::tokens(3)).await.expect("a port");
    for status in [300, 301, 302, 303, 305, 307, 308] {
        let answer = Script::answer(status, "")
            .header("location", format!("{}/echo", inside.url()))
            .header("refresh", format!("0; url={}/echo", inside.url()))
            .header("alt-svc", format!("h2=\"{}\"", inside.addr()));
        for (method, path) in [("POST", "/v1/chat/completions"), ("GET", "/a")] {
            harness.mock.set_script_at(path, answer.clone());
            let body = if method == "POST" { CHAT } else { "" };
            let seen = harness.client.send(method, path, body).await;
            assert_eq!(seen.status, status, "{method}");
            seen.all().await;
        }
    }
    assert_eq!(inside.recorder().accepted_connections(), 0);
    harness
        .mock
        .set_script_at("/v1/chat/completions", Script::tokens(3));
    assert_serves(&harness.client).await;
}
