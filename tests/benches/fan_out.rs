//! One generation with one reader, and with a thousand of whom ten never read: is the producer held back, and does
//! memory stay flat?
//!
//! Both cases run in turn, several times, on one paced backend; what is compared is how long the backend took to be
//! rid of its answer. Prints medians, their ratio, and the resident memory that the crowd cost.
#![allow(
    clippy::print_stdout,
    reason = "a benchmark's answer goes to standard output"
)]

use std::time::{Duration, Instant};

use socket2::SockRef;
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_tests::{Client, Process, Usage, blocks, patience};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

const EVENTS: usize = 200;
const PACE: Duration = Duration::from_millis(10);
const CROWD: usize = 1_000;
const STOPPED: usize = 10;
const ROUNDS: usize = 5;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(run());
}

async fn run() {
    let script = Script {
        pace: PACE,
        ..Script::tokens(EVENTS)
    };
    let config = MockConfig {
        default: script,
        ..MockConfig::default()
    };
    let mock = Mock::bind("127.0.0.1:0", config).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let mut proxy = Process::serve(&[&backend, "--write-timeout=10m"]);
    let bench = Bench {
        client: proxy.client().await,
        mock,
        proxy,
    };
    // The first answer warms both up and does not count.
    bench.answer(1, 0).await;
    let base = Usage::of(bench.proxy.id());
    let (mut alone, mut crowded, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(bench.answer(1, 0).await.0);
        let (time, peak) = bench.answer(CROWD, STOPPED).await;
        crowded.push(time);
        peaks.push(peak.kib_since(&base));
    }
    let (alone, crowded) = (median(&mut alone), median(&mut crowded));
    println!("events per answer                    {EVENTS}, one each {PACE:?}");
    println!("backend's time, 1 reader             {alone:.3} s (median of {ROUNDS})");
    println!("backend's time, {CROWD} readers         {crowded:.3} s, {STOPPED} of them stopped");
    println!(
        "ratio                                {:.3}",
        crowded / alone
    );
    println!(
        "resident memory for each reader      {:.1} KiB at the highest",
        median(&mut peaks) / CROWD as f64
    );
}

struct Bench {
    mock: Mock,
    proxy: Process,
    client: Client,
}

impl Bench {
    /// One answer with so many readers. Gives how long the backend took, and what the proxy used when it used most.
    async fn answer(&self, readers: usize, stopped: usize) -> (f64, Usage) {
        let number = self.mock.recorder().requests().len();
        let pid = self.proxy.id();
        let (most, peak) = watch::channel(Usage::of(pid));
        let watching = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(20)).await;
                let now = Usage::of(pid);
                most.send_if_modified(|most| {
                    let is_more = now.kib_since(most) > 0.0;
                    if is_more {
                        *most = now;
                    }
                    is_more
                });
            }
        }));
        let began = Instant::now();
        let mut first = self.client.chat().await;
        let id = first.id();
        let mut crowd = JoinSet::new();
        let mut held = Vec::new();
        for index in 1..readers {
            if index <= stopped {
                held.push(self.stop_reading(&id).await);
            } else {
                let (client, id) = (self.client.clone(), id.clone());
                crowd.spawn(async move { client.events(&id).await.all().await.0 });
            }
        }
        let (whole, _) = first.body.rest().await;
        self.mock
            .recorder()
            .wait_closed(number)
            .await
            .expect("the answer ends");
        let took = began.elapsed().as_secs_f64();
        while let Some(seen) = patience(crowd.join_next()).await {
            let seen = seen.expect("the reader did not panic");
            assert_eq!(blocks(&seen), blocks(&whole), "every reader sees the same");
        }
        drop(watching);
        (took, *peak.borrow())
    }

    /// A reader that asks and then never reads again.
    async fn stop_reading(&self, id: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        SockRef::from(&socket)
            .set_recv_buffer_size(1024)
            .expect("a small buffer");
        let mut stream = socket.connect(self.client.addr).await.expect("connects");
        let request = format!("GET /v1/streams/{id}/events HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("is sent");
        stream
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
