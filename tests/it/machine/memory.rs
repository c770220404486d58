//! A replica that has to do with little memory. Row 47 of the faults.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use streamweld_mock::{Mock, Script};
use streamweld_tests::{End, Process, metric, texts};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Of each of the large ones.
const EVENT: usize = 64 << 10;
const EVENTS: usize = 128;
/// Slow enough for most readers to keep up while every core is busy.
const PACE: Duration = Duration::from_millis(5);
/// Of 8 MiB each.
const ANSWERS: usize = 32;
const ABREAST: usize = 8;
/// What the process may have had at its peak, in KiB.
const MOST: u64 = 128 << 10;

/// A value of `/proc/<id>/status`, in KiB.
fn kib(process: &Process, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let value = line.and_then(|line| line.split_whitespace().next());
    value.and_then(|value| value.parse().ok()).expect("a size")
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn more_than_there_is_room_for_is_passed_on_and_let_go() {
    let mut script = Script::tokens(EVENTS).id("fixed").pace(PACE);
    for before in 1..=EVENTS {
        script = script.huge_event_after(before, EVENT);
    }
    let mock = Mock::start(script).await.expect("a port");
    let backend = format!("--backend={}", mock.url());
    let mut process = Process::serve(&[
        &backend,
        "--journal-total=16MiB",
        "--journal-per-generation=4MiB",
    ]);
    let (client, admin) = (process.client().await, process.admin().await);
    let before = kib(&process, "VmRSS:");
    let room = Arc::new(Semaphore::new(ABREAST));
    let mut answers = JoinSet::new();
    for _ in 0..ANSWERS {
        let (client, room) = (client.clone(), Arc::clone(&room));
        answers.spawn(async move {
            let _place = room.acquire().await.expect("open");
            let (body, end) = client.chat().await.all().await;
            (texts(&body).len() >= EVENT * EVENTS, end)
        });
    }
    let mut whole = 0;
    for (is_whole, end) in answers.join_all().await {
        // A reader that is further behind than what is kept is broken off, and that is seen.
        assert_eq!(is_whole, end == End::Proper);
        whole += usize::from(is_whole);
    }
    assert!(whole > 0, "it has served");
    let peak = kib(&process, "VmHWM:");
    assert!(peak < MOST, "{peak} KiB at its peak, {before} before");
    // What it holds is what it may.
    assert!(metric(&admin, "streamweld_journal_bytes").await <= 16 << 20);
    assert_eq!(client.chat().await.all().await.1, End::Proper);
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
}
