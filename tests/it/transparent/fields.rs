//! Header fields, in both directions.

use streamweld_mock::Script;
use streamweld_tests::{End, Harness, Setup, Wire};

use super::{all, echo, headers};

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
