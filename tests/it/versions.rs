//! HTTP/2 on either side, and HTTP/1.0 (protocol.md 4.2).

use std::future::Future;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use streamweld_mock::{MockConfig, Outcome, Protocol as MockProtocol, Script};
use streamweld_tests::{
    CHAT, Client, End, Harness, Setup, Wire, blocks, events, patience, wait_end,
};
use streamweld_upstream::Protocol;
use tokio::net::TcpStream;

type Http2 = SendRequest<Full<Bytes>>;

async fn connect(client: &Client) -> Http2 {
    let stream = TcpStream::connect(client.addr).await.expect("connects");
    let (sender, connection) = patience(handshake(TokioExecutor::new(), TokioIo::new(stream)))
        .await
        .expect("speaks HTTP/2");
    tokio::spawn(connection);
    sender
}

fn request(method: &str, path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("http://h{path}"))
        .body(Full::new(Bytes::from(body.to_owned())))
        .expect("a request")
}

fn ask(
    sender: &Http2,
    request: Request<Full<Bytes>>,
) -> impl Future<Output = hyper::Response<hyper::body::Incoming>> + use<> {
    let mut sender = sender.clone();
    async move {
        let answer = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        patience(answer).await.expect("an answer")
    }
}

async fn body(response: hyper::Response<hyper::body::Incoming>) -> Vec<u8> {
    let collected = patience(response.into_body().collect()).await;
    collected.expect("a whole body").to_bytes().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_passes_through() {
    let harness = Harness::start(Script::tokens(3)).await;
    let sender = connect(&harness.client).await;
    let large = "0123456789abcdef".repeat(16 << 10);
    let asks: Vec<_> = (0..20)
        .map(|at| {
            tokio::spawn(ask(
                &sender,
                request("PUT", &format!("/echo/{at}?a=%20"), &large),
            ))
        })
        .collect();
    for (at, asked) in asks.into_iter().enumerate() {
        let response = asked.await.expect("no panic");
        assert_eq!(response.status(), 200);
        assert!(response.headers().contains_key("x-streamweld-request-id"));
        let echo: serde_json::Value = serde_json::from_slice(&body(response).await).expect("JSON");
        assert_eq!(echo["target"], format!("/echo/{at}?a=%20"));
        assert_eq!(echo["body_len"], large.len());
        assert_eq!(echo["version"], 11);
        let hosts = echo["headers"].as_array().expect("fields").iter();
        let hosts: Vec<_> = hosts.filter(|field| field[0] == "host").collect();
        assert_eq!(hosts.len(), 1);
        assert_eq!(hosts[0][1], harness.mock.addr().to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_durable_streams_share_one_http_2_connection() {
    let harness = Harness::start(Script::tokens(50).gate_after(3, "go")).await;
    let sender = connect(&harness.client).await;
    let mut responses = Vec::new();
    for at in 0..20 {
        let chat = CHAT.replace("hi", &format!("hi {at}"));
        let response = ask(&sender, request("POST", "/v1/chat/completions", &chat)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-streamweld-durability"], "durable");
        assert!(!response.headers().contains_key("transfer-encoding"));
        assert!(!response.headers().contains_key("connection"));
        responses.push(response);
    }
    harness.mock.gates().release("go");
    for response in responses {
        let id = response.headers()["x-streamweld-stream-id"].clone();
        let id = id.to_str().expect("text");
        let first = body(response).await;
        assert_eq!(events(&first).len(), 53);
        let path = format!("/v1/streams/{id}/events");
        let mut resume = request("GET", &path, "");
        let cursor = format!("{id}:10").parse().expect("a value");
        resume.headers_mut().insert("last-event-id", cursor);
        let rest = body(ask(&sender, resume).await).await;
        assert_eq!(blocks(&rest), blocks(&first)[9..]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_stream_is_a_reader_that_left() {
    let harness = Harness::start(Script::tokens(50).gate_after(3, "go")).await;
    let sender = connect(&harness.client).await;
    let mut cancelled = request("POST", "/v1/chat/completions", CHAT);
    cancelled.headers_mut().insert(
        "x-streamweld-orphan-policy",
        http::HeaderValue::from_static("cancel"),
    );
    let response = ask(&sender, cancelled).await;
    let id = response.headers()["x-streamweld-stream-id"].clone();
    drop(response);
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    let id = id.to_str().expect("text");
    let state = wait_end(&harness.client, id).await;
    assert_eq!(state["terminal"]["code"], "orphan_cancelled");
    // Only the stream went.
    assert_eq!(
        ask(&sender, request("GET", "/echo", "")).await.status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_is_refused_over_http_2() {
    let harness = Harness::start(Script::tokens(3)).await;
    let sender = connect(&harness.client).await;
    let request = Request::builder()
        .method("CONNECT")
        .uri("evil.example:443")
        .body(Full::default())
        .expect("a request");
    assert_eq!(ask(&sender, request).await.status(), 405);
    assert_eq!(harness.mock.recorder().accepted_connections(), 0);
}

async fn http_2_backend(script: Script) -> Harness {
    let setup = Setup::new(Script::new())
        .mock(MockConfig {
            default: script,
            protocol: MockProtocol::Http2,
            ..MockConfig::default()
        })
        .config(|config| config.upstream.protocol = Protocol::Http2);
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_speaks_http_2_streams_and_passes() {
    let harness = http_2_backend(Script::tokens(20)).await;
    let response = harness.client.chat().await;
    let id = response.id();
    let (first, end) = response.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&first).len(), 23);
    wait_end(&harness.client, &id).await;
    let (again, _) = harness.client.events(&id).await.all().await;
    assert_eq!(again, first);

    let body = "0123456789abcdef".repeat(64 << 10);
    let client = harness
        .client
        .with("connection", "x-hop")
        .with("x-hop", "1");
    let echo = client.send("PUT", "/echo/a?b", &body).await.json().await;
    assert_eq!(echo["version"], 20);
    assert_eq!(echo["target"], "/echo/a?b");
    assert_eq!(echo["body_len"], body.len());
    assert!(!echo["headers"].to_string().contains("x-hop"));
    let feed = harness.client.get("/feed").await;
    assert_eq!(feed.all().await.1, End::Proper);
    assert_eq!(harness.mock.recorder().accepted_connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_2_backend_that_resets_fails_the_attempt_alone() {
    let harness = http_2_backend(Script::tokens(20).gate_after(3, "cut").rst_after(3)).await;
    let mut response = harness.client.chat().await;
    let id = response.id();
    let mut body = response.body.blocks(3).await;
    // A reset takes with it what was not read before.
    harness.mock.gates().release("cut");
    let (rest, end) = response.body.rest().await;
    body.extend(rest);
    assert_eq!(end, End::Fin);
    let state = wait_end(&harness.client, &id).await;
    assert_eq!(state["terminal"]["code"], "truncated");
    assert_eq!(blocks(&body).len(), 4);
    harness.mock.set_script(Script::tokens(3));
    let (body, end) = harness.client.chat().await.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).len(), 6);
    assert_eq!(harness.mock.recorder().accepted_connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_resets_the_stream_of_an_http_2_backend() {
    let harness = http_2_backend(Script::tokens(20).gate_after(3, "go")).await;
    let client = harness.client.with("x-streamweld-orphan-policy", "cancel");
    let mut response = client.chat().await;
    response.body.blocks(3).await;
    response.leave().await;
    let ending = harness.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
    assert_eq!(harness.client.get("/echo").await.status, 200);
    assert_eq!(harness.mock.recorder().accepted_connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_reads_to_the_close() {
    let harness = Harness::start(Script::tokens(20)).await;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n{CHAT}",
        CHAT.len()
    );
    let answer = Wire::open(&harness.client, request).await.rest().await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let head = head.to_ascii_lowercase();
    assert!(head.contains(" 200 "), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_eq!(events(body.as_bytes()).len(), 23);
    let get = "GET /echo HTTP/1.0\r\n\r\n";
    let answer = Wire::open(&harness.client, get).await.rest().await;
    assert!(answer.contains(r#""target":"/echo""#), "{answer}");
}
