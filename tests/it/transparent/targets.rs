//! Methods and targets.

use streamweld_mock::Script;
use streamweld_tests::{Harness, Setup, Wire};
use streamweld_upstream::Backend;

use super::{all, echo, headers};

#[tokio::test(flavor = "multi_thread")]
async fn every_method_passes() {
    let harness = Harness::start(Script::tokens(3)).await;
    for method in [
        "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "X-OWN",
    ] {
        let echo = echo(harness.client.send(method, "/echo/a", "").await).await;
        assert_eq!(echo["method"], method);
        assert_eq!(echo["target"], "/echo/a");
    }
    let head = harness.client.send("HEAD", "/echo/a", "").await;
    assert_eq!(head.status, 200);
    assert_ne!(head.header("content-length"), Some("0"), "of what GET has");
    let request = harness.mock.recorder().request(8).expect("recorded");
    assert_eq!(request.method, http::Method::HEAD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_has_no_body_and_its_connection_goes_on() {
    let harness = Harness::start(Script::tokens(3)).await;
    let request = "HEAD /echo HTTP/1.1\r\nhost: h\r\n\r\n";
    let mut wire = Wire::open(&harness.client, request).await;
    wire.head().await;
    wire.send("GET /echo/next HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
        .await;
    let next = wire.head().await;
    assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_pass_to_the_letter() {
    let harness = Harness::start(Script::tokens(3)).await;
    for target in [
        "/echo",
        "/echo/",
        "/echo?",
        "/echo//a//b/",
        "/echo/../a/./b",
        "/echo/%2e%2E/%2F%2f",
        "/echo/%zz/%/%4",
        "/echo/%00%0d%0a",
        "/echo/a;b=c,d:e@f!g$h&i'j(k)l*m+n~o",
        "/echo?a=b?c=d/e&&f=%20+",
        "/echo?a[]=1",
        "/echo/v1/streams/x/stop",
    ] {
        let echo = echo(harness.client.get(target).await).await;
        assert_eq!(echo["target"], target);
    }
    for target in ["/", "//evil.example/a", "/v1/streams", "/v1/streams/", "*"] {
        let count = harness.mock.recorder().count();
        harness.client.send("OPTIONS", target, "").await.all().await;
        let request = harness.mock.recorder().request(count).expect("recorded");
        assert_eq!(request.target, target);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absolute_target_is_taken_by_its_path_and_goes_nowhere_else() {
    let harness = Harness::start(Script::tokens(3)).await;
    for (target, path) in [
        ("http://evil.example/echo/a?b", "/echo/a?b"),
        ("http://user:pass@evil.example:1/echo", "/echo"),
        ("https://evil.example/echo//", "/echo//"),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nhost: evil.example\r\n\r\n");
        let echo = echo(harness.client.raw(request.as_bytes()).await).await;
        assert_eq!(echo["target"], path);
        let backend = harness.mock.addr().to_string();
        assert_eq!(all(&headers(&echo), "host"), [backend]);
    }
    // Ours are ours in this form as well.
    let ours = "http://a.example/v1/streams/01jcv5t0q4e8x2m7n9p3r6s1ab";
    let request = format!("GET {ours} HTTP/1.1\r\nhost: a.example\r\n\r\n");
    assert_eq!(harness.client.raw(request.as_bytes()).await.status, 404);
    assert_eq!(harness.mock.recorder().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_of_the_backends_url_comes_first() {
    let setup = Setup::new(Script::tokens(3)).config(|config| {
        let url = config.backends[0].url.clone();
        let url = format!("http://{}:{}/some/prefix/", url.host(), url.port());
        config.backends = vec![Backend::named("llm", url.parse().expect("a URL")).into()];
    });
    let harness = setup.start().await;
    for (target, forwarded) in [
        ("/echo?a", "/some/prefix/echo?a"),
        ("/", "/some/prefix/"),
        ("//a/../b", "/some/prefix//a/../b"),
    ] {
        let count = harness.mock.recorder().count();
        harness.client.get(target).await.all().await;
        let request = harness.mock.recorder().request(count).expect("recorded");
        assert_eq!(request.target, forwarded);
    }
    let response = harness.client.chat().await;
    assert_eq!(response.header("x-streamweld-durability"), Some("durable"));
    let requests = harness.mock.recorder().requests();
    let last = requests.last().expect("recorded");
    assert_eq!(last.target, "/some/prefix/v1/chat/completions");
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_and_trace_are_refused_everywhere() {
    let harness = Harness::start(Script::tokens(3)).await;
    for line in [
        "CONNECT evil.example:443",
        "CONNECT 127.0.0.1:80",
        "TRACE /echo",
        "TRACE /v1/streams/01jcv5t0q4e8x2m7n9p3r6s1ab",
        "TRACE http://evil.example/",
    ] {
        let request = format!("{line} HTTP/1.1\r\nhost: h\r\n\r\n");
        let response = harness.client.raw(request.as_bytes()).await;
        assert_eq!(response.status, 405, "{line}");
        assert!(response.header("allow").is_some(), "{line}");
        let answer = response.error_code().await;
        assert_eq!(answer, (405, "method_not_allowed".to_owned()));
    }
    assert_eq!(harness.mock.recorder().accepted_connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_of_ours_are_never_forwarded() {
    let harness = Harness::start(Script::tokens(3)).await;
    let id = "01jcv5t0q4e8x2m7n9p3r6s1ab";
    for (method, path, status) in [
        ("GET", format!("/v1/streams/{id}"), 404),
        ("DELETE", format!("/v1/streams/{id}"), 405),
        ("POST", format!("/v1/streams/{id}/events"), 405),
        ("GET", format!("/v1/streams/{id}/stop"), 405),
        ("GET", format!("/v1/streams/{id}/"), 404),
        ("POST", format!("/v1/streams/{id}/other"), 404),
        ("GET", format!("/v1/streams/{}", id.to_uppercase()), 400),
        ("GET", "/v1/streams/watch".to_owned(), 404),
        ("POST", "/v1/streams/watch".to_owned(), 404),
    ] {
        let response = harness.client.send(method, &path, "").await;
        assert_eq!(response.status, status, "{method} {path}");
        assert_eq!(response.header("allow").is_some(), status == 405);
        response.error_code().await;
    }
    assert_eq!(harness.mock.recorder().count(), 0);
    // One character less, and it is the backend's.
    let path = format!("/v1/streams/{}", &id[1..]);
    harness.client.get(&path).await.all().await;
    assert_eq!(harness.mock.recorder().count(), 1);
}
