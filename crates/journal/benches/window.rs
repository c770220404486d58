//! What an event costs in the journal: staged and committed, read at the live tail, replayed, and
//! appended through the memory backend.
//!
//! Events are 241 bytes, as a chat chunk has them.

#![expect(
    missing_docs,
    reason = "criterion's macros make functions without documentation"
)]

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamweld_journal::{
    Epoch, Journal, Kind, Memory, MemoryConfig, Open, Outcome, Reader, Seq, Step, StreamId, View,
    Window, WindowConfig,
};

const PLAIN: View = View {
    ids: true,
    control: false,
};
const RUN: usize = 256 << 10;
const EVENT: usize = 241;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// The lines of an event; with the blank line it is 241 bytes.
fn line() -> Vec<u8> {
    let mut line = b"data: ".to_vec();
    line.resize(EVENT - 2, b'x');
    line.push(b'\n');
    line
}

fn window() -> Arc<Window> {
    let window = Window::new(
        StreamId::generate(now()),
        Epoch::FIRST,
        now(),
        WindowConfig::default(),
    );
    window
        .stage(now())
        .push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
    window
}

fn fill(window: &Window, events: usize, line: &[u8]) {
    for _ in 0..events {
        window
            .stage(now())
            .push(Kind::Event, |out| out.extend_from_slice(line));
    }
    window.commit(window.received());
}

fn poll_now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("memory answers at once"),
    }
}

fn stage_and_commit(c: &mut Criterion) {
    let mut group = c.benchmark_group("stage and commit one event");
    let line = line();
    for readers in [0, 1, 100] {
        group.bench_function(BenchmarkId::new("waiting readers", readers), |b| {
            let window = window();
            window.commit(Seq::FIRST);
            let mut readers: Vec<Reader> = (0..readers)
                .map(|_| Reader::new(Arc::clone(&window), Seq::FIRST, PLAIN))
                .collect();
            let cx = &mut Context::from_waker(Waker::noop());
            b.iter(|| {
                for reader in &mut readers {
                    while let Poll::Ready(step) = reader.poll_next(cx, RUN) {
                        black_box(step);
                    }
                }
                let seq = window
                    .stage(now())
                    .push(Kind::Event, |out| out.extend_from_slice(&line));
                window.commit(seq);
            });
        });
    }
    group.bench_function("32 in one batch, no reader", |b| {
        let window = window();
        b.iter(|| {
            let mut staging = window.stage(now());
            for _ in 0..32 {
                staging.push(Kind::Event, |out| out.extend_from_slice(&line));
            }
            let seq = staging.received();
            drop(staging);
            window.commit(seq);
        });
    });
    group.finish();
}

fn live_tail(c: &mut Criterion) {
    let line = line();
    c.bench_function("poll at the live tail, nothing new", |b| {
        let window = window();
        fill(&window, 10, &line);
        let mut reader = Reader::new(window, Seq::new(11), PLAIN);
        let cx = &mut Context::from_waker(Waker::noop());
        b.iter(|| black_box(reader.poll_next(cx, RUN)).is_pending());
    });
    c.bench_function("poll at the live tail, one new event", |b| {
        let window = window();
        fill(&window, 10, &line);
        let cx = &mut Context::from_waker(Waker::noop());
        b.iter(|| {
            let mut reader = Reader::new(Arc::clone(&window), Seq::new(10), PLAIN);
            black_box(reader.poll_next(cx, RUN)).is_ready()
        });
    });
}

fn replay(c: &mut Criterion) {
    const EVENTS: usize = 100_000;
    let mut group = c.benchmark_group("replay of 100k entries in runs of 256 KiB");
    group.throughput(Throughput::Elements(EVENTS as u64));
    let window = window();
    fill(&window, EVENTS, &line());
    for (name, view) in [
        ("as stored", PLAIN),
        (
            "without ids",
            View {
                ids: false,
                control: false,
            },
        ),
    ] {
        group.bench_function(name, |b| {
            let cx = &mut Context::from_waker(Waker::noop());
            b.iter(|| {
                let mut reader = Reader::new(Arc::clone(&window), Seq::ZERO, view);
                let mut bytes = 0;
                while let Poll::Ready(Step::Run { bytes: run, .. }) = reader.poll_next(cx, RUN) {
                    bytes += run.len();
                }
                assert!(bytes >= EVENTS * EVENT);
            });
        });
    }
    group.finish();
}

fn memory(c: &mut Criterion) {
    let mut group = c.benchmark_group("stage, append to memory, commit one event");
    let line = line();
    for generations in [1, 1_000, 100_000] {
        group.bench_function(BenchmarkId::new("generations", generations), |b| {
            let journal = Memory::new(MemoryConfig {
                max_total: 16 << 30,
                ..MemoryConfig::default()
            });
            let owner = Open { access: [0; 32] };
            let windows: Vec<_> = (0..generations).map(|_| window()).collect();
            for window in &windows {
                assert_eq!(poll_now(journal.open(window, &owner, now())), Outcome::Yes);
                window.commit(Seq::FIRST);
            }
            // Always the same stream: what is asked is whether the others cost it anything.
            let window = &windows[generations / 2];
            b.iter(|| {
                let before = window.committed();
                let seq = window
                    .stage(now())
                    .push(Kind::Event, |out| out.extend_from_slice(&line));
                assert_eq!(poll_now(journal.append(window, before, seq)), Outcome::Yes);
                window.commit(seq);
            });
        });
    }
    group.finish();
}

fn held(c: &mut Criterion) {
    // Not a time: printed beside the others, so that it is looked at when they are.
    let empty = window();
    let with_open = empty.held();
    fill(&empty, 4, &line());
    let long = window();
    fill(&long, 10_000, &line());
    long.stage_terminal(
        now(),
        streamweld_journal::TerminalParts {
            kind: Kind::Done,
            code: None,
            lines: b"data: {}\n".to_vec(),
            ending: Vec::new(),
            id_at: None,
        },
    );
    let bare = Window::new(
        StreamId::generate(now()),
        Epoch::FIRST,
        now(),
        WindowConfig::default(),
    )
    .held();
    let idle = empty.held();
    let per_event = (long.held() - bare) as f64 / 10_000.0;
    eprintln!(
        "held: empty window {bare}, after open {with_open}, after 4 events {idle}, per event {per_event:.1}"
    );
    let _ = c;
}

criterion_group!(benches, held, stage_and_commit, live_tail, replay, memory);
criterion_main!(benches);
