//! Many readers of one generation, some of which have stopped reading (protocol.md 2.8, 6.4).

use std::sync::Arc;
use std::time::{Duration, Instant};

use streamweld_mock::{Ask, Dialect, Script};
use streamweld_tests::{
    Body, CHAT, End, Harness, Response, Setup, Way, ends, get_slowly, numbered, patience,
    wait_state,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

const PATH: &str = "/v1/chat/completions";
/// More than both ends of a connection buffer for a reader that takes nothing.
const LARGE: usize = 64;

fn script() -> Script {
    let mut script = Script::tokens(3)
        .id("fixed")
        .gate_after(1, "readers")
        .gate_after(3, "end");
    for _ in 0..LARGE {
        script = script.huge_event_after(2, 64 << 10);
    }
    script
}

/// A generation that is held after its first event, and all that it will be.
async fn begin(harness: &Harness) -> (Response, String, Arc<Vec<u8>>) {
    let mut first = harness.client.chat().await;
    let id = first.id();
    let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
    let expected = numbered(&id, &script().expected(&ask));
    let seen = first.body.blocks(1).await;
    assert_eq!(seen, &expected[..seen.len()]);
    (first, id, Arc::new(expected))
}

/// Reads `body` up to there, and checks that it is as expected from `at` on.
async fn follow(body: &mut Body, expected: &[u8], mut at: usize, until: usize) -> usize {
    while at < until {
        let chunk = body.chunk().await.expect("it goes on");
        assert!(
            expected[at..].starts_with(&chunk),
            "differs in {} bytes after {at}",
            chunk.len()
        );
        at += chunk.len();
    }
    at
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_readers_hold_back_neither_the_producer_nor_two_hundred_others() {
    let harness = Harness::start(script()).await;
    let (first, id, expected) = begin(&harness).await;
    let places = ends(&expected);
    // Everything before the gate "end": three events and the large ones.
    let held = places[2 + LARGE];
    let target = format!("/v1/streams/{id}/events");

    let mut stopped = Vec::new();
    for _ in 0..10 {
        stopped.push(get_slowly(&harness.client, &target).await);
    }
    let mut readers = JoinSet::new();
    let mut attached = vec![(first, places[0])];
    for _ in 1..190 {
        attached.push((harness.client.get(&target).await, 0));
    }
    wait_state(&harness.client, &id, |state| state["readers"] == 200).await;
    for (mut reader, at) in attached {
        let expected = Arc::clone(&expected);
        readers.spawn(async move {
            let at = follow(&mut reader.body, &expected, at, held).await;
            assert_eq!(at, held);
            (reader, at)
        });
    }
    harness.mock.gates().release("readers");
    harness
        .mock
        .gates()
        .wait_arrived("end", 1)
        .await
        .expect("the producer took everything");
    let mut attached = Vec::new();
    while let Some(reader) = readers.join_next().await {
        attached.push(reader.expect("was given everything"));
    }
    let state = wait_state(&harness.client, &id, |_| true).await;
    assert_eq!(state["readers"], 200, "nobody had to be closed for that");

    harness.mock.gates().release("end");
    for (mut reader, at) in attached {
        let at = follow(&mut reader.body, &expected, at, expected.len()).await;
        assert_eq!(at, expected.len());
        assert_eq!(reader.body.rest().await, (Vec::new(), End::Proper));
    }
    // And those who slept miss nothing once they read.
    for mut reader in stopped {
        let at = follow(&mut reader.body, &expected, 0, expected.len()).await;
        assert_eq!(at, expected.len());
        assert_eq!(reader.body.rest().await, (Vec::new(), End::Proper));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_reader_is_closed_after_the_write_timeout_and_resumes_exactly() {
    let harness = Setup::new(script())
        .config(|config| config.edge.write_timeout = Duration::from_millis(500))
        .start()
        .await;
    let (mut first, id, expected) = begin(&harness).await;
    let places = ends(&expected);
    let target = format!("/v1/streams/{id}/events");
    let mut stopped = Vec::new();
    for _ in 0..10 {
        stopped.push(get_slowly(&harness.client, &target).await);
    }
    wait_state(&harness.client, &id, |state| state["readers"] == 11).await;
    harness.mock.gates().release("readers");
    let at = follow(&mut first.body, &expected, places[0], places[2 + LARGE]).await;
    // Closed while the generation lives, but not the one that has nothing to be given.
    wait_state(&harness.client, &id, |state| state["readers"] == 1).await;
    harness.mock.gates().release("end");
    let (rest, end) = first.body.rest().await;
    assert_eq!(end, End::Proper);
    assert_eq!(rest, &expected[at..]);

    for (reader, way) in stopped.iter_mut().zip(Way::ALL.into_iter().cycle()) {
        let (mut seen, end) = reader.body.rest().await;
        assert_ne!(end, End::Proper, "a part is not taken for the whole");
        // A client reads blocks, whatever the chunks: it holds those whose blank line has come.
        let torn = String::from_utf8_lossy(reader.body.torn());
        seen.extend_from_slice(torn.as_bytes());
        let whole = ends(&seen);
        let at = whole.last().copied().unwrap_or(0);
        assert!(seen.len() < expected.len());
        assert_eq!(seen, &expected[..seen.len()]);
        let seq = if whole.is_empty() { 0 } else { whole.len() + 1 };
        let resumed = way
            .resume(&harness.client, &format!("{id}:{seq}"), (PATH, CHAT))
            .await;
        let (rest, end) = resumed.all().await;
        assert_eq!(end, End::Proper);
        assert!(rest == expected[at..], "resumed after {seq}");
    }
}

/// Reads at this pace for so long, and then as fast as it comes. What it takes is what the kernel of a client holds less.
async fn read_at_pace(stream: &mut TcpStream, bytes_a_second: usize, time: Duration) -> Vec<u8> {
    let (begun, mut read) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let due = begun.elapsed().as_millis() as usize * bytes_a_second / 1000;
        if due > read.len() {
            let mut piece = vec![0; due - read.len()];
            let came = stream.read(&mut piece).await.expect("it is not cut");
            assert!(came > 0, "it is not ended after {}", read.len());
            read.extend_from_slice(&piece[..came]);
        }
        sleep(Duration::from_millis(10)).await;
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_slow_and_never_stops_is_not_closed() {
    const TIMEOUT: Duration = Duration::from_secs(3);
    // As 10 KiB/s are to 30 s.
    const PACE: usize = 100 << 10;
    let harness = Setup::new(script())
        .config(|config| config.edge.write_timeout = TIMEOUT)
        .start()
        .await;
    let (mut first, id, expected) = begin(&harness).await;
    harness.mock.gates().release("readers");
    let places = ends(&expected);
    follow(&mut first.body, &expected, places[0], places[2 + LARGE]).await;

    // A body of HTTP/1.0 has no framing, so that every byte of it is one that was shown.
    let mut stream = TcpStream::connect(harness.client.addr)
        .await
        .expect("connects");
    let head = format!("GET /v1/streams/{id}/events HTTP/1.0\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("is sent");
    let mut seen = read_at_pace(&mut stream, PACE, TIMEOUT * 4).await;
    harness.mock.gates().release("end");
    let rest = patience(stream.read_to_end(&mut seen)).await;
    rest.expect("it is not cut");
    let body = seen.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &seen[body.expect("a head") + 4..];
    assert!(
        body == &expected[..],
        "{} of {}",
        body.len(),
        expected.len()
    );
}
