//! What the journal in Redis costs beside the one in memory, in one run.
//!
//! The release binary runs as a process of its own, once over memory and twice over a real Redis; backend and readers
//! are in this process and are not counted. Every event carries its number and when it was sent, so each stream is
//! checked as it is measured. The contenders take turns; what is printed are medians of the rounds.
#![allow(
    clippy::print_stdout,
    reason = "a benchmark's answer goes to standard output"
)]

mod backend;
mod late;
mod load;
mod process;

use std::time::Duration;

use streamweld_journal_redis::testing::Server as Redis;
use streamweld_tests::Usage;

use self::backend::{Backend, Plan};
use self::late::Late;
use self::load::{median, percentile};
use self::process::Contender;

const ROUNDS: usize = 5;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let backend = Backend::start().await;
        let redis = Redis::new().await;
        let url = redis.url();
        let memory = Contender::start(&backend, &["--journal=memory"]).await;
        let one = Contender::start(&backend, &["--journal", &url]).await;
        let other = Contender::start(&backend, &["--journal", &url]).await;
        // While everything is fresh: memory that was given back would be used again.
        idle(&backend, &memory, &one, &redis).await;
        paced(&backend, &memory, &one, &redis).await;
        remote(&backend, &one, &other).await;
        flat_out(&backend, &memory, &one, &redis).await;
        drop((memory, one, other));
        first_event(&backend, &redis).await;
    });
}

/// Many streams at the pace of an engine: CPU and added latency for each event.
async fn paced(backend: &Backend, memory: &Contender, redis: &Contender, server: &Redis) {
    let plan = Plan {
        events: 150,
        every: Duration::from_millis(20),
        ..Plan::default()
    };
    let mut rows = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        backend.set(plan);
        for (row, target) in [None, Some(memory), Some(redis)].into_iter().enumerate() {
            let used = || (target.map(Contender::usage), Usage::of(server.pid()));
            let before = used();
            let seen = load::streams(target.map_or(backend.addr(), |it| it.addr()), STREAMS).await;
            let after = used();
            let events = (STREAMS * plan.events) as f64;
            assert_eq!(seen.count(), STREAMS * plan.events, "every event came");
            let proxy = match (&before.0, &after.0) {
                (Some(before), Some(after)) => after.cpu_since(before) / events,
                _ => 0.0,
            };
            // The first round warms up.
            if round > 0 {
                let server = after.1.cpu_since(&before.1) / events;
                rows[row].push([proxy, server, seen.latency(0.5), seen.latency(0.99)]);
            }
        }
    }
    let [direct, memory, redis] = rows.map(|rows| columns(&rows));
    println!("\n{STREAMS} streams of 50 events a second, µs      memory    redis   ratio");
    line("CPU of the proxy for an event", memory[0], redis[0]);
    line("CPU of redis-server for an event", 0.0, redis[1]);
    line(
        "added latency, median",
        memory[2] - direct[2],
        redis[2] - direct[2],
    );
    line(
        "added latency, 99th percentile",
        memory[3] - direct[3],
        redis[3] - direct[3],
    );
}

/// The same streams, read at the replica that does not write them.
async fn remote(backend: &Backend, one: &Contender, other: &Contender) {
    let mut rows = Vec::new();
    for round in 0..=ROUNDS {
        backend.set(Plan {
            events: 150,
            every: Duration::from_millis(20),
            ..Plan::default()
        });
        let (near, far) = load::followed(one.addr(), other.addr(), FOLLOWED).await;
        if round > 0 {
            rows.push([
                near.latency(0.5),
                near.latency(0.99),
                far.latency(0.5),
                far.latency(0.99),
            ]);
        }
    }
    let row = columns(&rows);
    println!("\n{FOLLOWED} streams, from the backend's write to a reader, µs");
    println!(
        "  at the replica that writes         median {:8.0}   99th percentile {:8.0}",
        row[0], row[1]
    );
    println!(
        "  at another replica                 median {:8.0}   99th percentile {:8.0}",
        row[2], row[3]
    );
}

/// As fast as it goes, one event in each write of the backend.
async fn flat_out(backend: &Backend, memory: &Contender, redis: &Contender, server: &Redis) {
    let plan = Plan {
        events: 4_000,
        ..Plan::default()
    };
    let mut rows = [const { Vec::new() }; 2];
    for round in 0..=ROUNDS {
        backend.set(plan);
        for (row, target) in [memory, redis].into_iter().enumerate() {
            let before = (target.usage(), Usage::of(server.pid()));
            let began = std::time::Instant::now();
            let seen = load::streams(target.addr(), FLAT_OUT).await;
            let took = began.elapsed().as_secs_f64();
            assert_eq!(seen.count(), FLAT_OUT * plan.events, "every event came");
            let events = seen.count() as f64;
            if round > 0 {
                let proxy = target.usage().cpu_since(&before.0) / events;
                let server = Usage::of(server.pid()).cpu_since(&before.1) / events;
                rows[row].push([events / took, proxy, server, 0.0]);
            }
        }
    }
    let [memory, redis] = rows.map(|rows| columns(&rows));
    println!("\n{FLAT_OUT} streams flat out                       memory    redis   ratio");
    line("events a second", memory[0], redis[0]);
    line("CPU of the proxy for an event, µs", memory[1], redis[1]);
    line("CPU of redis-server for an event, µs", 0.0, redis[2]);
}

/// Streams that have begun and then say nothing: what one more costs in resident memory.
async fn idle(backend: &Backend, memory: &Contender, redis: &Contender, server: &Redis) {
    let held = Plan {
        events: 20,
        held: true,
        ..Plan::default()
    };
    println!("{IDLE} open streams of 20 events, KiB each   memory    redis   ratio");
    let mut grown = Vec::new();
    for target in [memory, redis] {
        backend.set(held);
        let before = (target.usage(), Usage::of(server.pid()));
        let open = load::open(target.addr(), IDLE, held.events).await;
        let after = (target.usage(), Usage::of(server.pid()));
        let each = |after: &Usage, before: &Usage| after.kib_since(before) / IDLE as f64;
        grown.push([each(&after.0, &before.0), each(&after.1, &before.1)]);
        backend.let_go();
        open.finish().await;
    }
    line("proxy", grown[0][0], grown[1][0]);
    line("redis-server", 0.0, grown[1][1]);
}

/// What the reader waits longer for its first event when Redis is far away: the log is opened meanwhile.
async fn first_event(backend: &Backend, redis: &Redis) {
    println!("\ntime to the first event, ms (median, 99th percentile)");
    println!("  the backend takes                          0 ms           20 ms");
    let memory = Contender::start(backend, &["--journal=memory"]).await;
    first_row(backend, "journal in memory", &memory).await;
    drop(memory);
    for latency in [0, 1, 5].map(Duration::from_millis) {
        let late = Late::start(redis.port(), latency);
        let url = format!("redis://127.0.0.1:{}", late.port());
        let proxy = Contender::start(backend, &["--journal", &url]).await;
        let name = format!("Redis, {} ms further away", latency.as_millis());
        first_row(backend, &name, &proxy).await;
    }
}

async fn first_row(backend: &Backend, name: &str, target: &Contender) {
    print!("  {name:36}");
    for first in [0, 20].map(Duration::from_millis) {
        backend.set(Plan {
            events: 2,
            first,
            ..Plan::default()
        });
        load::firsts(target.addr(), 20).await;
        let mut times = load::firsts(target.addr(), FIRSTS).await;
        let (half, most) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        print!("  {half:6.2} {most:6.2}");
    }
    println!();
}

/// Medians of each column.
fn columns(rows: &[[f64; 4]]) -> [f64; 4] {
    [0, 1, 2, 3].map(|column| median(&mut rows.iter().map(|row| row[column]).collect::<Vec<_>>()))
}

fn line(name: &str, memory: f64, redis: f64) {
    let ratio = if memory > 0.0 {
        format!("{:8.2}", redis / memory)
    } else {
        String::new()
    };
    println!("  {name:38} {memory:8.1} {redis:8.1} {ratio}");
}

const STREAMS: usize = 200;
const FOLLOWED: usize = 50;
const FLAT_OUT: usize = 32;
const IDLE: usize = 1_000;
const FIRSTS: usize = 200;
