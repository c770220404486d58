//! Readers' responses in a content coding (protocol.md 4.8): only one that was asked for, each event as soon as it is
//! there, and never an end that looks like one when it is none.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use streamweld_mock::{Dialect, Script};
use streamweld_server::config::ContentCoding;
use streamweld_tests::{
    CHAT, Client, Decoding, End, Harness, Response, Setup, blocks, ends, patience, question,
};
use tokio::net::TcpStream;

const CHAT_PATH: &str = "/v1/chat/completions";

async fn compressing(script: Script) -> Harness {
    Setup::new(script)
        .config(|config| config.edge.compress = ContentCoding::ALL.to_vec())
        .start()
        .await
}

fn asking(client: &Client, accept: &str) -> Client {
    client.with("accept-encoding", accept)
}

async fn ask(client: &Client) -> Response {
    client.send("POST", CHAT_PATH, &question()).await
}

/// What its resume URL shows of a generation, in no coding.
async fn plain(harness: &Harness, id: &str) -> Vec<u8> {
    let response = harness.client.events(id).await;
    assert_eq!(response.header("content-encoding"), None);
    response.all().await.0
}

#[track_caller]
fn assert_coded(response: &Response, coding: ContentCoding) {
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-encoding"), Some(coding.as_str()));
    assert_eq!(response.header("vary"), Some("accept-encoding"));
    let media = response.header("content-type").expect("a media type");
    assert!(media.starts_with("text/event-stream"), "{media}");
    assert_eq!(response.header("content-length"), None);
    let cache = response.header("cache-control");
    assert_eq!(cache, Some("no-cache, no-store, no-transform"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_can_be_read_before_the_next_is_sent() {
    let script = Script::tokens(20).step_gate("step");
    let count = script
        .expected(&streamweld_mock::Ask::stream(Dialect::OpenAiChat))
        .len();
    for coding in ContentCoding::ALL {
        let harness = compressing(script.clone()).await;
        let mut response = ask(&asking(&harness.client, coding.as_str())).await;
        assert_coded(&response, coding);
        let mut decoding = Decoding::new(coding);
        for event in 1..=count {
            harness.mock.gates().step("step");
            decoding.blocks(&mut response.body, event).await;
            assert_eq!(blocks(decoding.read()).len(), event);
        }
        // Whatever the mock does behind its last event.
        harness.mock.gates().release("step");
        let id = response.id();
        let (read, end, whole) = decoding.all(&mut response.body).await;
        assert_eq!((end, whole), (End::Proper, true), "{coding}");
        assert_eq!(read, plain(&harness, &id).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_can_be_read_too() {
    for coding in ContentCoding::ALL {
        let harness = Setup::new(Script::tokens(3).gate_after(2, "go"))
            .config(|config| {
                config.edge.compress = ContentCoding::ALL.to_vec();
                config.edge.heartbeat = Duration::from_millis(20);
            })
            .start()
            .await;
        let mut response = ask(&asking(&harness.client, coding.as_str())).await;
        let mut decoding = Decoding::new(coding);
        decoding.blocks(&mut response.body, 2).await;
        while !decoding.read().ends_with(b"\n:\n:\n:\n") {
            let piece = response.body.chunk().await.expect("it goes on");
            decoding.push(&piece);
        }
        harness.mock.gates().release("go");
        let (_, end, whole) = decoding.all(&mut response.body).await;
        assert_eq!((end, whole), (End::Proper, true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_off_has_no_end_of_its_coding_either() {
    for coding in ContentCoding::ALL {
        for after in [0, 4] {
            let harness = compressing(Script::tokens(8).fin_after(after)).await;
            for _ in 0..20 {
                let mut response = ask(&asking(&harness.client, coding.as_str())).await;
                assert_coded(&response, coding);
                let read = Decoding::new(coding).all(&mut response.body).await;
                let (read, end, whole) = read;
                // The form is the last of it.
                assert_eq!(blocks(&read).len(), after + 1);
                assert_eq!((end, whole), (End::Fin, false), "{coding}");
            }
            let mut bare = asking(&harness.client, coding.as_str())
                .send("POST", "/generic", &question())
                .await;
            let (read, end, whole) = Decoding::new(coding).all(&mut bare.body).await;
            assert_eq!(blocks(&read).len(), after);
            assert_eq!((end, whole), (End::Fin, false), "{coding}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_is_the_same_up_to_its_close() {
    for coding in ContentCoding::ALL {
        for (script, expected) in [
            (Script::tokens(8), (End::Close, true)),
            (Script::tokens(8).fin_after(4), (End::Reset, false)),
        ] {
            let harness = compressing(script).await;
            let head = format!(
                "POST {CHAT_PATH} HTTP/1.0\r\naccept-encoding: {coding}\r\ncontent-length: {}\r\n\r\n{CHAT}",
                CHAT.len()
            );
            let mut response = harness.client.raw(head.as_bytes()).await;
            assert_coded(&response, coding);
            assert_eq!(response.header("transfer-encoding"), None);
            let (_, end, whole) = Decoding::new(coding).all(&mut response.body).await;
            assert_eq!((end, whole), expected, "{coding}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_the_same() {
    for coding in ContentCoding::ALL {
        for (script, is_whole) in [
            (Script::tokens(8), true),
            (Script::tokens(8).fin_after(4), false),
        ] {
            let harness = compressing(script).await;
            let stream = TcpStream::connect(harness.client.addr).await;
            let io = TokioIo::new(stream.expect("connects"));
            let (mut sender, connection) = patience(handshake(TokioExecutor::new(), io))
                .await
                .expect("speaks HTTP/2");
            tokio::spawn(connection);
            let request = Request::post(format!("http://h{CHAT_PATH}"))
                .header("accept-encoding", coding.as_str())
                .body(Full::new(Bytes::from(CHAT)))
                .expect("a request");
            let answer = patience(sender.send_request(request)).await;
            let mut response = answer.expect("an answer");
            assert_eq!(response.headers()["content-encoding"], coding.as_str());
            let mut decoding = Decoding::new(coding);
            let mut broken = false;
            while let Some(frame) = patience(response.body_mut().frame()).await {
                let Ok(frame) = frame else {
                    broken = true;
                    break;
                };
                decoding.push(&frame.into_data().expect("data"));
            }
            let count = if is_whole { 11 } else { 5 };
            assert_eq!(blocks(decoding.read()).len(), count);
            assert_eq!((decoding.is_whole(), broken), (is_whole, !is_whole));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coding_that_was_not_named_is_never_sent() {
    let harness = compressing(Script::tokens(3)).await;
    for accept in [
        "",
        "*",
        "deflate",
        "identity",
        "gzip;q=0",
        "identity, gzip;q=0.5",
    ] {
        let response = ask(&asking(&harness.client, accept)).await;
        assert_eq!(response.header("content-encoding"), None, "{accept:?}");
        assert_eq!(response.header("vary"), Some("accept-encoding"));
        let id = response.id();
        let (body, end) = response.all().await;
        assert_eq!((body, end), (plain(&harness, &id).await, End::Proper));
    }
    let liked = asking(&harness.client, "gzip;q=0.5, zstd;q=0.9, br;q=0.1");
    assert_coded(&ask(&liked).await, ContentCoding::Zstd);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_nothing_is_compressed() {
    let harness = Harness::start(Script::tokens(3)).await;
    let response = ask(&asking(&harness.client, "gzip, deflate, br, zstd")).await;
    assert_eq!(response.header("content-encoding"), None);
    assert_eq!(response.header("vary"), None);
    assert_eq!(blocks(&response.all().await.0).len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_reading_is_compressed_and_nothing_else() {
    let harness = compressing(Script::tokens(8).id("resp_0123456789abcdef0123456789")).await;
    let client = asking(&harness.client, "br, gzip;q=0.5");
    let response = client.send("POST", "/v1/responses", CHAT).await;
    assert_coded(&response, ContentCoding::Brotli);
    let id = response.id();
    response.all().await;
    let all = plain(&harness, &id).await;
    let rest = all[ends(&all)[2]..].to_vec();
    let cursor = client.with("last-event-id", &format!("{id}:4"));
    let own = "/v1/responses/resp_0123456789abcdef0123456789?stream=true&starting_after=2";
    for mut response in [
        cursor.events(&id).await,
        cursor.send("POST", "/v1/responses", CHAT).await,
        client.get(own).await,
        client
            .get(&format!("/v1/streams/{id}/events?after_events=3"))
            .await,
    ] {
        assert_coded(&response, ContentCoding::Brotli);
        let read = Decoding::new(ContentCoding::Brotli).all(&mut response.body);
        assert_eq!(read.await, (rest.clone(), End::Proper, true));
    }
    let over = client.with("last-event-id", &format!("{id}:{}", ends(&all).len() + 2));
    for (response, status) in [
        (over.events(&id).await, 204),
        (client.get(&format!("/v1/streams/{id}")).await, 200),
        (client.get("/v1/streams/0/events").await, 404),
        (
            client
                .send("POST", &format!("/v1/streams/{id}/stop"), "")
                .await,
            409,
        ),
        (client.get("/echo").await, 200),
    ] {
        assert_eq!(response.status, status);
        assert_eq!(response.header("content-encoding"), None);
        assert_eq!(response.header("vary"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_replay_is_the_same_bytes() {
    let script = Script::tokens(3000).huge_event_after(500, 1 << 20);
    let harness = compressing(script).await;
    let response = harness.client.send("POST", CHAT_PATH, CHAT).await;
    let id = response.id();
    let (all, _) = response.all().await;
    for coding in ContentCoding::ALL {
        let mut response = asking(&harness.client, coding.as_str()).events(&id).await;
        let (read, end, whole) = Decoding::new(coding).all(&mut response.body).await;
        assert!(read == all, "{coding}: {} bytes", read.len());
        assert_eq!((end, whole), (End::Proper, true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_backend_varies_by_is_kept() {
    let script = Script::tokens(3).header("vary", "origin");
    let harness = compressing(script).await;
    let client = asking(&harness.client, "gzip");
    let response = ask(&client).await;
    let id = response.id();
    for response in [response, client.events(&id).await] {
        let varies = response.headers.iter().filter(|(name, _)| name == "vary");
        let varies: Vec<&str> = varies.map(|(_, value)| value.as_str()).collect();
        assert_eq!(varies, ["origin", "accept-encoding"]);
    }
}
