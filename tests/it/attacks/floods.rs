//! Frames of HTTP/2 without end: attack 13. What they cost is bounded, and nobody else notices.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use streamweld_mock::Script;
use streamweld_tests::frames::{
    END_HEADERS, END_STREAM, Frame, Receiving, Sending, block, kind, open, remembered, request,
};
use streamweld_tests::{Client, Process, Wire, patience};

use super::{assert_serves, process};

/// So much is sent, unless the connection is closed before.
const MOST: usize = 1 << 20;
/// By how much the process may have grown at its peak, in KiB.
const GROWTH: u64 = 48 << 10;

/// The most memory that the process has had, in KiB.
fn peak(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let value = line.and_then(|line| line.split_whitespace().next());
    value.and_then(|it| it.parse().ok()).expect("a size")
}

/// How a flood ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The server has closed the connection, or said that it goes away.
    Closed,
    /// It has read all of it.
    Taken,
}

/// What the server is asked last. The answer says that it has read all that came before.
const LAST: [u8; 8] = *b"the last";

/// Reads until the connection ends or the last is answered, and notes when the server goes.
async fn read_on(mut receiving: Receiving, away: Arc<AtomicBool>) -> Ended {
    while let Some(frame) = receiving.next().await {
        match frame.kind {
            kind::GOAWAY => away.store(true, Ordering::Release),
            kind::PING if frame.payload == LAST => return Ended::Taken,
            _ => {}
        }
    }
    away.store(true, Ordering::Release);
    Ended::Closed
}

/// Sends what `next` gives, with what goes before, until there is an end of it or of the connection.
async fn flood(
    client: &Client,
    before: &[Frame],
    mut next: impl FnMut(u32) -> Vec<Frame>,
) -> Ended {
    let (mut sending, receiving): (Sending, _) = open(client).await;
    let away = Arc::new(AtomicBool::new(false));
    let reading = tokio::spawn(read_on(receiving, Arc::clone(&away)));
    let mut taken = sending.send(before).await;
    let (mut sent, mut number) = (0, 0);
    while taken && sent < MOST && !away.load(Ordering::Acquire) {
        let mut bytes = Vec::new();
        while bytes.len() < 8 << 10 {
            let frames = next(number);
            bytes.extend(frames.iter().flat_map(Frame::bytes));
            number += 1;
        }
        taken = sending.send_bytes(&bytes).await;
        sent += bytes.len();
    }
    // It may be gone.
    sending.send(&[Frame::new(kind::PING, 0, 0, LAST)]).await;
    patience(reading).await.expect("no panic")
}

fn head(stream: u32, flags: u8) -> Frame {
    let fields = block(&request("PUT", "/echo/flood"));
    Frame::new(kind::HEADERS, flags, stream, fields)
}

/// The streams of a client have odd numbers.
fn odd(number: u32) -> u32 {
    number * 2 + 1
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn row_13_floods_of_frames_are_ended_or_cost_nothing() {
    let (_mock, mut process) = process(Script::tokens(3), &[]).await;
    let client = process.client().await;
    assert_serves(&client).await;
    let before = peak(&process);
    let cancel = 8_u32.to_be_bytes();

    // Each stream is given up as soon as it is there (CVE-2023-44487). Who does so faster than it is served is closed.
    let rapid = |number| {
        let stream = odd(number);
        vec![
            head(stream, END_HEADERS | END_STREAM),
            Frame::new(kind::RST_STREAM, 0, stream, cancel),
        ]
    };
    flood(&client, &[], rapid).await;
    assert_serves(&client).await;

    // The server is made to give up each stream itself (CVE-2025-8671).
    let made = |number| {
        let stream = odd(number);
        vec![
            head(stream, END_HEADERS),
            Frame::new(kind::WINDOW_UPDATE, 0, stream, 0_u32.to_be_bytes()),
        ]
    };
    assert_eq!(flood(&client, &[], made).await, Ended::Closed);
    assert_serves(&client).await;

    // Fields that never end: large ones, and empty frames.
    for payload in [block(&[("x-a", "x".repeat(1 << 10))]), Vec::new()] {
        let on = |_| vec![Frame::new(kind::CONTINUATION, 0, 1, payload.clone())];
        let ended = flood(&client, &[head(1, END_STREAM)], on).await;
        assert_eq!(ended, Ended::Closed);
        assert_serves(&client).await;
    }

    // One field that is remembered, and named again and again.
    let mut bomb = remembered("x-a", &"x".repeat(3_000));
    bomb.extend([0x80 | 62; 8 << 10]);
    let named = |number| {
        let mut fields = block(&request("GET", "/echo/flood"));
        fields.extend(&bomb);
        vec![Frame::new(
            kind::HEADERS,
            END_HEADERS | END_STREAM,
            odd(number),
            fields,
        )]
    };
    flood(&client, &[], named).await;
    assert_serves(&client).await;

    // Frames that say nothing, on a stream that is open and on none.
    for frame in [
        Frame::new(kind::DATA, 0, 1, []),
        Frame::new(kind::SETTINGS, 0, 0, []),
        Frame::new(kind::PING, 0, 0, [0; 8]),
        Frame::new(kind::PRIORITY, 0, 1, [0, 0, 0, 0, 0]),
        Frame::new(kind::WINDOW_UPDATE, 0, 0, 1_u32.to_be_bytes()),
        Frame::new(0xfe, 0, 0, [0; 8]),
        Frame::new(kind::RST_STREAM, 0, 1, cancel),
    ] {
        flood(&client, &[head(1, END_HEADERS)], |_| vec![frame.clone()]).await;
        assert_serves(&client).await;
    }

    // A frame that is longer than any may be.
    let huge = Frame::new(kind::DATA, 0, 1, vec![0; 1 << 20]);
    let ended = flood(&client, &[head(1, END_HEADERS)], |_| vec![huge.clone()]).await;
    assert_eq!(ended, Ended::Closed);
    assert_serves(&client).await;

    let grown = peak(&process) - before;
    assert!(grown < GROWTH, "{grown} KiB more than {before}");
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("panicked"), "{output}");
}

/// Whoever asks for answers to pings and reads none is not answered for ever.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn row_13_who_reads_no_answers_is_cut_off() {
    let (_mock, mut process) = process(Script::tokens(3), &["--write-timeout=1s"]).await;
    let client = process.client().await;
    assert_serves(&client).await;
    let before = peak(&process);
    for frame in [
        Frame::new(kind::PING, 0, 0, [0; 8]),
        Frame::new(kind::SETTINGS, 0, 0, []),
    ] {
        let (mut sending, receiving) = open(&client).await;
        let many = frame.bytes().repeat(1 << 10);
        // Nobody reads: what the kernels hold is full some time, and then the server goes.
        while sending.send_bytes(&many).await {}
        drop(receiving);
    }
    // The same of HTTP/1: requests in a row, whose answers nobody reads.
    let many = client.request("GET", "/echo", "").repeat(1 << 8);
    let mut wire = Wire::open(&client, &many).await.into_stream();
    let cut = async {
        use tokio::io::AsyncWriteExt;
        while wire.write_all(&many).await.is_ok() {}
    };
    patience(cut).await;
    assert_serves(&client).await;
    let grown = peak(&process) - before;
    assert!(grown < GROWTH, "{grown} KiB more than {before}");
}
