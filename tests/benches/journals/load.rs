//! Readers that check every event, and when it came.

use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::backend::now;

/// How late each event was, in microseconds.
#[derive(Default)]
pub(crate) struct Seen(Vec<f64>);

impl Seen {
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn latency(&self, part: f64) -> f64 {
        percentile(&mut self.0.clone(), part)
    }

    fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// So many streams at once, whole.
pub(crate) async fn streams(addr: SocketAddr, count: usize) -> Seen {
    let mut all = JoinSet::new();
    for _ in 0..count {
        all.spawn(async move { Stream::ask(addr).await.rest().await });
    }
    together(all).await
}

/// So many streams at `one`, each read at `other` as well from when it was there. Only what came live counts there.
pub(crate) async fn followed(one: SocketAddr, other: SocketAddr, count: usize) -> (Seen, Seen) {
    let (mut near, mut far) = (JoinSet::new(), JoinSet::new());
    for _ in 0..count {
        let (tell, id) = oneshot::channel();
        near.spawn(async move {
            let mut stream = Stream::ask(one).await;
            let _ = tell.send(stream.id().await);
            stream.rest().await
        });
        far.spawn(async move {
            let id = id.await.expect("it begins");
            let mut stream = Stream::attach(other, &id).await;
            stream.ignore_before = now() + SETTLE;
            stream.rest().await
        });
    }
    tokio::join!(together(near), together(far))
}

/// Streams that have shown so many events and are not at their end.
pub(crate) async fn open(addr: SocketAddr, count: usize, events: usize) -> Open {
    let mut opening = JoinSet::new();
    for _ in 0..count {
        opening.spawn(async move {
            let mut stream = Stream::ask(addr).await;
            stream.read_events(events).await;
            stream
        });
    }
    Open(opening.join_all().await)
}

pub(crate) struct Open(Vec<Stream>);

impl Open {
    /// Reads them to their ends.
    pub(crate) async fn finish(self) {
        let mut all = JoinSet::new();
        for stream in self.0 {
            all.spawn(stream.rest());
        }
        all.join_all().await;
    }
}

/// One request after the other, on one connection each: milliseconds to the first event.
pub(crate) async fn firsts(addr: SocketAddr, count: usize) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..count {
        let began = now();
        let mut stream = Stream::ask(addr).await;
        stream.read_events(1).await;
        times.push((now() - began) as f64 / 1e6);
        stream.rest().await;
    }
    times
}

async fn together(all: JoinSet<Seen>) -> Seen {
    let mut seen = Seen::default();
    for one in all.join_all().await {
        seen.add(one);
    }
    seen
}

struct Stream {
    socket: TcpStream,
    buffer: Vec<u8>,
    next: usize,
    seen: Seen,
    ignore_before: u64,
}

impl Stream {
    async fn ask(addr: SocketAddr) -> Self {
        let body = r#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nconnection: close\r\ncontent-type: application/json";
        Self::send(
            addr,
            format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        )
        .await
    }

    async fn attach(addr: SocketAddr, id: &str) -> Self {
        let request = format!(
            "GET /v1/streams/{id}/events HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n"
        );
        Self::send(addr, request).await
    }

    async fn send(addr: SocketAddr, request: String) -> Self {
        let mut socket = TcpStream::connect(addr).await.expect("it listens");
        socket.set_nodelay(true).expect("it is connected");
        socket
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        Self {
            socket,
            buffer: Vec::with_capacity(16 << 10),
            next: 0,
            seen: Seen::default(),
            ignore_before: 0,
        }
    }

    /// The id that the head names.
    async fn id(&mut self) -> String {
        loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).to_lowercase();
                let name = "x-streamweld-stream-id: ";
                let at = head.find(name).expect("it is durable") + name.len();
                return head[at..at + 26].to_owned();
            }
            assert!(self.more().await, "there is a head");
        }
    }

    async fn read_events(&mut self, count: usize) {
        while self.next < count {
            assert!(self.more().await, "there are more events");
            self.take();
        }
    }

    /// Reads to the end, which has to be a proper one.
    async fn rest(mut self) -> Seen {
        loop {
            self.take();
            if memmem::find(&self.buffer, b"data: [DONE]").is_some() {
                return self.seen;
            }
            assert!(self.more().await, "it ends as it should");
        }
    }

    async fn more(&mut self) -> bool {
        let read = self.socket.read_buf(&mut self.buffer).await;
        read.expect("it is connected") > 0
    }

    /// Takes note of the events that are here.
    fn take(&mut self) {
        let now = now();
        let mut done = 0;
        while let Some(at) = memmem::find(&self.buffer[done..], MARK) {
            let from = done + at + MARK.len();
            let Some(stamp) = self.buffer.get(from..from + STAMP) else {
                break;
            };
            let stamp = std::str::from_utf8(stamp).expect("figures");
            let number: usize = stamp[..8].parse().expect("a number");
            let sent: u64 = stamp[9..].parse().expect("a time");
            assert_eq!(number, self.next, "in order, none missing, none twice");
            self.next += 1;
            if sent >= self.ignore_before {
                self.seen.0.push(now.saturating_sub(sent) as f64 / 1e3);
            }
            done = from + STAMP;
        }
        self.buffer.drain(..done);
    }
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value that this part of them does not exceed.
pub(crate) fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * part) as usize;
    values
        .get(place.min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

const MARK: &[u8] = br#""content":""#;
/// Number, point, nanoseconds.
const STAMP: usize = 8 + 1 + 16;
/// A reader that attaches catches up first, in nanoseconds.
const SETTLE: u64 = 500_000_000;
