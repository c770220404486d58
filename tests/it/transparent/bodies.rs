//! Bodies, in both directions and at once.

use streamweld_mock::{Outcome, Script, Writes};
use streamweld_tests::{Client, End, Harness, RawBackend, Response, Setup, Wire, patience};

use super::echo;

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
    let setup =
        Setup::new(Script::tokens(3)).config(move |config| config.backends = vec![backend.into()]);
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
