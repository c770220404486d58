//! What a backend may send that means harm to clients: attack 4, and attack 5 from its side.

use streamweld_mock::Script;
use streamweld_tests::{CHAT, RawBackend, Setup, Wire};

/// What follows a status line as a field, and what the client is given of it.
enum Given {
    /// It is refused: 502.
    Refused,
    /// It passes, and is one field.
    OneField,
}

#[tokio::test(flavor = "multi_thread")]
async fn row_04_fields_of_a_backend_are_fields_or_refused() {
    let raw = RawBackend::bind().await;
    let backend = raw.backend();
    let setup = Setup::new(Script::new()).config(|config| config.backends = vec![backend.into()]);
    let harness = setup.start().await;
    for (field, given) in [
        ("x-a: a\rset-cookie: b=c\r\n", Given::Refused),
        ("x-a: a\0b\r\n", Given::Refused),
        ("x-a: a\r\n set-cookie: b=c\r\n", Given::Refused),
        ("x-a: a\r\n\tb\r\n", Given::Refused),
        ("x-a : a\r\n", Given::Refused),
        ("x a: a\r\n", Given::Refused),
        (": a\r\n", Given::Refused),
        ("x-a\r\n", Given::Refused),
        ("x-a: a\x08b\r\n", Given::Refused),
        ("x-a: a\x7fb\r\n", Given::Refused),
        ("x-a: %0d%0aset-cookie: b=c\r\n", Given::OneField),
        ("x-a: \u{2028}set-cookie: b=c\r\n", Given::OneField),
        ("x-a: \u{560d}\u{560a}set-cookie: b=c\r\n", Given::OneField),
    ] {
        for method in ["GET", "POST"] {
            let body = if method == "POST" { CHAT } else { "" };
            let client = harness.client.with("connection", "close");
            let request = client.request(method, "/v1/chat/completions", body);
            let client = Wire::open(&harness.client, &request).await;
            let mut there = raw.accept().await;
            there.head().await;
            let answer = format!(
                "HTTP/1.1 200 OK\r\n{field}content-length: 2\r\nconnection: close\r\n\r\nok"
            );
            there.send(answer).await;
            let seen = client.rest().await;
            let (head, body) = seen.split_once("\r\n\r\n").expect("a head");
            let lower = head.to_ascii_lowercase();
            assert!(!lower.contains("\nset-cookie"), "{field:?}: {head}");
            match given {
                Given::Refused => {
                    assert!(head.starts_with("HTTP/1.1 502 "), "{field:?}: {head}");
                    assert!(body.contains("backend_bad_response"), "{body}");
                }
                Given::OneField => {
                    assert!(head.starts_with("HTTP/1.1 200 "), "{field:?}: {head}");
                    assert_eq!(lower.matches("\r\nx-a:").count(), 1, "{head}");
                    assert_eq!(body, "ok");
                }
            }
        }
    }
}

/// What follows an answer on its connection is nobody's: neither of the client that has asked, nor of the next one.
#[tokio::test(flavor = "multi_thread")]
async fn row_05_what_a_backend_hides_behind_an_answer_is_nobodys() {
    let raw = RawBackend::bind().await;
    let backend = raw.backend();
    let setup = Setup::new(Script::new()).config(|config| config.backends = vec![backend.into()]);
    let harness = setup.start().await;
    let hidden = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhidden";
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 54\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        for _ in 0..2 {
            let request = harness.client.with("connection", "close");
            let request = request.request("GET", "/a", "");
            let client = Wire::open(&harness.client, &request).await;
            // A connection of its own each time: the one before had more to say.
            let mut there = raw.accept().await;
            there.head().await;
            there.send(format!("{head}{hidden}")).await;
            let seen = client.rest().await;
            assert!(!seen.contains("hidden"), "{head}: {seen}");
            assert!(!seen.starts_with("HTTP/1.1 502"), "{head}: {seen}");
        }
    }
}
