//! How answers are put on the wire.

use std::io::Read;

use streamweld_mock::{
    Ask, Dialect, Encoding, End as Ends, Framing, LineEnd, Mock, Script, Writes,
};

use crate::client::{Client, End};

fn ask() -> Ask {
    Ask {
        model: "m".to_owned(),
        ..Ask::stream(Dialect::OpenAiChat)
    }
}

async fn client(script: &Script) -> (Mock, Client) {
    let mock = Mock::start(script.clone()).await.unwrap();
    let client = Client::stream_chat(mock.addr()).await;
    (mock, client)
}

#[tokio::test]
async fn writes_are_chunks() {
    let script = Script::tokens(2);
    for (writes, chunks) in [
        (Writes::WholeEvent, 5),
        (Writes::Batch(2), 3),
        (Writes::AllAtOnce, 1),
    ] {
        let script = script.clone().writes(writes);
        let (_mock, mut client) = client(&script).await;
        client.head().await;
        let (found, end) = client.chunks().await;
        assert_eq!((found.len(), end), (chunks, End::Clean), "{writes:?}");
        assert_eq!(found.concat(), script.wire(&ask()));
    }
    let torn = script.clone().writes(Writes::Bytes(1));
    let (_mock, mut client) = client(&torn).await;
    client.head().await;
    let (found, _) = client.chunks().await;
    assert!(found.iter().all(|chunk| chunk.len() == 1));
    assert_eq!(found.concat(), script.wire(&ask()));
}

#[tokio::test]
async fn dressed_streams_mean_the_same_events() {
    let plain = Script::tokens(2);
    let dressed = Script {
        bom: true,
        comment_every: 1,
        upstream_ids: Some(1),
        retry: Some(10),
        ..plain.clone().line_end(LineEnd::Crlf)
    };
    let (_mock, mut client) = client(&dressed).await;
    let (body, _) = client.body().await;
    assert_eq!(body, dressed.wire(&ask()));
    assert_ne!(body, plain.wire(&ask()));
    assert_eq!(dressed.expected(&ask()), plain.expected(&ask()));
}

#[tokio::test]
async fn a_content_length_counts_the_whole_body() {
    let script = Script {
        framing: Framing::Length,
        ..Script::tokens(2)
    };
    let (_mock, mut whole) = client(&script).await;
    let length = format!("content-length: {}\r\n", script.wire(&ask()).len());
    assert!(whole.head().await.contains(&length));
    let size = script.wire(&ask()).len();
    assert_eq!(whole.take(size).await.unwrap(), script.wire(&ask()));

    let cut = script.fin_after(2);
    let (_mock, mut short) = client(&cut).await;
    assert!(short.head().await.contains(&length));
    assert_eq!(short.rest().await, (cut.wire(&ask()), End::Fin));
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection() {
    for (framing, version) in [(Framing::Close, "HTTP/1.1"), (Framing::Http10, "HTTP/1.0")] {
        let script = Script {
            framing,
            ..Script::tokens(2)
        };
        let (_mock, mut client) = client(&script).await;
        let head = client.head().await;
        assert!(head.starts_with(version));
        assert!(!head.contains("transfer-encoding") && !head.contains("content-length"));
        assert_eq!(client.rest().await, (script.wire(&ask()), End::Fin));
    }
}

#[tokio::test]
async fn an_old_client_gets_no_chunks() {
    let mock = Mock::start(Script::tokens(1)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.send("GET /feed HTTP/1.0\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.0 200"));
    let (body, end) = client.rest().await;
    assert_eq!(body, b"data: {\"text\":\"t1\",\"number\":1}\nid: 1\n\n");
    assert_eq!(end, End::Fin);
}

#[tokio::test]
async fn gzip_is_flushed_at_every_write() {
    let script = Script {
        encoding: Encoding::Gzip,
        ..Script::tokens(2)
    }
    .gate_after(1, "one");
    let (mock, mut client) = client(&script).await;
    assert!(client.head().await.contains("content-encoding: gzip"));
    let mut coded = client.chunk().await.unwrap();
    let mut first = Vec::new();
    // The stream is not over, which the decoder calls an error; what it has by then is an event.
    let _ = flate2::read::GzDecoder::new(coded.as_slice()).read_to_end(&mut first);
    assert_eq!(first, script.expected(&ask())[0]);
    mock.gates().release("one");
    coded.extend(client.chunks().await.0.concat());
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(coded.as_slice())
        .read_to_end(&mut body)
        .unwrap();
    assert_eq!(body, script.wire(&ask()));
}

#[tokio::test]
async fn contradictory_framing_trailers_and_bytes_after_the_end() {
    let script = Script {
        trailers: vec![("x-sum".to_owned(), "1".to_owned())],
        after_end: Some("HTTP/1.1 200 OK\r\n\r\n".to_owned()),
        interim: vec![103],
        ..Script::tokens(1).header("content-length", "5")
    };
    let (_mock, mut client) = client(&script).await;
    assert!(
        client
            .head()
            .await
            .starts_with("HTTP/1.1 103 Early Hints\r\n")
    );
    let head = client.head().await;
    assert!(head.contains("transfer-encoding: chunked\r\ncontent-length: 5\r\n"));
    let tail = client.until("0\r\nx-sum: 1\r\n\r\n").await.unwrap();
    assert!(tail.contains("[DONE]"));
    assert_eq!(
        client.until("\r\n\r\n").await.unwrap(),
        "HTTP/1.1 200 OK\r\n\r\n"
    );
}

#[tokio::test]
async fn a_torn_last_event_leaves_the_events_before_it_whole() {
    let script = Script::tokens(2)
        .writes(Writes::AllAtOnce)
        .end(Ends::TornLast(1000));
    let (_mock, mut client) = client(&script).await;
    assert_eq!(
        client.body().await,
        (script.expected(&ask()).concat(), End::Clean)
    );
}
