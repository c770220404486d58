//! How an end is judged, and how it looks to each kind of reader (protocol.md 7).

mod choices;
mod cuts;
mod failures;
mod shown;
mod successes;

use serde_json::{Value, json};
use streamweld_mock::{Dialect, Raw, Script};
use streamweld_tests::{Block, Harness, Shown};

const LLM: [Dialect; 3] = [
    Dialect::OpenAiChat,
    Dialect::OpenAiCompletions,
    Dialect::AnthropicMessages,
];

fn reason(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::AnthropicMessages => "end_turn",
        Dialect::OpenAiResponses => "completed",
        _ => "stop",
    }
}

/// What the events of this script are does not depend on the request.
fn whole() -> Script {
    Script {
        model: Some("m".to_owned()),
        ..Script::tokens(3)
    }
}

/// One generation of this script, in front of a mock of its own.
async fn shown(dialect: Dialect, script: Script) -> (Shown, Vec<Block>) {
    let harness = Harness::start(script.clone()).await;
    let shown = Shown::of(&harness, dialect).await;
    let expected = shown.expected(&harness, &script);
    (shown, expected)
}

/// A chat or completions stream of exactly these blocks, ended cleanly.
fn stream(events: &[&str]) -> Script {
    let mut raw = Raw::new().stream_head();
    for event in events {
        raw = raw.chunk(format!("data: {event}\n\n"));
    }
    Script::raw(raw.last_chunk())
}

/// The blocks of [`stream`].
fn plain(events: &[&str]) -> Vec<Block> {
    events
        .iter()
        .map(|event| Block {
            data: Some((*event).to_owned()),
            ..Block::default()
        })
        .collect()
}

fn delta(index: u32, content: &str, finish: &Value) -> String {
    json!({"id": "c", "choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish}]})
        .to_string()
}

async fn chat(events: &[&str]) -> Shown {
    shown(Dialect::OpenAiChat, stream(events)).await.0
}

/// A stream that goes on with more steps after these events.
fn begun(events: &[&str]) -> Raw {
    let head = Raw::new().stream_head();
    events
        .iter()
        .fold(head, |raw, event| raw.chunk(format!("data: {event}\n\n")))
}
