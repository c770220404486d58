//! Exact bytes.

use std::time::Duration;

use streamweld_mock::{Mock, Raw, Script};

use crate::client::{Client, End};

#[tokio::test]
async fn raw_steps_in_order() {
    let raw = Raw::new()
        .stream_head()
        .chunk("data: \u{65e5}\n\n")
        .gate("g")
        .bytes([0xe6, 0x97])
        .pause(Duration::from_millis(1))
        .repeat("xy", 3)
        .last_chunk()
        .fin();
    let mock = Mock::start(Script::raw(raw)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client.get("/").await;
    assert!(client.head().await.contains("chunked"));
    assert_eq!(client.chunk().await.unwrap(), "data: 日\n\n".as_bytes());
    mock.gates().release("g");
    assert_eq!(
        client.rest().await,
        (b"\xe6\x97xyxyxy0\r\n\r\n".to_vec(), End::Fin)
    );
}

#[tokio::test]
async fn a_raw_answer_can_leave_the_connection_open() {
    let raw = Raw::new().write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let mock = Mock::start(Script::raw(raw)).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    for _ in 0..2 {
        client.get("/").await;
        client.head().await;
        assert_eq!(client.take(2).await.unwrap(), b"ok");
    }
}

#[tokio::test]
async fn a_raw_script_reads_from_json() {
    let script = r#"{"raw":[{"write":"a"},{"bytes":[255]},{"pause":"5ms"},{"repeat":{"text":"b","times":2}},"last_chunk","rst"]}"#;
    let raw = Raw::new()
        .write("a")
        .bytes([255])
        .pause(Duration::from_millis(5))
        .repeat("b", 2);
    assert_eq!(
        Script::from_json(script).unwrap(),
        Script::raw(raw.last_chunk().rst())
    );
}

#[tokio::test]
async fn an_upgraded_connection_echoes() {
    let mock = Mock::start(Script::new()).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client
        .send("GET /upgrade HTTP/1.1\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nearly")
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
    assert!(head.contains("upgrade: echo\r\n"));
    assert_eq!(client.take(5).await.unwrap(), b"early");
    client.send("late").await;
    client.close_writing().await;
    assert_eq!(client.rest().await, (b"late".to_vec(), End::Fin));
}

#[tokio::test]
async fn an_echo_outlives_the_half_close() {
    let mock = Mock::start(Script::new()).await.unwrap();
    let mut client = Client::connect(mock.addr()).await;
    client
        .send("GET /upgrade HTTP/1.1\r\nupgrade: echo\r\n\r\n")
        .await;
    client.head().await;
    // As much as the four socket buffers of the way surely take: nobody reads meanwhile.
    let sent = vec![b'x'; 256 << 10];
    client.send(&sent).await;
    client.close_writing().await;
    assert_eq!(client.rest().await, (sent, End::Fin));
}
