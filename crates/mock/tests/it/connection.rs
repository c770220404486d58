//! Connections: reuse, bodies, clients that leave, the end of the mock.

use std::time::Duration;

use serde_json::json;
use streamweld_mock::{Cut, FullBacklog, Mock, Outcome, Script};

use crate::client::{Client, End};

#[tokio::test]
async fn a_connection_is_reused_and_pipelined() {
    let mock = Mock::start(Script::tokens(1)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.get("/feed").await;
    client.get("/echo").await;
    assert_eq!(client.body().await.1, End::Clean);
    let (_, echo) = client.json().await;
    assert_eq!(echo["connection"], 1);
    client
        .send("GET /health HTTP/1.1\r\nconnection: close\r\n\r\n")
        .await;
    assert_eq!(client.json().await, (200, json!({"status":"ok"})));
    assert_eq!(client.rest().await, (Vec::new(), End::Fin));
    assert_eq!(mock.recorder().accepted_connections(), 1);
    mock.recorder().wait_open_connections(0).await.unwrap();
}

#[tokio::test]
async fn chunked_request_bodies_are_read() {
    let mock = Mock::start(Script::new()).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client
        .send("PUT /echo/x?y=1 HTTP/1.1\r\nX-A: 1\r\nx-a: 2\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    client
        .send("3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\ntrailer: 1\r\n\r\n")
        .await;
    let (_, echo) = client.json().await;
    assert_eq!(echo["method"], "PUT");
    assert_eq!(echo["target"], "/echo/x?y=1");
    assert_eq!(echo["headers"][0], json!(["X-A", "1"]));
    assert_eq!(echo["headers"][1], json!(["x-a", "2"]));
    assert_eq!(echo["body_len"], 5);
    let digest = "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c";
    assert_eq!(echo["body_sha256"], digest);
    assert_eq!(mock.recorder().request(0).unwrap().body, "abcde");
}

#[tokio::test]
async fn a_client_that_expects_is_told_to_go_on() {
    let mock = Mock::start(Script::new()).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client
        .send("POST /echo HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        .await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ok").await;
    assert_eq!(client.json().await.1["body_len"], 2);
}

#[tokio::test]
async fn an_early_answer_does_not_wait_for_the_body() {
    let mock = Mock::start(Script::new()).await.unwrap();
    mock.set_script_at(
        "/big",
        Script {
            early: true,
            ..Script::error(413)
        },
    );
    let mut client = Client::connect(mock.addr()).await;
    client
        .send("POST /big HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 99\r\n\r\n")
        .await;
    assert_eq!(client.json().await.0, 413);
    assert_eq!(client.rest().await, (Vec::new(), End::Fin));
}

#[tokio::test]
async fn a_full_backlog_answers_no_handshake() {
    let full = FullBacklog::bind().unwrap();
    let connect = tokio::net::TcpStream::connect(full.addr());
    assert!(
        tokio::time::timeout(Duration::from_millis(100), connect)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn contradictory_requests_are_refused() {
    for lines in [
        "content-length: 1\r\ntransfer-encoding: chunked\r\n",
        "content-length: x\r\n",
    ] {
        let mock = Mock::start(Script::new()).await.unwrap();
        let mut client = Client::connect(mock.addr()).await;
        client
            .send(format!("POST /echo HTTP/1.1\r\n{lines}\r\n"))
            .await;
        assert!(client.head().await.starts_with("HTTP/1.1 400"));
        assert_eq!(client.rest().await.1, End::Fin);
        assert_eq!(mock.recorder().count(), 0);
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    for half in [false, true] {
        let mock = Mock::start(Script::new().gate_after(3, "g")).await.unwrap();
        let mut client = Client::stream_chat(mock.addr()).await;
        client.head().await;
        for _ in 0..3 {
            client.chunk().await.unwrap();
        }
        if half {
            client.close_writing().await;
        } else {
            client.reset();
        }
        let ending = mock.recorder().wait_closed(0).await.unwrap();
        let outcome = if half {
            Outcome::ClientClosed
        } else {
            Outcome::ClientReset
        };
        assert_eq!((ending.outcome, ending.events), (outcome, 3));
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_and_leaves_is_noticed() {
    let mock = Mock::start(Script::tokens(10_000_000)).await.unwrap();
    let client = Client::stream_chat(mock.addr()).await;
    mock.recorder().wait_requests(1).await.unwrap();
    drop(client);
    let ending = mock.recorder().wait_closed(0).await.unwrap();
    assert!(matches!(
        ending.outcome,
        Outcome::ClientClosed | Outcome::ClientReset
    ));
}

#[tokio::test]
async fn connections_are_cut_and_the_mock_goes_on() {
    for (cut, end) in [(Cut::Fin, End::Fin), (Cut::Rst, End::Rst)] {
        let mock = Mock::start(Script::new().gate_after(1, "g")).await.unwrap();
        let mut client = Client::stream_chat(mock.addr()).await;
        client.head().await;
        client.chunk().await.unwrap();
        mock.gates().wait_arrived("g", 1).await.unwrap();
        mock.cut_connections(cut).await;
        assert_eq!(client.chunk().await, Err(end));
        assert_eq!(
            mock.recorder().wait_closed(0).await.unwrap().outcome,
            Outcome::Dropped
        );
        let mut next = Client::connect(mock.addr()).await;
        next.get("/health").await;
        assert_eq!(next.json().await.0, 200);
    }
}

#[tokio::test]
async fn a_killed_mock_leaves_nothing_behind() {
    let mock = Mock::start(Script::new().stall_after(1)).await.unwrap();
    let addr = mock.addr();
    let mut client = Client::stream_chat(addr).await;
    client.head().await;
    client.chunk().await.unwrap();
    let recorder = mock.kill(Cut::Fin).await;
    assert_eq!(client.chunk().await, Err(End::Fin));
    assert_eq!(recorder.open_connections(), 0);
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
    // Its port is free for the next one, as after a restart.
    let config = streamweld_mock::MockConfig::default();
    Mock::bind(addr, config).await.unwrap().shutdown().await;
}
