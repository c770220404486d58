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
use streamweld_mock::Script;
use streamweld_tests::{Harness, Setup, blocks, patience};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

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
    let harness = Setup::new(script)
        .config(|config| config.edge.write_timeout = Duration::from_secs(600))
        .start()
        .await;
    let (mut alone, mut crowded, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    // The first answer warms both up and does not count.
    answer(&harness, 1, 0).await;
    for _ in 0..ROUNDS {
        alone.push(answer(&harness, 1, 0).await.0);
        let (time, kib) = answer(&harness, CROWD, STOPPED).await;
        crowded.push(time);
        grown.push(kib);
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
        "resident memory for each reader      {:.1} KiB",
        median(&mut grown) / CROWD as f64
    );
}

/// One answer with so many readers. Gives how long the backend took, and by how many KiB the process had grown before
/// the readers left (both ends of each connection and the client's buffers included).
async fn answer(harness: &Harness, readers: usize, stopped: usize) -> (f64, f64) {
    let before = resident_kib();
    let number = harness.mock.recorder().requests().len();
    let began = Instant::now();
    let mut first = harness.client.chat().await;
    let id = first.id();
    let mut crowd = JoinSet::new();
    let mut held = Vec::new();
    for index in 1..readers {
        if index <= stopped {
            held.push(stop_reading(harness, &id).await);
        } else {
            let (client, id) = (harness.client.clone(), id.clone());
            crowd.spawn(async move { client.events(&id).await.all().await.0 });
        }
    }
    let (whole, _) = first.body.rest().await;
    harness
        .mock
        .recorder()
        .wait_closed(number)
        .await
        .expect("the answer ends");
    let took = began.elapsed().as_secs_f64();
    while let Some(seen) = patience(crowd.join_next()).await {
        let seen = seen.expect("the reader did not panic");
        assert_eq!(blocks(&seen), blocks(&whole), "every reader sees the same");
    }
    let grown = resident_kib() - before;
    (took, grown)
}

/// A reader that asks and then never reads again.
async fn stop_reading(harness: &Harness, id: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    SockRef::from(&socket)
        .set_recv_buffer_size(1024)
        .expect("a small buffer");
    let mut stream = socket.connect(harness.client.addr).await.expect("connects");
    let request = format!("GET /v1/streams/{id}/events HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("is sent");
    stream
}

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
