//! An engine that sends what the load expects, and when.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// How a request is answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Events before the end.
    pub(crate) events: usize,
    /// Between two of them; zero is as fast as they are taken.
    pub(crate) every: Duration,
    /// Before the head.
    pub(crate) first: Duration,
    /// Whether the end waits until [`Backend::let_go`].
    pub(crate) held: bool,
}

/// Runs until the process ends.
pub(crate) struct Backend {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    plan: Mutex<Plan>,
    free: Notify,
}

impl Backend {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&served);
                tokio::spawn(async move { serve(stream, &shared).await });
            }
        });
        Self { addr, shared }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How requests are answered from now on.
    pub(crate) fn set(&self, plan: Plan) {
        *self.shared.plan.lock().expect("nobody panics") = plan;
    }

    /// Lets the answers that are held come to their end.
    pub(crate) fn let_go(&self) {
        self.shared.free.notify_waiters();
    }
}

/// Answers requests until the client leaves. Gives nothing: a client that has what it wanted may leave at any time.
async fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = Vec::new();
    loop {
        request(&mut stream, &mut buffer).await?;
        let plan = *shared.plan.lock().expect("nobody panics");
        answer(&mut stream, plan, shared).await?;
    }
}

/// Takes one request out of what comes.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(size) = head.parse(buffer).ok()? {
            let length = head
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let body: usize = std::str::from_utf8(length?.value).ok()?.parse().ok()?;
            while buffer.len() < size + body {
                more(stream, buffer).await?;
            }
            buffer.drain(..size + body);
            return Some(());
        }
        more(stream, buffer).await?;
    }
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(buffer).await.ok()? > 0).then_some(())
}

async fn answer(stream: &mut TcpStream, plan: Plan, shared: &Shared) -> Option<()> {
    if !plan.first.is_zero() {
        sleep(plan.first).await;
    }
    let free = shared.free.notified();
    stream.write_all(HEAD).await.ok()?;
    let mut pace = (!plan.every.is_zero()).then(|| interval(plan.every));
    if let Some(pace) = &mut pace {
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut text = String::new();
    for number in 0..plan.events {
        if let Some(pace) = &mut pace {
            pace.tick().await;
        }
        text.clear();
        event(&mut text, number);
        stream.write_all(text.as_bytes()).await.ok()?;
    }
    if plan.held {
        free.await;
    }
    text.clear();
    chunk(&mut text, FINISH);
    chunk(&mut text, "data: [DONE]\n\n");
    text.push_str("0\r\n\r\n");
    stream.write_all(text.as_bytes()).await.ok()
}

/// An event as engines send them, with its number and the time in place of its text.
fn event(out: &mut String, number: usize) {
    let mut data = String::with_capacity(256);
    let _ = write!(data, "{BEFORE}{number:08}.{:016}{BEHIND}", now());
    chunk(out, &data);
}

fn chunk(out: &mut String, data: &str) {
    let _ = write!(out, "{:x}\r\n{data}\r\n", data.len());
}

/// Nanoseconds since this process first asked.
pub(crate) fn now() -> u64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let begun = *BEGUN.get_or_init(Instant::now);
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const BEFORE: &str = r#"data: {"id":"chatcmpl-8f1c0d5e7b","object":"chat.completion.chunk","created":1790000000,"model":"bench","system_fingerprint":"fp_0","choices":[{"index":0,"delta":{"content":""#;
const BEHIND: &str = "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
const FINISH: &str = "data: {\"id\":\"chatcmpl-8f1c0d5e7b\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
