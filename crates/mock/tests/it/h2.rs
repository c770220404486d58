//! The mock over HTTP/2.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use streamweld_mock::{Ask, Cut, Dialect, Mock, MockConfig, Outcome, Protocol, Script};
use tokio::net::TcpStream;

use crate::client::soon;

async fn start(script: Script) -> Mock {
    let config = MockConfig {
        default: script,
        protocol: Protocol::Http2,
        ..MockConfig::default()
    };
    Mock::bind("127.0.0.1:0", config).await.unwrap()
}

#[tokio::test]
async fn what_still_waits_ends_with_the_mock() {
    for script in [
        Script::new().head_gate("never"),
        Script::new().stall_after(1),
    ] {
        let mock = start(script).await;
        let client = async { chat(&mock).await };
        tokio::select! {
            _ = client => panic!("there is no whole answer"),
            seen = mock.recorder().wait_requests(1) => seen.unwrap(),
        }
        let recorder = mock.kill(Cut::Fin).await;
        let outcome = recorder.wait_closed(0).await.unwrap().outcome;
        assert!(matches!(outcome, Outcome::Dropped | Outcome::ClientClosed));
        assert_eq!(recorder.open_connections(), 0);
    }
}

/// The body of a streamed chat answer, and whether it ended well.
async fn chat(mock: &Mock) -> (Vec<u8>, bool) {
    let stream = TcpStream::connect(mock.addr()).await.unwrap();
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let request = http::Request::post(format!("{}/v1/chat/completions", mock.url()))
        .body(Full::new(Bytes::from(r#"{"stream":true}"#)))
        .unwrap();
    let mut body = soon(send.send_request(request)).await.unwrap().into_body();
    let mut bytes = Vec::new();
    let whole = loop {
        match soon(body.frame()).await {
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().unwrap()),
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    driver.abort();
    (bytes, whole)
}

#[tokio::test]
async fn a_whole_answer() {
    let script = Script::tokens(5);
    let mock = start(script.clone()).await;
    let (body, whole) = chat(&mock).await;
    assert!(whole);
    assert_eq!(body, script.wire(&Ask::stream(Dialect::OpenAiChat)));
    let request = mock.recorder().request(0).unwrap();
    assert_eq!(
        (request.version, request.path()),
        (20, "/v1/chat/completions")
    );
    assert_eq!(
        mock.recorder().wait_closed(0).await.unwrap().outcome,
        Outcome::Finished
    );
}

#[tokio::test]
async fn a_cut_resets_the_stream() {
    let script = Script::tokens(5).rst_after(3);
    let mock = start(script.clone()).await;
    let (body, whole) = chat(&mock).await;
    assert!(!whole);
    assert_eq!(body, script.wire(&Ask::stream(Dialect::OpenAiChat)));
    assert_eq!(
        mock.recorder().wait_closed(0).await.unwrap().outcome,
        Outcome::Cut
    );
}
