//! What hyper does by itself with HTTP/2 responses that must not be trusted.
//!
//! Not a test of this crate, but of the reasons it gives: when one of these fails after an update,
//! the table in `src/head.rs` is out of date, and `src/http2/body.rs` may be simpler.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::http2 as ours;
use crate::raw::{Raw, within};

/// One request to `raw`. `go` is notified once the first data has come; gives the rest of the body.
async fn body(raw: &Raw, go: &Notify) -> Result<Bytes, hyper::Error> {
    let stream = TcpStream::connect(("127.0.0.1", raw.port)).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let uri = format!("http://127.0.0.1:{}/x", raw.port);
    let request = Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
    let mut response = within(sender.send_request(request)).await.unwrap();
    let first = within(response.frame()).await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "abc");
    go.notify_one();
    Ok(within(response.into_body().collect()).await?.to_bytes())
}

#[tokio::test]
async fn a_stream_that_was_reset_without_error_is_called_complete() {
    for (reason, complete) in [(Reason::NO_ERROR, true), (Reason::CANCEL, false)] {
        let go = Arc::new(Notify::new());
        let wait = Arc::clone(&go);
        let raw = ours::backend(move |_, mut respond| {
            let wait = Arc::clone(&wait);
            async move {
                let mut stream = respond.send_response(Response::new(()), false).unwrap();
                stream.send_data("abc".into(), false).unwrap();
                wait.notified().await;
                stream.send_reset(reason);
                let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
            }
        })
        .await;
        assert_eq!(body(&raw, &go).await.is_ok(), complete, "{reason}");
    }
}

#[tokio::test]
async fn a_stream_that_was_disowned_without_error_is_called_complete() {
    let go = Arc::new(Notify::new());
    let raw = ours::disowning(Arc::clone(&go)).await;
    assert_eq!(body(&raw, &go).await.unwrap(), "");
}
