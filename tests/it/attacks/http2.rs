//! Requests over HTTP/2 that HTTP/1 would read as something else: attack 7.

use streamweld_tests::frames::{END_HEADERS, END_STREAM, Frame, block, kind, open, request};
use streamweld_tests::patience;

use super::{assert_serves, start};

const HIDDEN: &str = "GET /echo/hidden HTTP/1.1";

fn with(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all = request("POST", "/echo");
    for (name, value) in fields {
        let value = (*value).to_owned();
        match all.iter_mut().find(|(known, _)| known == name) {
            // What stands there twice is told by a name of its own below.
            Some((_, before)) => *before = value,
            None => all.push(((*name).to_owned(), value)),
        }
    }
    all
}

/// Nothing of it reaches the backend: its stream or its connection is reset, or it is answered 400 or 405.
#[tokio::test(flavor = "multi_thread")]
async fn row_07_what_http_1_would_read_otherwise_is_refused() {
    let harness = start().await;
    let injected = format!("/echo HTTP/1.1\r\nhost: h\r\n\r\n{HIDDEN}");
    let in_value = format!("a\r\n\r\n{HIDDEN}\r\n");
    let mut table = vec![
        with(&[("transfer-encoding", "chunked")]),
        with(&[("transfer-encoding", "identity")]),
        with(&[("connection", "close")]),
        with(&[("connection", "transfer-encoding")]),
        with(&[("keep-alive", "timeout=5")]),
        with(&[("proxy-connection", "keep-alive")]),
        with(&[("upgrade", "h2c")]),
        with(&[("te", "gzip")]),
        with(&[(":path", &injected)]),
        with(&[(":path", "/echo\r\nx: y")]),
        with(&[(":path", "/echo\n")]),
        with(&[(":path", "/echo a")]),
        with(&[(":path", "/echo\0")]),
        with(&[(":path", "")]),
        with(&[(":path", "echo")]),
        with(&[(":method", &format!("{HIDDEN}\r\nhost: h\r\n\r\nPOST"))]),
        with(&[(":method", "POST /echo/hidden HTTP/1.1\r\nx:")]),
        with(&[(":method", "")]),
        with(&[(":authority", "h\r\nx-injected: 1")]),
        with(&[(":scheme", "http://x/echo/hidden?")]),
        with(&[(":scheme", "http\r\n")]),
        with(&[("x-a", &in_value)]),
        with(&[("x-a", "a\nb")]),
        with(&[("x-a", "a\0b")]),
        with(&[("x-a\r\nx-b", "1")]),
        with(&[("x-a: b", "1")]),
        with(&[("X-A", "1")]),
        with(&[("x a", "1")]),
        with(&[("", "1")]),
        with(&[(":unknown", "1")]),
        with(&[(":status", "200")]),
        with(&[("content-length", "+0")]),
        with(&[("content-length", "five")]),
        with(&[("content-length", "5")]),
    ];
    let pseudo = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    // What stands there twice, behind the fields, or not at all.
    for (name, value) in [(":method", "GET"), (":path", "/echo/hidden")] {
        table.push([request("POST", "/echo"), vec![pseudo(name, value)]].concat());
        let mut without = request("POST", "/echo");
        without.retain(|(known, _)| known != name);
        table.push(without.clone());
        without.extend([pseudo("x-a", "1"), pseudo(name, value)]);
        table.push(without);
    }
    let twice = vec![pseudo("content-length", "0"), pseudo("content-length", "5")];
    table.push([request("POST", "/echo"), twice].concat());
    for fields in table {
        let (mut sending, mut receiving) = open(&harness.client).await;
        let head = Frame::new(kind::HEADERS, END_HEADERS | END_STREAM, 1, block(&fields));
        sending.send(&[head]).await;
        let answered = [kind::HEADERS, kind::RST_STREAM, kind::GOAWAY];
        let answer = receiving.first_of(&answered).await;
        if let Some(answer) = answer.filter(|answer| answer.kind == kind::HEADERS) {
            // 400 has a place of its own in the table of RFC 7541.
            assert_eq!(answer.payload.first(), Some(&0x8c), "{fields:?}");
        }
        assert_eq!(harness.mock.recorder().count(), 0, "{fields:?}");
    }
    assert_serves(&harness.client).await;
}

/// A body that is longer or shorter than it says is never the beginning of another request.
#[tokio::test(flavor = "multi_thread")]
async fn row_07_a_body_of_another_length_than_it_says_is_no_request() {
    let harness = start().await;
    let hidden = format!("{HIDDEN}\r\nhost: h\r\n\r\n");
    for length in ["0", "5", "4096"] {
        let (mut sending, mut receiving) = open(&harness.client).await;
        let mut fields = request("PUT", "/echo");
        fields.push(("content-length".to_owned(), length.to_owned()));
        let head = Frame::new(kind::HEADERS, END_HEADERS, 1, block(&fields));
        let body = Frame::new(kind::DATA, END_STREAM, 1, hidden.as_bytes());
        sending.send(&[head, body]).await;
        let ended = [kind::RST_STREAM, kind::GOAWAY, kind::HEADERS];
        let answer = receiving.first_of(&ended).await;
        if let Some(answer) = answer.filter(|answer| answer.kind == kind::HEADERS) {
            assert_ne!(answer.payload.first(), Some(&0x88), "no 200 for {length}");
        }
    }
    let all_closed = harness.mock.recorder().wait_open_connections(0);
    patience(all_closed).await.expect("each is broken off");
    for request in harness.mock.recorder().requests() {
        assert_eq!(request.target, "/echo", "the only one that was sent");
    }
    assert_serves(&harness.client).await;
}
