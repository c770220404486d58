//! What one event costs: decoded with its fields read, and decoded and encoded, by read size.
//!
//! The stream is one of chat completion chunks, 241 bytes each, the size the project's other
//! figures use. `line_by_line` is the usual way to write it: a buffer, a `String` per line.
//!
//! `cargo bench -p streamweld-sse`; times are per pass over 1024 events, so the `thrpt` column
//! gives events per second.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_main};
use streamweld_sse::{Decoder, Limits, Retry, encode_lines};

const EVENTS: usize = 1024;
const EVENT_LEN: usize = 241;

fn chat_event() -> Vec<u8> {
    let head = r#"data: {"id":"chatcmpl-8b1f","object":"chat.completion.chunk","created":1764460800,"model":"llama-3.3-70b","choices":[{"index":0,"delta":{"content":""#;
    let foot = "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    let text = "x".repeat(EVENT_LEN - head.len() - foot.len());
    [head, &text, foot].concat().into_bytes()
}

fn named_event() -> Vec<u8> {
    let head = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"";
    let foot = "\"}}\n\n";
    let text = "x".repeat(EVENT_LEN - head.len() - foot.len());
    [head, &text, foot].concat().into_bytes()
}

fn read_sizes() -> [(&'static str, usize); 3] {
    [
        ("1_event", EVENT_LEN),
        ("16_KiB", 16 * 1024),
        ("64_KiB", 64 * 1024),
    ]
}

fn decode(stream: &[u8], read: usize) {
    let mut decoder = Decoder::new(Limits::default());
    for mut input in stream.chunks(read) {
        while let Some(event) = decoder.decode(&mut input).expect("the stream is valid") {
            black_box(event.name());
            for line in event.data_lines() {
                black_box(line);
            }
        }
    }
}

fn decode_and_encode(stream: &[u8], read: usize, out: &mut Vec<u8>) {
    let mut decoder = Decoder::new(Limits::default());
    for mut input in stream.chunks(read) {
        out.clear();
        while let Some(event) = decoder.decode(&mut input).expect("the stream is valid") {
            encode_lines(&event, Retry::Drop, out);
            out.push(b'\n');
        }
        black_box(&out);
    }
}

fn line_by_line(stream: &[u8], read: usize) {
    let mut buffer = Vec::new();
    let mut name = None;
    let mut data = String::new();
    for input in stream.chunks(read) {
        buffer.extend_from_slice(input);
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let line = String::from_utf8(line).expect("the stream is valid");
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                black_box((name.take(), std::mem::take(&mut data)));
            } else if let Some(value) = line.strip_prefix("data: ") {
                data.push_str(value);
            } else if let Some(value) = line.strip_prefix("event: ") {
                name = Some(value.to_owned());
            }
        }
    }
}

/// Without `criterion_group!`, which makes a public function that has no documentation.
fn decode_benches() {
    let mut criterion = Criterion::default().configure_from_args();
    for (kind, event) in [("chat", chat_event()), ("named", named_event())] {
        assert_eq!(event.len(), EVENT_LEN);
        let stream = event.repeat(EVENTS);
        let mut group = criterion.benchmark_group(kind);
        group.throughput(Throughput::Elements(EVENTS as u64));
        for (name, read) in read_sizes() {
            group.bench_function(BenchmarkId::new("decode", name), |bencher| {
                bencher.iter(|| decode(black_box(&stream), read));
            });
            group.bench_function(BenchmarkId::new("decode_and_encode", name), |bencher| {
                let mut out = Vec::new();
                bencher.iter(|| decode_and_encode(black_box(&stream), read, &mut out));
            });
            // Each line moves the whole rest of the buffer, so larger reads only get worse.
            if read == EVENT_LEN {
                group.bench_function(BenchmarkId::new("line_by_line", name), |bencher| {
                    bencher.iter(|| line_by_line(black_box(&stream), read));
                });
            }
        }
        group.finish();
    }
}

criterion_main!(decode_benches);
