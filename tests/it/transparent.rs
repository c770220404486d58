//! What is not a generation passes through as it is (protocol.md 4.1, 4.2).

use serde_json::Value;
use streamweld_mock::{Dialect, Outcome, Raw, Script, Writes};
use streamweld_server::Config;
use streamweld_tests::{
    Client, End, Harness, RawBackend, Response, Setup, Wire, blocks, leave, patience, wait_end,
};
use streamweld_upstream::Backend;

/// What the mock saw of a request to `/echo…`.
async fn echo(response: Response) -> Value {
    assert_eq!(response.status, 200);
    response.json().await
}

fn headers(echo: &Value) -> Vec<(String, String)> {
    serde_json::from_value(echo["headers"].clone()).expect("a list of fields")
}

fn all<'a>(headers: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    headers
        .iter()
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect()
}

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
        let url = config.backend.url();
        let url = format!("http://{}:{}/some/prefix/", url.host(), url.port());
        config.backend = Backend::named("llm", url.parse().expect("a URL"));
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
async fn what_belongs_to_one_hop_stays_there_on_the_way_up() {
    let harness = Harness::start(Script::tokens(3)).await;
    let fields = [
        ("connection", "X-Hop, keep-alive"),
        ("connection", "x-other-hop"),
        ("x-hop", "1"),
        ("x-other-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authenticate", "x"),
        ("proxy-authorization", "Basic eA=="),
        ("te", "gzip, trailers;q=1"),
        ("upgrade", "foo"),
        ("trailer", "x-sum"),
        ("x-end", "2"),
        ("x-end", "3"),
        ("via", "1.1 edge"),
        ("x-forwarded-for", "203.0.113.1"),
    ];
    for method in ["GET", "POST"] {
        let client = fields
            .iter()
            .fold(harness.client.clone(), |client, (n, v)| client.with(n, v));
        let echo = echo(client.send(method, "/echo", "").await).await;
        let headers = headers(&echo);
        for gone in [
            "x-hop",
            "x-other-hop",
            "keep-alive",
            "proxy-connection",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
            "upgrade",
            "transfer-encoding",
        ] {
            assert!(all(&headers, gone).is_empty(), "{method} {gone}");
        }
        let connection = all(&headers, "connection").join(",");
        assert!(!connection.contains("hop"), "{connection}");
        assert_eq!(all(&headers, "x-end"), ["2", "3"]);
        assert_eq!(all(&headers, "trailer"), ["x-sum"]);
        assert_eq!(all(&headers, "via"), ["1.1 edge"]);
        assert_eq!(all(&headers, "x-forwarded-for"), ["203.0.113.1"]);
        let backend = harness.mock.addr().to_string();
        assert_eq!(all(&headers, "host"), [backend]);
    }
    let te = harness.client.with("te", "Trailers");
    let echo = echo(te.get("/echo").await).await;
    assert_eq!(all(&headers(&echo), "te"), ["trailers"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_takes_no_credential_away() {
    let setup = Setup::new(Script::tokens(3))
        .config(|config| config.generation.credential_headers = vec!["X-Own-Key".to_owned()]);
    let harness = setup.start().await;
    let fields = [
        ("authorization", "Bearer a"),
        ("x-api-key", "b"),
        ("api-key", "c"),
        ("x-goog-api-key", "d"),
        ("x-own-key", "e"),
        ("cookie", "f"),
    ];
    let named = fields.map(|(name, _)| name).join(", ");
    let client = fields.iter().fold(
        harness
            .client
            .with("connection", &format!("{named}, host, content-length")),
        |client, (n, v)| client.with(n, v),
    );
    let echo = echo(client.send("PUT", "/echo", "12345").await).await;
    let headers = headers(&echo);
    for (name, value) in fields {
        assert_eq!(all(&headers, name), [value], "{name}");
    }
    assert_eq!(all(&headers, "host").len(), 1);
    assert_eq!(echo["body_len"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_one_hop_stays_there_on_the_way_down() {
    let harness = Harness::start(Script::tokens(3)).await;
    let script = Script::answer(201, "created")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .header("keep-alive", "timeout=5")
        .header("proxy-authenticate", "Basic")
        .header("proxy-connection", "keep-alive")
        .header("upgrade", "foo")
        .header("x-end", "2")
        .header("x-end", "3")
        .header("server", "mock")
        .header("set-cookie", "a=b")
        .header("set-cookie", "c=d")
        .header("etag", "\"e\"");
    harness.mock.set_script_at("/a", script);
    let response = harness.client.get("/a").await;
    assert_eq!(response.status, 201);
    for gone in [
        "x-hop",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "upgrade",
    ] {
        assert_eq!(response.header(gone), None, "{gone}");
    }
    assert_eq!(all(&response.headers, "x-end"), ["2", "3"]);
    assert_eq!(all(&response.headers, "set-cookie"), ["a=b", "c=d"]);
    assert_eq!(response.header("server"), Some("mock"));
    assert_eq!(response.header("etag"), Some("\"e\""));
    let (body, end) = response.all().await;
    assert_eq!((body.as_slice(), end), (&b"created"[..], End::Proper));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_passed_on_and_not_followed() {
    let harness = Harness::start(Script::tokens(3)).await;
    let script = Script::answer(302, "").header("location", "http://169.254.169.254/");
    harness.mock.set_script_at("/a", script);
    let response = harness.client.get("/a").await;
    assert_eq!(response.status, 302);
    assert_eq!(response.header("location"), Some("http://169.254.169.254/"));
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn interim_answers_are_dropped() {
    let harness = Harness::start(Script::tokens(3)).await;
    let mut script = Script::answer(200, "ok");
    script.interim = vec![102, 103, 103];
    harness.mock.set_script_at("/a", script);
    let request = "GET /a HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let answer = Wire::open(&harness.client, request).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(!answer.contains("103"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_pass_both_ways() {
    let harness = Harness::start(Script::tokens(3)).await;
    let body = "0123456789abcdef".repeat(256 << 10);
    for method in ["PUT", "POST"] {
        let echo = echo(harness.client.send(method, "/echo", &body).await).await;
        assert_eq!(echo["body_len"], body.len());
        let request = harness.mock.recorder().requests().pop().expect("recorded");
        assert_eq!(request.body, body.as_bytes());
    }
    harness
        .mock
        .set_script_at("/large", Script::answer(200, body.as_str()));
    let (answer, end) = harness.client.get("/large").await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(answer, body.as_bytes());
}

async fn before(backend: &RawBackend) -> Harness {
    let backend = backend.backend();
    let setup = Setup::new(Script::tokens(3)).config(move |config| config.backend = backend);
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_bodies_stream_at_the_same_time() {
    let backend = RawBackend::bind().await;
    let harness = before(&backend).await;
    for method in ["PUT", "POST"] {
        let request = format!("{method} /a HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n12345");
        let mut client = Wire::open(&harness.client, request).await;
        let mut server = backend.accept().await;
        server.until("\r\n\r\n12345").await;
        // It answers before it has the whole request.
        server
            .send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabcde")
            .await;
        client.until("\r\n\r\nabcde").await;
        client.send("67890").await;
        server.until("67890").await;
        server.send("fghij").await;
        client.until("fghij").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_pass_both_ways() {
    let backend = RawBackend::bind().await;
    let harness = before(&backend).await;
    for method in ["PUT", "POST"] {
        let request = format!(
            "{method} /a HTTP/1.1\r\nhost: h\r\nte: trailers\r\ntrailer: x-sum\r\n\
             transfer-encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\nx-sum: up\r\n\r\n"
        );
        let mut client = Wire::open(&harness.client, request).await;
        let mut server = backend.accept().await;
        let seen = server.until("0\r\nx-sum: up\r\n\r\n").await;
        assert!(seen.contains("\r\ntrailer: x-sum\r\n"), "{seen}");
        server
            .send(
                "HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
                 2\r\nok\r\n0\r\nx-sum: down\r\n\r\n",
            )
            .await;
        let seen = client.until("0\r\nx-sum: down\r\n\r\n").await;
        assert!(seen.contains("\r\ntrailer: x-sum\r\n"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_is_told_to_continue() {
    let harness = Harness::start(Script::tokens(3)).await;
    for method in ["PUT", "POST"] {
        let request = format!(
            "{method} /echo HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n\
             content-length: 5\r\nconnection: close\r\n\r\n"
        );
        let mut client = Wire::open(&harness.client, request).await;
        assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("12345").await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let request = harness.mock.recorder().requests().pop().expect("recorded");
        assert_eq!(request.body, &b"12345"[..]);
        assert_eq!(request.header("expect"), None, "it was answered here");
    }
    // What is refused anyway is not asked for.
    let refused = "POST /echo HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n\
                   x-streamweld-orphan-policy: no\r\ncontent-length: 5\r\n\r\n";
    let head = Wire::open(&harness.client, refused).await.head().await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
}

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

#[tokio::test(flavor = "multi_thread")]
async fn only_what_may_stream_asks_for_no_coding() {
    let setup = Setup::new(Script::tokens(3))
        .config(|config| config.generation.durable_get = vec!["/echo/feed".to_owned()]);
    let harness = setup.start().await;
    let client = harness.client.with("accept-encoding", "gzip, br");
    for (method, path, coding) in [
        ("GET", "/echo", "gzip, br"),
        ("PUT", "/echo", "gzip, br"),
        ("POST", "/echo", "identity"),
        ("GET", "/echo/feed", "identity"),
    ] {
        let echo = echo(client.send(method, path, "").await).await;
        assert_eq!(
            all(&headers(&echo), "accept-encoding"),
            [coding],
            "{method} {path}"
        );
    }
    let echo = echo(harness.client.get("/echo").await).await;
    assert!(
        all(&headers(&echo), "accept-encoding").is_empty(),
        "none is added"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_client_is_made_up() {
    let harness = Harness::start(Script::tokens(3)).await;
    let echo = echo(harness.client.get("/echo").await).await;
    let names: Vec<_> = headers(&echo).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["host"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_request_is_the_last_of_its_connection() {
    let harness = Harness::start(Script::tokens(3)).await;
    for method in ["PUT", "POST"] {
        let count = harness.mock.recorder().count();
        let request = format!(
            "{method} /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\n12345\r\n0\r\n\r\nGET /echo/next HTTP/1.1\r\nhost: h\r\n\r\n"
        );
        let answer = Wire::open(&harness.client, request).await.rest().await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(
            answer
                .to_ascii_lowercase()
                .contains("\r\nconnection: close\r\n")
        );
        assert!(answer.contains(r#""body_len":5"#), "{answer}");
        assert_eq!(harness.mock.recorder().count(), count + 1);
    }
    let twice = "PUT /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\n1\
                 GET /echo/next HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let answer = Wire::open(&harness.client, twice).await.rest().await;
    assert_eq!(
        answer.matches("HTTP/1.1 200").count(),
        2,
        "with a length it is not"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_through_is_cancelled_with_its_client() {
    let harness = Harness::start(Script::tokens(20).gate_after(3, "go")).await;
    let mut response = harness.client.get("/feed").await;
    response.body.chunk().await.expect("it streams");
    response.leave().await;
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert!(matches!(
        ending.outcome,
        Outcome::ClientClosed | Outcome::ClientReset
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_through_that_breaks_off_is_broken_off() {
    // All of it at once, so that the break is known when the first event has not left yet.
    let script = Script::tokens(20).writes(Writes::AllAtOnce).fin_after(3);
    let harness = Harness::start(script).await;
    let (plain, _) = Client::new(harness.mock.addr())
        .get("/feed")
        .await
        .all()
        .await;
    for _ in 0..20 {
        let (body, end) = harness.client.get("/feed").await.all().await;
        assert_eq!(end, End::Fin);
        assert_eq!(body, plain, "what came before the break");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_on_another_route_passes_untouched() {
    let mut script = Script::tokens(20).block_after(2, ": a comment\n\nfoo: bar\n\n");
    script.retry = Some(1234);
    script.bom = true;
    let harness = Harness::start(script).await;
    let client = harness.client.with("last-event-id", "7");
    let response = client.get("/feed").await;
    assert_eq!(response.header("x-streamweld-stream-id"), None);
    assert_eq!(response.header("x-streamweld-durability"), None);
    assert!(response.header("x-streamweld-request-id").is_some());
    let (body, end) = response.all().await;
    assert_eq!(end, End::Proper);
    let (plain, _) = Client::new(harness.mock.addr())
        .get("/feed")
        .await
        .all()
        .await;
    assert_eq!(body, plain, "byte for byte");
    let request = harness.mock.recorder().request(0).expect("recorded");
    assert_eq!(request.header("last-event-id"), Some("7"));
}

fn feeds(config: &mut Config) {
    config.generation.durable_get = vec!["/feed".to_owned(), "/live/*".to_owned()];
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_feed_has_ids_of_ours_and_is_resumed() {
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).config(feeds);
    let harness = setup.start().await;
    let client = &harness.client;
    let mut response = client.get("/feed?a=b").await;
    let id = response.id();
    let first = response.body.blocks(3).await;
    assert_eq!(blocks(&first)[2].id, Some(format!("{id}:4")));
    response.leave().await;
    let back = client.with("last-event-id", &format!("{id}:4"));
    let response = back.get("/feed?a=b").await;
    assert_eq!(response.id(), id);
    harness.mock.gates().release("go");
    let (rest, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest)[0].seq(), 5);
    assert_eq!(blocks(&rest).len(), 17);
    wait_end(client, &id).await;
    // It ended by itself: there is nothing more, and nothing begins anew.
    let back = client.with("last-event-id", &format!("{id}:21"));
    assert_eq!(back.get("/feed?a=b").await.status, 204);
    assert_eq!(harness.mock.recorder().count(), 1);
}

/// Ends a feed by its orphan policy or its age, and asks again with our cursor.
async fn check_begins_anew(path: &str, change: fn(&mut Config), last: Option<&str>) {
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).config(move |config| {
        feeds(config);
        change(config);
    });
    let harness = setup.start().await;
    harness.mock.set_script_at(
        "/live/1",
        Script::tokens(20)
            .dialect(Dialect::Generic)
            .gate_after(3, "go"),
    );
    let client = &harness.client;
    let mut response = client.get(path).await;
    let id = response.id();
    response.body.blocks(3).await;
    response.leave().await;
    wait_end(client, &id).await;
    let back = client.with("last-event-id", &format!("{id}:4"));
    let response = back.get(path).await;
    assert_eq!(response.status, 200);
    assert_ne!(response.id(), id);
    let request = harness.mock.recorder().request(1).expect("a new request");
    assert_eq!(request.header("last-event-id"), last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_was_cut_short_begins_anew_where_the_backend_was() {
    let orphaned = |config: &mut Config| {
        config.generation.feed_orphan_policy = streamweld_generation::OrphanPolicy::Cancel;
    };
    let aged = |config: &mut Config| {
        config.generation.max_duration = std::time::Duration::from_millis(300);
    };
    check_begins_anew("/feed", orphaned, Some("3")).await;
    check_begins_anew("/feed", aged, Some("3")).await;
    check_begins_anew("/live/1", orphaned, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_was_stopped_does_not_begin_anew() {
    let setup = Setup::new(Script::tokens(20).gate_after(3, "go")).config(feeds);
    let harness = setup.start().await;
    let client = &harness.client;
    let mut response = client.get("/feed").await;
    let id = response.id();
    response.body.blocks(3).await;
    let stop = format!("/v1/streams/{id}/stop");
    assert_eq!(client.send("POST", &stop, "").await.status, 200);
    let back = client.with("last-event-id", &format!("{id}:4"));
    assert_eq!(back.get("/feed").await.status, 204);
    assert_eq!(harness.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused() {
    let setup =
        Setup::new(Script::tokens(3)).config(|config| config.edge.max_request_body = Some(100));
    let harness = setup.start().await;
    let too_large = (413, "request_too_large".to_owned());
    for method in ["PUT", "POST"] {
        // Declared: nothing is sent, and nothing is read.
        let head = format!("{method} /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 101\r\n\r\n");
        let response = harness.client.raw(head.as_bytes()).await;
        assert_eq!(response.error_code().await, too_large, "{method}");
        assert_eq!(harness.mock.recorder().accepted_connections(), 0);
    }
    for method in ["PUT", "POST"] {
        // Found out on the way.
        let chunk = format!("{:x}\r\n{}\r\n", 60, "x".repeat(60));
        let request = format!(
            "{method} /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n\
             {chunk}{chunk}0\r\n\r\n"
        );
        let response = harness.client.raw(request.as_bytes()).await;
        assert_eq!(response.error_code().await, too_large, "{method}");
    }
    assert_eq!(
        harness.mock.recorder().count(),
        0,
        "never as if it were whole"
    );
    let fits = "x".repeat(100);
    for method in ["PUT", "POST"] {
        let echo = echo(harness.client.send(method, "/echo", &fits).await).await;
        assert_eq!(echo["body_len"], 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_answer_does_not_wait_for_the_body() {
    let harness = Harness::start(Script::tokens(3)).await;
    let mut script = Script::answer(401, "no");
    script.early = true;
    harness.mock.set_script_at("/a", script);
    for method in ["PUT", "POST"] {
        let request =
            format!("{method} /a HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n1");
        let stream = harness.client.begin(request.as_bytes()).await;
        let response = patience(Response::read(stream)).await.expect("an answer");
        assert_eq!(response.status, 401, "{method}");
        assert_eq!(response.all().await.0, b"no");
    }
}
