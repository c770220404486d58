//! A server that stands still for longer than any answer may take, in each of the ways there are.

use std::time::Duration;

use streamweld_journal_redis::testing::{Server, until};
use streamweld_tests::{End, wait_end, wait_state};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::{
    AT_ONCE, Told, assert_all, assert_no_ids, assert_stands, failures, in_three, patient, setup,
    wait_metric,
};

/// Longer than it takes to give a connection up: three answers, and what is between them.
const LONG: Duration = Duration::from_secs(3);

/// A way to stand still.
#[derive(Clone, Copy)]
enum Stall {
    /// Its process is stopped.
    Stopped,
    /// It sleeps, for this many seconds; nothing can wake it.
    Asleep(&'static str),
    /// It reads and does not write.
    Paused,
    /// A script runs for ever. It says so to everybody.
    Busy,
}

impl Stall {
    /// Begins it, and waits until it is so. What is given has to be kept until it ends.
    async fn begin(self, redis: &Server) -> Option<Child> {
        match self {
            Self::Stopped => {
                redis.pause();
                None
            }
            Self::Asleep(seconds) => {
                let sleeps = redis.begin(&["DEBUG", "SLEEP", seconds]);
                until("it sleeps", async || {
                    let alive = redis.cli(&["PING"]);
                    timeout(Duration::from_millis(300), alive).await.is_err()
                })
                .await;
                Some(sleeps)
            }
            Self::Paused => {
                let pause = redis.cli(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
                assert_eq!(pause, "OK");
                None
            }
            Self::Busy => {
                redis
                    .cli(&["CONFIG", "SET", "busy-reply-threshold", "50"])
                    .await;
                let runs = redis.begin(&["EVAL", "while true do end", "0"]);
                until("it is busy", async || {
                    redis.cli(&["PING"]).await.starts_with("BUSY")
                })
                .await;
                Some(runs)
            }
        }
    }

    async fn end(self, redis: &Server) {
        match self {
            Self::Stopped => redis.resume(),
            Self::Asleep(_) => _ = redis.cli(&["PING"]).await,
            Self::Paused => assert_eq!(redis.cli(&["CLIENT", "UNPAUSE"]).await, "OK"),
            Self::Busy => assert_eq!(redis.cli(&["SCRIPT", "KILL"]).await, "OK"),
        }
    }
}

async fn check(stall: Stall, silence: Option<Duration>) {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), AT_ONCE).start().await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let stands_still = stall.begin(pair.redis()).await;
    pair.mock.gates().release("go");
    // Whoever is attached at the owner goes on without ids.
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    let degraded = wait_state(&one, &told.id, |it| it["durability"] == "degraded").await;
    assert_eq!(degraded["last_seq"], 21);
    wait_metric(&pair.one.admin, &failures("unknown"), 1).await;
    if let Some(silence) = silence {
        sleep(silence).await;
    }
    stall.end(pair.redis()).await;
    drop(stands_still);
    // What was sent stands or is sent again; elsewhere it comes under its ids.
    told.third.more(20).await;
    assert!(told.whole.starts_with(&told.third.held));
    wait_state(&one, &told.id, |it| {
        it["durability"] == "durable" && it["last_seq"] == 41
    })
    .await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
        let last = &body[body.len() - 100..];
        assert!(told.whole.ends_with(last), "ids go on behind the suffix");
    }
    assert!(told.third.rest().await == (told.whole.clone(), End::Proper));
    wait_end(&other, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_silence_loses_and_doubles_nothing() {
    check(Stall::Stopped, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_silence_loses_and_doubles_nothing() {
    check(Stall::Stopped, Some(LONG)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_of_the_server_loses_and_doubles_nothing() {
    // Long enough for what happens before it is over, with every core busy.
    check(Stall::Asleep("6"), None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_lose_and_double_nothing() {
    check(Stall::Paused, Some(LONG)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_runs_for_ever_loses_and_doubles_nothing() {
    check(Stall::Busy, Some(LONG)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silence_at_the_end_loses_and_doubles_nothing() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), AT_ONCE).start().await;
    let told = Told::begin(&pair, &script, 20).await;
    pair.redis().pause();
    pair.mock.gates().release("go");
    pair.mock.gates().release("end");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper, "who is attached sees the true end");
        assert_all(&body, &told.whole);
    }
    wait_metric(&pair.one.admin, &failures("unknown"), 1).await;
    pair.redis().resume();
    assert!(told.third.rest().await == (told.whole.clone(), End::Proper));
    let ended = wait_end(&pair.one.client, &told.id).await;
    assert_eq!(ended["status"], "done");
    assert_stands(&pair, &told.id, &told.whole).await;
}
