//! The cost of judging one event of each dialect, as it arrives tens of thousands of times a
//! second: decoded already, in mid-answer, meaning nothing for the end.
//!
//! A chunk of a second choice is there for comparison: it must be parsed.

#![allow(
    missing_docs,
    reason = "criterion's macro makes an undocumented function"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_main};
use streamweld_dialect::{Dialect, Judge, Mark};
use streamweld_sse::{Decoder, Event, Limits};

const CHAT_VLLM: &str = r#"data: {"id":"chatcmpl-97ab3c8f3961cd67","object":"chat.completion.chunk","created":1796000071,"model":"smollm2-135m","choices":[{"index":0,"delta":{"content":" capital"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#;
const CHAT_LLAMACPP: &str = r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" capital"}}],"created":1795999003,"id":"chatcmpl-QweubCDEgF6ZjvljLmLwNCLG7SuwlKtW","model":"smollm2-135m","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"}"#;
const CHAT_SECOND_CHOICE: &str = r#"data: {"id":"chatcmpl-97ab3c8f3961cd67","object":"chat.completion.chunk","created":1796000071,"model":"smollm2-135m","choices":[{"index":1,"delta":{"content":" capital"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#;
const COMPLETIONS: &str = r#"data: {"id":"cmpl-9e409cdee26ed1cc","object":"text_completion","created":1796000072,"model":"smollm2-135m","choices":[{"index":0,"text":" Paris","logprobs":null,"finish_reason":null,"stop_reason":null}]}"#;
const ANTHROPIC: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" capital\"}}";
const RESPONSES: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":17,\"item_id\":\"msg_67ccd2bf17f0819081ff3bb2cf6508e6\",\"output_index\":0,\"content_index\":0,\"delta\":\" capital\",\"logprobs\":[],\"obfuscation\":\"kVx1a9\"}";
const GEMINI: &str = r#"data: {"candidates": [{"content": {"parts": [{"text": " capital"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 9,"candidatesTokenCount": 14,"totalTokenCount": 23},"modelVersion": "gemini-2.5-flash","responseId": "mAitaLmkHPPlz7IPvtfUqQ4"}"#;

fn judge(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("judge");
    for (name, dialect, block) in [
        ("chat_vllm", Dialect::OpenAiChat, CHAT_VLLM),
        ("chat_llamacpp", Dialect::OpenAiChat, CHAT_LLAMACPP),
        (
            "chat_second_choice",
            Dialect::OpenAiChat,
            CHAT_SECOND_CHOICE,
        ),
        ("completions", Dialect::OpenAiCompletions, COMPLETIONS),
        ("anthropic", Dialect::AnthropicMessages, ANTHROPIC),
        ("responses", Dialect::OpenAiResponses, RESPONSES),
        ("gemini", Dialect::Gemini, GEMINI),
        ("generic", Dialect::Generic, CHAT_VLLM),
    ] {
        let bytes = format!("{block}\n\n");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            with_event(bytes.as_bytes(), |event| {
                let mut judge = Judge::new(dialect);
                // The first event starts the choice, which is not the ordinary case.
                assert_eq!(judge.event(event), Mark::Event);
                bencher.iter(|| judge.event(&black_box(*event)));
            });
        });
    }
    group.finish();
}

fn with_event(mut bytes: &[u8], run: impl FnOnce(&Event<'_>)) {
    let mut decoder = Decoder::new(Limits::default());
    let event = decoder
        .decode(&mut bytes)
        .expect("the block is valid")
        .expect("the block is whole");
    run(&event);
}

fn benches() {
    judge(&mut Criterion::default().configure_from_args());
}

criterion_main!(benches);
