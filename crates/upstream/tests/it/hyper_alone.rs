//! What hyper and hyper-util do by themselves with responses that must not be trusted.
//!
//! Not a test of this crate, but of the reasons it gives: when one of these fails after an update,
//! the table in `src/head.rs` is out of date.

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;

use crate::raw::{Raw, chain, within};

#[derive(Debug, PartialEq)]
enum Seen {
    /// Taken, with this body; the body ended properly.
    Body(&'static str),
    /// Taken, but the body failed with this text somewhere in the chain.
    BodyError(&'static str),
    /// Refused, with this text somewhere in the chain.
    Refused(&'static str),
}

/// One request, and then a second one, to a backend that answers each with `answer`.
async fn check(method: Method, answer: &str, expected: Seen, expected_connections: usize) {
    let raw = Raw::answering(answer).await;
    let client: legacy::Client<_, Empty<Bytes>> =
        legacy::Client::builder(TokioExecutor::new()).build_http();
    for _ in 0..2 {
        let request = http::Request::builder()
            .method(method.clone())
            .uri(format!("http://127.0.0.1:{}/", raw.port))
            .body(Empty::new())
            .unwrap();
        let seen = match within(client.request(request)).await {
            Err(error) => Err((true, chain(&error))),
            Ok(response) => match within(response.into_body().collect()).await {
                Ok(body) => Ok(body.to_bytes()),
                Err(error) => Err((false, chain(&error))),
            },
        };
        match (&expected, seen) {
            (Seen::Body(body), Ok(seen)) => assert_eq!(seen, body.as_bytes(), "{answer:?}"),
            (Seen::Refused(text), Err((true, seen)))
            | (Seen::BodyError(text), Err((false, seen))) => {
                assert!(seen.contains(text), "{answer:?}: {seen}");
            }
            (_, seen) => panic!("{answer:?}: {seen:?}"),
        }
        // Whatever the connection's own task has to notice, it notices when it runs.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(raw.connections(), expected_connections, "{answer:?}");
}

async fn check_get(answer: &str, expected: Seen, expected_connections: usize) {
    check(Method::GET, answer, expected, expected_connections).await;
}

#[tokio::test]
async fn length_with_encoding_is_taken_as_chunked_and_reused() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n\
                  3\r\nabc\r\n0\r\n\r\n";
    check_get(answer, Seen::Body("abc"), 1).await;
}

#[tokio::test]
async fn another_encoding_before_chunked_is_dropped_silently() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n\
                  3\r\nabc\r\n0\r\n\r\n";
    check_get(answer, Seen::Body("abc"), 1).await;
}

#[tokio::test]
async fn differing_lengths_are_refused() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde";
    check_get(answer, Seen::Refused("content-length"), 2).await;
}

#[tokio::test]
async fn equal_lengths_are_taken() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc";
    check_get(answer, Seen::Body("abc"), 1).await;
}

#[tokio::test]
async fn differing_lengths_of_a_head_response_are_taken_and_reused() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\n";
    check(Method::HEAD, answer, Seen::Body(""), 1).await;
}

#[tokio::test]
async fn encoding_with_http_1_0_is_refused() {
    let answer = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    check_get(answer, Seen::Refused("transfer-encoding"), 2).await;
}

#[tokio::test]
async fn bytes_behind_the_end_close_the_connection_without_a_word() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n";
    check_get(answer, Seen::Body("abc"), 2).await;
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                  3\r\nabc\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    check_get(answer, Seen::Body("abc"), 2).await;
}

#[tokio::test]
async fn a_body_where_none_may_be_closes_the_connection_without_a_word() {
    let answer = "HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\nabc";
    check_get(answer, Seen::Body(""), 2).await;
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
    check(Method::HEAD, answer, Seen::Body(""), 2).await;
}

#[tokio::test]
async fn an_unasked_101_is_taken_and_its_connection_closed() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    check_get(answer, Seen::Body(""), 2).await;
}

#[tokio::test]
async fn bad_chunks_fail_the_body() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n+5\r\nabcde\r\n";
    check_get(answer, Seen::BodyError("chunk size"), 2).await;
}

#[tokio::test]
async fn folded_and_malformed_headers_are_refused() {
    for answer in [
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\0c\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\rc\r\ncontent-length: 0\r\n\r\n",
    ] {
        check_get(answer, Seen::Refused("header"), 2).await;
    }
}

#[tokio::test]
async fn lengths_that_are_no_numbers_are_refused() {
    for length in ["+3", "3x", "-1", "0x3", "99999999999999999999"] {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nabc");
        check_get(&answer, Seen::Refused("content-length"), 2).await;
    }
}

#[tokio::test]
async fn an_encoding_that_does_not_end_in_chunked_is_read_until_the_end() {
    let raw = Raw::closing("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc").await;
    let client: legacy::Client<_, Empty<Bytes>> =
        legacy::Client::builder(TokioExecutor::new()).build_http();
    let uri = format!("http://127.0.0.1:{}/", raw.port).parse().unwrap();
    let response = within(client.get(uri)).await.unwrap();
    let body = within(response.into_body().collect()).await.unwrap();
    assert_eq!(body.to_bytes(), "abc");
}
