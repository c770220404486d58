//! Which connections are used again, and that no request is sent twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use streamweld_upstream::{ErrorKind, Read};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::raw::{Raw, client, client_with, drain, get, read_head, send, within};

const ABC: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";

#[tokio::test]
async fn a_read_response_leaves_its_connection_for_the_next() {
    let raw = Raw::answering(ABC).await;
    let client = client();
    for _ in 0..20 {
        let mut response = send(&client, &raw.backend()).await.unwrap();
        assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
    }
    assert_eq!(raw.connections(), 1);
}

/// A server that sends a response of known length on does not ask for the end of it.
#[tokio::test]
async fn a_response_read_to_its_length_leaves_its_connection_too() {
    let raw = Raw::answering(ABC).await;
    let client = client();
    for _ in 0..5 {
        let mut response = send(&client, &raw.backend()).await.unwrap();
        let read = within(response.body_mut().read()).await;
        assert!(matches!(read, Read::Data(data) if data == "abc"));
    }
    assert_eq!(raw.connections(), 1);
}

#[tokio::test]
async fn a_response_dropped_early_does_not() {
    let raw = Raw::answering(ABC).await;
    let client = client();
    for _ in 0..5 {
        send(&client, &raw.backend()).await.unwrap();
    }
    assert_eq!(raw.connections(), 5);
}

#[tokio::test]
async fn a_connection_to_be_closed_is_not_kept() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc",
    ] {
        let raw = Raw::answering(answer).await;
        let client = client();
        for _ in 0..2 {
            let mut response = send(&client, &raw.backend()).await.unwrap();
            assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
        }
        assert_eq!(raw.connections(), 2);
    }
}

/// What a connection says while nobody asks would be taken for the next answer, and the end of one
/// is no place for a request.
#[tokio::test]
async fn a_connection_that_spoke_or_ended_meanwhile_is_not_used() {
    for late in ["HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad", ""] {
        let (tx, mut done) = mpsc::channel(1);
        let raw = Raw::start(move |mut stream, _| {
            let tx = tx.clone();
            async move {
                read_head(&mut stream).await;
                stream.write_all(ABC.as_bytes()).await.unwrap();
                // The client has read its answer when it asks for this.
                tx.reserve().await.unwrap().send(());
                tx.reserve().await.unwrap();
                stream.write_all(late.as_bytes()).await.unwrap();
                if late.is_empty() {
                    drop(stream);
                    tx.send(()).await.unwrap();
                } else {
                    tx.send(()).await.unwrap();
                    while stream.read_u8().await.is_ok() {}
                }
            }
        })
        .await;
        let client = client();
        for number in 1..4 {
            let mut response = send(&client, &raw.backend()).await.unwrap();
            assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
            within(done.recv()).await.unwrap();
            within(done.recv()).await.unwrap();
            assert_eq!(raw.connections(), number);
        }
    }
}

#[tokio::test]
async fn no_more_than_the_bound_are_kept() {
    let raw = Raw::answering(ABC).await;
    let client = client_with(|config| config.pool_max_idle = 2);
    for (round, connections) in [(0, 4), (1, 6)] {
        let mut responses = Vec::new();
        for _ in 0..4 {
            responses.push(send(&client, &raw.backend()).await.unwrap());
        }
        for response in &mut responses {
            drain(response.body_mut()).await;
        }
        assert_eq!(raw.connections(), connections, "round {round}");
    }
}

#[tokio::test]
async fn an_unused_connection_is_closed_in_time() {
    let (tx, mut closed) = mpsc::channel(1);
    let raw = Raw::start(move |mut stream, _| {
        let tx = tx.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(ABC.as_bytes()).await.unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            tx.send(()).await.unwrap();
        }
    })
    .await;
    let client = client_with(|config| config.pool_idle_timeout = Duration::from_millis(20));
    let mut response = send(&client, &raw.backend()).await.unwrap();
    drain(response.body_mut()).await;
    within(closed.recv()).await.unwrap();
}

/// The backend closes every connection right behind its answer, without saying so. Requests meet
/// that moment at random. One that could not be written is repeated unseen; one that may have been
/// written is an error; none reaches the backend twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_never_seen_twice() {
    let seen = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let heads = Arc::clone(&seen);
    let raw = Raw::start(move |mut stream, _| {
        let heads = Arc::clone(&heads);
        async move {
            let Some(head) = read_head(&mut stream).await else {
                return;
            };
            *heads.lock().unwrap().entry(head).or_default() += 1;
            stream.write_all(ABC.as_bytes()).await.unwrap();
        }
    })
    .await;
    let client = client();
    for number in 0..500 {
        let path = format!("/{number}");
        match within(client.send(&raw.backend(), get(&path))).await {
            Ok(mut response) => {
                assert_eq!(drain(response.body_mut()).await, ("abc".into(), None));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Closed);
                assert!(error.request_sent() && !error.is_retry_safe());
            }
        }
    }
    let seen = seen.lock().unwrap();
    assert!(seen.values().all(|times| *times == 1));
    assert!(seen.len() > 250, "most requests must get through");
}

/// A connection's I/O belongs to the runtime that made it. When that one goes, responses end as
/// cut, on whatever runtime they are read, and never as complete.
#[test]
fn a_runtime_that_goes_cuts_its_responses() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let (here, there) = (runtime(), runtime());
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let raw = here.block_on(Raw::answering(head));
    let client = client();
    let mut response = there.block_on(send(&client, &raw.backend())).unwrap();
    drop(there);
    let (data, cut) = here.block_on(drain(response.body_mut()));
    assert_eq!((data.as_str(), cut.is_some()), ("", true));

    // The client makes new connections where it is used next.
    here.block_on(send(&client, &raw.backend())).unwrap();
}
