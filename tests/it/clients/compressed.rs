//! The clients that reconnect, in front of a proxy that compresses what they are sent.

use std::sync::Arc;

use streamweld_mock::{Dialect, Direction, Script};
use streamweld_server::config::ContentCoding;
use streamweld_tests::{CHAT, Harness, Setup, blocks};

use super::curl;
use super::program::Program;
use super::scene::{cutting, events_of, expected, first, left_alone};
use super::seen::{Row, Seen};
use super::told::Told;

const CHAT_PATH: &str = "/v1/chat/completions";
/// Half of the answer.
const HALF: usize = 100;

fn script() -> Script {
    Script::tokens(2 * HALF).gate_after(HALF, "rest")
}

async fn compressing() -> Harness {
    let all = |config: &mut streamweld_server::Config| {
        config.edge.compress = ContentCoding::ALL.to_vec();
    };
    Setup::new(script()).config(all).start().await
}

/// One of the programs: the first half while the backend still waits to say more, then the rest. A resume URL is cut once
/// on the way; a `POST` that is cut may have shown nothing yet, however much of it came, and would be asked anew.
async fn told(program: &str, post: bool) -> Row {
    let harness = Arc::new(compressing().await);
    let (path, method) = if post {
        (CHAT_PATH.to_owned(), "POST")
    } else {
        (
            events_of(&left_alone(&harness, Dialect::OpenAiChat).await),
            "GET",
        )
    };
    let cuts: &[u64] = if post { &[] } else { &[900] };
    let relay = cutting(harness.client.addr, cuts).await;
    let args: &[&str] = match program {
        "event_source.mjs" => &[&path],
        _ => &[method, &path, CHAT],
    };
    let mut program = Program::start(program, relay.addr(), args).await;
    for _ in 0..HALF {
        program.until("data").await;
    }
    harness.mock.gates().release("rest");
    let told = Told::of(program).await;
    let all = expected(&script(), &first(&harness), Dialect::OpenAiChat);
    assert_eq!(told.data(), all, "{told:?}");
    let plain: usize = all.iter().map(String::len).sum();
    let passed = relay.passed(Direction::ToClient);
    assert!(passed < plain as u64 / 2, "{passed} of {plain}");
    assert_eq!(harness.mock.recorder().count(), 1);
    let story = if post {
        "`POST` of a chat, `--compress gzip,br,zstd`"
    } else {
        "resume URL, `--compress gzip,br,zstd`, cut once"
    };
    let saw = "every event once, as soon as it was there, in less than half of the bytes";
    Row::new(&told.client, story, saw)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reconnects_reads_what_is_compressed() {
    let mut seen = Seen::by("compressed::who_reconnects_reads_what_is_compressed");
    for (program, post) in [
        ("event_source.mjs", false),
        ("event_source_client.mjs", true),
        ("fetch_event_source.mjs", true),
    ] {
        seen.row(&told(program, post).await);
    }
    seen.row(&curled().await);
    seen.check();
}

/// What it writes is seen when it has ended.
async fn curled() -> Row {
    let harness = compressing().await;
    let path = events_of(&left_alone(&harness, Dialect::OpenAiChat).await);
    harness.mock.gates().release("rest");
    let relay = cutting(harness.client.addr, &[900, 700]).await;
    let url = format!("{}{path}", relay.url());
    let output = curl::read(&["--compressed", &url]).await;
    assert!(output.status.success(), "{output:?}");
    let data: Vec<String> = blocks(&output.stdout)
        .into_iter()
        .filter_map(|block| block.data)
        .collect();
    let all = expected(&script(), &first(&harness), Dialect::OpenAiChat);
    assert_eq!(data, all);
    let plain: usize = all.iter().map(String::len).sum();
    let passed = relay.passed(Direction::ToClient);
    assert!(passed < plain as u64 / 2, "{passed} of {plain}");
    let saw = "every event once, in less than half of the bytes";
    Row::new("curl", "`--compressed`, cut twice", saw)
}
