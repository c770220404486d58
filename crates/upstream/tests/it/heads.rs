//! Which response heads are believed, and that the connection of one that is not is never used
//! again.

use http::header::{CONTENT_LENGTH, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::Empty;
use streamweld_upstream::{ErrorKind, Phase};

use crate::raw::{Raw, backend, chain, client, drain, read_head, send, within};

/// Both of two requests are refused, each on a connection of its own.
async fn refused(answer: impl Into<Vec<u8>>) {
    let answer = answer.into();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let raw = Raw::answering(answer).await;
    let client = client();
    for _ in 0..2 {
        let error = send(&client, &raw.backend()).await.expect_err(&text);
        assert_eq!(
            error.kind(),
            ErrorKind::BadResponse,
            "{text:?}: {}",
            chain(&error)
        );
        assert_eq!(error.phase(), Phase::BadResponse);
        assert!(error.request_sent() && !error.is_retry_safe());
    }
    assert_eq!(raw.connections(), 2, "{text:?}");
}

/// Two requests are answered, over `connections` connections.
async fn taken(method: Method, answer: &str, body: &str, connections: usize) {
    let raw = Raw::answering(answer).await;
    let client = client();
    for _ in 0..2 {
        let request = Request::builder().method(method.clone()).uri("/x");
        let request = request.body(Empty::new()).unwrap();
        let mut response = within(client.send(&raw.backend(), request)).await.unwrap();
        assert_eq!(
            drain(response.body_mut()).await,
            (body.into(), None),
            "{answer:?}"
        );
    }
    assert_eq!(raw.connections(), connections, "{answer:?}");
}

#[tokio::test]
async fn length_with_encoding_is_refused() {
    refused(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\n\r\n",
    )
    .await;
}

/// The answer is complete in one segment, so that nothing is left to wait for on the connection when
/// its head is refused.
#[tokio::test]
async fn a_refused_connection_is_not_used_by_a_request_that_waits() {
    let raw = Raw::answering(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    )
    .await;
    let client = client();
    let backend = raw.backend();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (client, backend) = (client.clone(), backend.clone());
        requests.spawn(async move { send(&client, &backend).await.unwrap_err().kind() });
    }
    while let Some(kind) = requests.join_next().await {
        assert_eq!(kind.unwrap(), ErrorKind::BadResponse);
    }
    assert_eq!(raw.connections(), 20);
}

#[tokio::test]
async fn encodings_other_than_chunked_are_refused() {
    for encoding in [
        "gzip, chunked",
        "chunked, gzip",
        "gzip",
        "identity",
        "xchunked",
        "chunked,",
    ] {
        refused(format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: {encoding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        ))
        .await;
    }
    refused(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n\
         0\r\n\r\n",
    )
    .await;
}

#[tokio::test]
async fn encoding_with_http_1_0_is_refused() {
    refused("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn differing_or_malformed_lengths_are_refused() {
    for lengths in [
        "3\r\ncontent-length: 5",
        "3, 5",
        "+3",
        "3x",
        "0x3",
        "-1",
        "3,",
        "",
        "99999999999999999999",
    ] {
        refused(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {lengths}\r\n\r\nabcde"
        ))
        .await;
    }
}

#[tokio::test]
async fn differing_lengths_are_refused_where_there_is_no_body_too() {
    refused("HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\n").await;
    let raw = Raw::answering("HTTP/1.1 200 OK\r\ncontent-length: 3, 5\r\n\r\n").await;
    let request = Request::head("/x").body(Empty::new()).unwrap();
    let error = within(client().send(&raw.backend(), request)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::BadResponse);
}

#[tokio::test]
async fn a_response_without_a_body_leaves_its_connection() {
    let length = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";
    taken(Method::HEAD, length, "", 1).await;
    taken(Method::HEAD, "HTTP/1.1 200 OK\r\n\r\n", "", 1).await;
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    taken(Method::HEAD, chunked, "", 1).await;
    taken(Method::GET, "HTTP/1.1 204 No Content\r\n\r\n", "", 1).await;
    taken(
        Method::GET,
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n",
        "",
        1,
    )
    .await;
    let kept = "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 3\r\n\r\nabc";
    taken(Method::GET, kept, "abc", 1).await;
}

#[tokio::test]
async fn equal_lengths_become_one() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc";
    taken(Method::GET, answer, "abc", 1).await;
    let raw = Raw::answering(answer).await;
    let response = send(&client(), &raw.backend()).await.unwrap();
    let lengths: Vec<_> = response.headers().get_all(CONTENT_LENGTH).iter().collect();
    assert_eq!(lengths, ["3"]);
}

#[tokio::test]
async fn bytes_behind_the_end_cost_the_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nX",
    ] {
        taken(Method::GET, answer, "abc", 2).await;
    }
    for answer in [
        "HTTP/1.1 204 No Content\r\n\r\nabc",
        "HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\nabc",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\nabc",
    ] {
        taken(Method::GET, answer, "", 2).await;
    }
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
    taken(Method::HEAD, answer, "", 2).await;
}

#[tokio::test]
async fn an_unasked_101_is_refused() {
    refused("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await;
}

#[tokio::test]
async fn interim_responses_are_dropped() {
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    ] {
        taken(Method::GET, &format!("{interim}{ok}"), "abc", 1).await;
    }
}

#[tokio::test]
async fn what_is_no_http_1_response_is_refused() {
    for answer in [
        "nonsense\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\na: b\n\n",
        "HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\ncontent-length: 3\r\n\r\nabc",
    ] {
        refused(answer).await;
    }
}

/// They would be waited for without end.
#[tokio::test]
async fn a_peer_that_speaks_something_else_is_known_by_its_first_bytes() {
    refused("SSH-2.0-x\r\n").await;
}

#[tokio::test]
async fn an_endless_row_of_interim_responses_is_refused() {
    refused("HTTP/1.1 102 Processing\r\n\r\n".repeat(100)).await;
}

#[tokio::test]
async fn large_heads_are_refused() {
    let mut many = String::from("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n");
    for number in 0..100 {
        many.push_str(&format!("x-{number}: y\r\n"));
    }
    refused(many + "\r\n").await;
    let long = "y".repeat(64 * 1024);
    refused(format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: {long}\r\n\r\n"
    ))
    .await;
}

#[tokio::test]
async fn statuses_and_redirects_are_answers() {
    for (line, status) in [
        (
            "302 Found\r\nlocation: http://127.0.0.1:1/",
            StatusCode::FOUND,
        ),
        ("429 Too Many Requests", StatusCode::TOO_MANY_REQUESTS),
        ("503 Service Unavailable", StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let answer = format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n");
        let raw = Raw::answering(answer).await;
        let response = send(&client(), &raw.backend()).await.unwrap();
        assert_eq!(response.status(), status);
    }
}

#[tokio::test]
async fn the_target_is_the_backends() {
    let (tx, mut rx) = tokio::sync::mpsc::channel(1);
    let raw = Raw::start(move |mut stream, _| {
        let tx = tx.clone();
        async move {
            let head = read_head(&mut stream).await.unwrap();
            tx.send(head).await.unwrap();
        }
    })
    .await;
    let request = Request::get("http://evil.example:1/a?b=c")
        .header(HOST, "evil.example")
        .body(Empty::new())
        .unwrap();
    let here = backend(&format!("http://127.0.0.1:{}/prefix/", raw.port));
    let _ = within(client().send(&here, request)).await;
    let head = within(rx.recv()).await.unwrap();
    let expected = format!(
        "GET /prefix/a?b=c HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n\r\n",
        raw.port
    );
    assert_eq!(head, expected);
}
