//! A replica with little memory and much to carry: a real process over a real Redis.
//!
//! What it holds of a running generation is the ring of that and what waits for Redis. Rings count against
//! `journal-total`: when those of running generations alone exceed it, new ones are served without a log.

use streamweld_journal_redis::testing::Server;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, End, Process, events, metric, wait_end, wait_seq};

use super::{degraded, whole};

const TOTAL: i64 = 20 << 20;
const MOST: u64 = 128 << 20;
/// They are let go some at a time.
const BATCHES: usize = 4;
const AT_ONCE: usize = 4;
const EVENT: usize = 256 << 10;
/// So many such events make 256 MiB in all.
const EVENTS: usize = (256 << 20) / EVENT / BATCHES / AT_ONCE;
/// Of a batch that waits, so many have been said: more than a ring holds.
const FIRST: usize = 8;

fn script(batch: usize) -> Script {
    let mut script = Script::tokens(1).id("fixed");
    for _ in 0..FIRST {
        script = script.huge_event_after(1, EVENT);
    }
    script = script.gate_after(1, format!("go {batch}"));
    for _ in FIRST..EVENTS {
        script = script.huge_event_after(1, EVENT);
    }
    script
}

/// The most memory that it has ever had, in bytes.
fn peak(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .expect("a number")
        << 10
}

/// What its rings hold, as it counts.
async fn held(admin: &Client) -> i64 {
    metric(admin, "streamweld_journal_bytes").await
}

/// Begins one that nobody reads. Gives its id, if it has a log.
async fn begin(client: &Client, mock: &Mock, batch: usize) -> Option<String> {
    mock.push_script(script(batch));
    let response = client.chat().await;
    let id = response.is_durable().then(|| response.id());
    response.leave().await;
    if let Some(id) = &id {
        // The first entry is `open`, the first event the role.
        wait_seq(client, id, FIRST as u64 + 2).await;
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn much_more_than_the_memory_there_is_passes_through() {
    let mock = Mock::start(Script::new()).await.expect("a port");
    let redis = Server::new().await;
    let backend = format!("--backend={}", mock.url());
    let journal = format!("--journal={}", redis.url());
    let both = [backend.as_str(), journal.as_str()];
    let small = ["--journal-total=20MiB", "--journal-per-generation=1MiB"];
    let mut process = Process::serve(&[both, small].concat());
    let mut other = Process::serve(&both);
    // None of its requests is a repeat, though their readers are lost.
    let client = process.client().await.with("x-stainless-retry-count", "0");
    let admin = process.admin().await;
    let elsewhere = other.client().await;

    let mut ids = Vec::new();
    for batch in 0..BATCHES {
        for _ in 0..AT_ONCE {
            // With every core busy an opening may take too long.
            let id = loop {
                if let Some(id) = begin(&client, &mock, batch).await {
                    break id;
                }
            };
            ids.push((batch, id));
        }
    }
    // There is room for some more, and then for no other log until one of these has ended.
    let mut more = 0;
    while begin(&client, &mock, BATCHES).await.is_some() || held(&admin).await < TOTAL {
        more += 1;
        assert!(more < 64, "{} bytes are held", held(&admin).await);
    }
    mock.push_script(Script::tokens(9));
    let (body, end) = degraded(client.chat().await).await;
    assert_eq!(end, End::Proper);
    assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));

    for batch in 0..BATCHES {
        mock.gates().release(&format!("go {batch}"));
        for (_, id) in ids.iter().filter(|(of, _)| *of == batch) {
            let state = wait_end(&elsewhere, id).await;
            assert_eq!(state["status"], "done");
        }
    }
    mock.gates().release(&format!("go {BATCHES}"));
    assert!(peak(&process) < MOST, "{} bytes", peak(&process));
    let (batch, id) = ids.pop().expect("there are some");
    let (body, end) = elsewhere.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    assert!(body == whole(&script(batch), &id));
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
}
