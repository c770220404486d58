//! A replica that has a tenth of a core at most. Row 48 of the faults.
//!
//! It is stopped and goes on again and again, which works everywhere, and is what a quota does to a process.

use std::process::Command;
use std::time::Duration;

use streamweld_journal_redis::testing::Server;
use streamweld_mock::{Mock, Script};
use streamweld_tests::{Client, End, Onlooker, Process, blocks, metric, state};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::whole;

const RUNS: Duration = Duration::from_millis(20);
const STANDS: Duration = Duration::from_millis(180);

/// Starves a process until this is dropped.
struct Starved {
    id: u32,
    task: JoinHandle<()>,
}

fn kill(signal: &str, id: u32) {
    let kill = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {id}")])
        .status();
    assert!(kill.expect("a shell").success());
}

impl Starved {
    fn new(process: &Process) -> Self {
        let id = process.id();
        let task = tokio::spawn(async move {
            loop {
                kill("STOP", id);
                sleep(STANDS).await;
                kill("CONT", id);
                sleep(RUNS).await;
            }
        });
        Self { id, task }
    }

    async fn end(self) {
        self.task.abort();
        // It may have been stopped last.
        let _ = self.task.await;
        kill("CONT", self.id);
    }
}

fn serve(mock: &Mock, redis: &Server) -> Process {
    let backend = format!("--backend={}", mock.url());
    let journal = format!("--journal={}", redis.url());
    Process::serve(&[
        &backend,
        &journal,
        "--presence-lease=2s",
        "--heartbeat=300ms",
        "--between-tokens-timeout=10s",
    ])
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_replica_that_hardly_runs_loses_nothing() {
    let script = Script::tokens(24)
        .id("fixed")
        .pace(Duration::from_millis(250))
        .gate_after(6, "go");
    let mock = Mock::start(script.clone()).await.expect("a port");
    let redis = Server::new().await;
    let (mut owner, mut other) = (serve(&mock, &redis), serve(&mock, &redis));
    let onlooker = Onlooker::start(owner.client().await.addr).await;
    let mut response = Client::new(onlooker.addr()).durable_chat().await;
    let id = response.id();
    let mut shown = response.body.blocks(6).await;
    let there = other.client().await.events(&id).await;

    let starved = Starved::new(&owner);
    // Its backend says nothing, and its reader is told that somebody is there.
    onlooker.wait_heartbeats(5, Duration::from_secs(9)).await;
    mock.gates().release("go");
    let (rest, end) = response.body.rest().await;
    shown.extend(rest);
    starved.end().await;
    let whole = whole(&script, &id);
    // Heartbeats are between its events.
    assert_eq!((blocks(&shown), end), (blocks(&whole), End::Proper));
    let (body, end) = there.all().await;
    assert_eq!((blocks(&body), end), (blocks(&whole), End::Proper));
    // It was its own all along, of one backend.
    for process in [&mut owner, &mut other] {
        let client = process.client().await;
        let state = state(&client, &id).await;
        assert_eq!(
            (&state["status"], &state["migrations"]),
            (&"done".into(), &0.into()),
            "{state}"
        );
        let fenced = r#"streamweld_append_failures_total{reason="fenced"}"#;
        assert_eq!(metric(&process.admin().await, fenced).await, 0);
    }
    assert_eq!(mock.recorder().count(), 1);
}
