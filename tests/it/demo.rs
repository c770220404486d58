//! `streamweld demo` with two replicas, which are real processes over a real Redis.

use std::time::Duration;

use streamweld_journal_redis::testing::{Fsync, Setup};
use streamweld_mock::{Mock, Script};
use streamweld_tests::Process;

/// A replica with this journal. Gives its address too.
async fn replica(mock: &Mock, journal: &str) -> (Process, String) {
    let backend = format!("--backend={}", mock.url());
    let mut replica = Process::serve(&[&backend, &format!("--journal={journal}")]);
    let addr = replica.client().await.addr.to_string();
    (replica, addr)
}

fn demo(first: &str, second: &str) -> Process {
    Process::run(&["demo", &format!("--replicas={first},{second}")])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_hold_what_they_promise_through_the_loss_of_redis_and_of_one() {
    // Slow enough for Redis to go and to come back in mid-answer.
    let script = Script::tokens(300).pace(Duration::from_millis(40));
    let mock = Mock::start(script).await.expect("a port");
    let setup = Setup::new().append_only(Fsync::EverySecond);
    let mut redis = setup.start().await;
    let (first, at_first) = replica(&mock, &redis.url()).await;
    let (_second, at_second) = replica(&mock, &redis.url()).await;
    let mut demo = demo(&at_first, &at_second);
    demo.wait_output("→ kill Redis now").await;
    redis.kill();
    demo.wait_output("→ start Redis again now").await;
    redis.restart().await;
    demo.wait_output("ids go on").await;
    demo.wait_output("→ end the first replica now").await;
    first.signal("TERM");
    let (status, output) = demo.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
    assert_eq!(output.matches('✓').count(), 5, "{output}");
    let (status, output) = first.ended().await;
    assert_eq!(status.code(), Some(0), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_share_no_journal_fail() {
    let mock = Mock::start(Script::tokens(20)).await.expect("a port");
    let (_first, at_first) = replica(&mock, "memory").await;
    let (_second, at_second) = replica(&mock, "memory").await;
    let (status, output) = demo(&at_first, &at_second).ended().await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("404"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_does_not_come_fails() {
    let mock = Mock::start(Script::tokens(20)).await.expect("a port");
    let redis = Setup::new().start().await;
    let (_first, at_first) = replica(&mock, &redis.url()).await;
    let (_second, at_second) = replica(&mock, &redis.url()).await;
    let (status, output) = demo(&at_first, &at_second).ended().await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("before it was seen"), "{output}");
}
