//! The abort: everything before it reaches the other side, in each version of HTTP (protocol.md 7.4), and what is
//! written are whole blocks (protocol.md 5, rules 5 and 7).

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use streamweld_mock::{Dialect, Outcome, Script, Writes};
use streamweld_tests::{End, Harness, Setup, ask, blocks, events, patience, question, without_ids};
use tokio::net::TcpStream;

/// Three events, then the connection of the backend ends.
fn cut() -> Script {
    Script::tokens(8).fin_after(3)
}

/// Three events and the error form.
#[track_caller]
fn assert_form(body: &[u8]) {
    let blocks = blocks(body);
    assert_eq!(blocks.len(), 4, "{blocks:#?}");
    let form = blocks[3].data.as_deref().expect("data");
    assert!(form.contains(r#""code":"truncated""#), "{form}");
}

// HTTP/1.1.

#[tokio::test(flavor = "multi_thread")]
async fn http11_gets_the_form_and_then_a_close_without_the_last_chunk_200_times() {
    let harness = Harness::start(cut()).await;
    for _ in 0..20 {
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let client = harness.client.clone();
            readers.spawn(async move { ask(&client, Dialect::OpenAiChat).await.all().await });
        }
        while let Some(read) = readers.join_next().await {
            let (body, end) = read.expect("no panic");
            assert_form(&body);
            assert_eq!(
                end,
                End::Fin,
                "a close, not a reset, which might overtake it"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http11_gets_everything_before_a_bare_abort() {
    for events in [0, 1, 3] {
        let harness = Harness::start(Script::tokens(8).fin_after(events)).await;
        for _ in 0..20 {
            let response = ask(&harness.client, Dialect::Generic).await;
            let id = response.id();
            let first = response.all().await;
            assert_eq!(blocks(&first.0).len(), events);
            assert_eq!(first.1, End::Fin);
            if events > 0 {
                let replay = harness.client.events(&id).await;
                assert_eq!(replay.status, 200);
                assert_eq!(replay.all().await, first);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http11_gets_the_form_however_late_it_reads() {
    // More than the buffers of two sockets hold, so that the form has to wait here.
    let script = Script::tokens(4_000)
        .huge_event_after(2, 8 << 20)
        .fin_after(3_000);
    let harness = Harness::start(script).await;
    let mut response = harness
        .client
        .post_slowly("/v1/chat/completions", &question())
        .await;
    // The generation is over before its reader has begun.
    let recorder = harness.mock.recorder();
    let ending = recorder.wait_closed(0).await.expect("ends");
    assert_eq!(ending.outcome, Outcome::Cut);
    let state = format!("/v1/streams/{}", response.id());
    patience(async {
        while harness.client.get(&state).await.json().await["status"] != "error" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (body, end) = response.body.rest().await;
    let blocks = blocks(&body);
    assert_eq!(
        blocks.len(),
        3_002,
        "the events, the large one and the form"
    );
    assert!(blocks[3_001].id.is_none());
    let form = blocks[3_001].data.as_deref().expect("data");
    assert!(form.contains(r#""code":"truncated""#), "{form}");
    assert_eq!(end, End::Fin);
}

// HTTP/2.

async fn http2(harness: &Harness, window: Option<u32>) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(harness.client.addr)
        .await
        .expect("connects");
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .expect("speaks HTTP/2");
    tokio::spawn(connection);
    sender
}

async fn ask2(sender: &mut SendRequest<Full<Bytes>>, dialect: Dialect) -> Response<Incoming> {
    let request = Request::post(format!("http://x{}", dialect.path()))
        .body(Full::new(Bytes::from(question())))
        .expect("a request");
    let response = patience(sender.send_request(request)).await;
    let response = response.expect("a head");
    assert_eq!(response.status(), StatusCode::OK);
    response
}

/// The whole body, and what broke it off if anything did.
async fn all2(body: &mut Incoming) -> (Vec<u8>, Option<String>) {
    let mut all = Vec::new();
    while let Some(frame) = patience(body.frame()).await {
        match frame {
            Ok(frame) => all.extend_from_slice(&frame.into_data().expect("data only")),
            Err(error) => {
                let why = error
                    .source()
                    .map_or_else(|| error.to_string(), ToString::to_string);
                return (all, Some(why));
            }
        }
    }
    (all, None)
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_gets_the_form_and_then_a_reset_of_its_stream_alone() {
    let harness = Harness::start(cut()).await;
    let mut sender = http2(&harness, None).await;
    harness
        .mock
        .push_script(Script::tokens(8).gate_after(4, "hold"));
    let mut other = ask2(&mut sender, Dialect::OpenAiChat).await.into_body();
    for _ in 0..50 {
        let mut response = ask2(&mut sender, Dialect::OpenAiChat).await;
        let (body, broken) = all2(response.body_mut()).await;
        assert_form(&body);
        let why = broken.expect("is broken off");
        assert!(
            why.contains("stream error") && why.contains("internal error"),
            "{why}"
        );
    }
    // The other stream of the connection lives on.
    harness.mock.gates().release("hold");
    let (body, broken) = all2(&mut other).await;
    assert_eq!(broken, None);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert!(sender.is_ready());
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_gets_the_form_when_its_window_opens_however_late_that_is() {
    let harness = Harness::start(cut()).await;
    // Less than the events take, so that the form waits for the window.
    let mut sender = http2(&harness, Some(100)).await;
    let mut response = ask2(&mut sender, Dialect::OpenAiChat).await;
    let id = response.headers()["x-streamweld-stream-id"].to_str();
    let state = format!("/v1/streams/{}", id.expect("text"));
    patience(async {
        while harness.client.get(&state).await.json().await["status"] != "error" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (body, broken) = all2(response.body_mut()).await;
    assert_form(&body);
    assert!(broken.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_gets_everything_before_a_bare_abort() {
    for events in [0, 1, 3] {
        let harness = Harness::start(Script::tokens(8).fin_after(events)).await;
        let mut sender = http2(&harness, None).await;
        for _ in 0..20 {
            let mut response = ask2(&mut sender, Dialect::Generic).await;
            let (body, broken) = all2(response.body_mut()).await;
            assert_eq!(blocks(&body).len(), events);
            assert!(broken.is_some(), "a clean end after a cut");
        }
    }
}

// HTTP/1.0.

#[tokio::test(flavor = "multi_thread")]
async fn http10_gets_the_form_and_then_a_reset() {
    let harness = Harness::start(cut()).await;
    for _ in 0..20 {
        let body = question();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let response = harness
            .client
            .raw(&[head.as_bytes(), body.as_bytes()].concat())
            .await;
        assert_eq!(response.header("transfer-encoding"), None);
        let (body, end) = response.all().await;
        assert_form(&body);
        assert_eq!(end, End::Reset, "a close would look like the end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http10_gets_a_clean_close_after_a_whole_answer() {
    let harness = Harness::start(Script::tokens(8)).await;
    let body = question();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let response = harness
        .client
        .raw(&[head.as_bytes(), body.as_bytes()].concat())
        .await;
    let (body, end) = response.all().await;
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    assert_eq!(end, End::Close);
}

// Writes.

#[tokio::test(flavor = "multi_thread")]
async fn a_write_holds_whole_blocks_only_however_the_backend_splits_them() {
    let split = Script {
        pace: Duration::from_millis(1),
        ..Script::text("日本語 🦀 text").writes(Writes::Bytes(1))
    };
    let whole = Script::text("日本語 🦀 text");
    let harness = Setup::new(whole)
        .config(|config| config.edge.heartbeat = Duration::from_millis(5))
        .start()
        .await;
    let (expected, _) = ask(&harness.client, Dialect::OpenAiChat).await.all().await;
    harness.mock.set_script(Script {
        id: Some("chatcmpl-mock-00000001".to_owned()),
        ..split
    });
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let (mut all, mut beats) = (Vec::new(), 0);
    while let Some(chunk) = response.body.chunk().await {
        // Each chunk by itself keeps to the profile: it begins and ends between blocks.
        let shown = blocks(&chunk);
        beats += usize::from(shown.is_empty());
        all.extend_from_slice(&chunk);
    }
    assert_eq!(response.body.end(), Some(End::Proper));
    assert_eq!(
        without_ids(&blocks(&all)),
        without_ids(&blocks(&expected)),
        "the same output as unsplit"
    );
    assert!(beats > 0, "an event takes longer than a heartbeat here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_of_many_blocks_is_not_torn_either() {
    let harness = Harness::start(Script::tokens(30_000).writes(Writes::Batch(100))).await;
    let mut response = ask(&harness.client, Dialect::OpenAiChat).await;
    let id = response.id();
    let (mut all, mut most) = (Vec::new(), 0);
    while let Some(chunk) = response.body.chunk().await {
        assert!(chunk.len() <= 256 << 10, "the largest write");
        most = most.max(blocks(&chunk).len());
        all.extend_from_slice(&chunk);
    }
    assert_eq!(blocks(&all).len(), 30_003);
    assert!(most > 1, "what is ready together is written together");
    assert_eq!(harness.client.events(&id).await.all().await.0, all);
}
