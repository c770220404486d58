//! A master that dies in the middle of an answer, and a replica that sentinels put in its place.

use std::time::{Duration, Instant};

use streamweld_journal_redis::testing::{Sentinels, Server, until};
use streamweld_tests::{End, wait_end, wait_state};
use tokio::time::{sleep, timeout};

use super::{
    AT_ONCE, Reading, Told, assert_all, assert_no_ids, assert_stands, in_three, patient, setup,
};

/// From the death of the master to the first entry that stands with its successor: some three seconds are the
/// sentinels'.
const BUDGET: Duration = Duration::from_secs(10);

/// Waits until a server has everything that another one has of a key.
async fn wait_copied(from: &Server, to: &Server, key: &str) {
    until("it is replicated", async || {
        from.cli(&["XLEN", key]).await == to.cli(&["XLEN", key]).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_is_killed_in_mid_answer_costs_no_byte() {
    let mut redis = Sentinels::new().await;
    let script = in_three(20);
    let pair = patient(setup(script.clone()), AT_ONCE)
        .redis_at(redis.url())
        .start()
        .await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let log = told.key("log");
    wait_copied(&redis.primary, &redis.replica, &log).await;

    redis.primary.kill();
    let killed = Instant::now();
    pair.mock.gates().release("go");
    // Whoever is attached at the owner goes on meanwhile.
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    wait_state(&one, &told.id, |it| {
        it["durability"] == "durable" && it["last_seq"] == 41
    })
    .await;
    let took = killed.elapsed();
    assert!(took < BUDGET, "{took:?}");
    // Elsewhere it comes under its ids, and whoever was cut off here goes on there.
    told.third.more(20).await;
    assert!(told.whole.starts_with(&told.third.held));
    let cursor = format!("{}:11", told.id);
    let resumed = other.with("last-event-id", &cursor).events(&told.id).await;
    let resumed = Reading::begin(resumed, 30).await;

    // The old master comes back as one, with nothing, and is told what it is now.
    redis.primary.restart().await;
    pair.mock.gates().release("end");
    let (body, end) = resumed.rest().await;
    assert_eq!(end, End::Proper);
    assert!(told.whole.ends_with(&body), "not the rest");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
    }
    assert!(told.third.rest().await == (told.whole.clone(), End::Proper));
    wait_end(&other, &told.id).await;
    wait_demoted(&redis.primary).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    wait_copied(&redis.replica, &redis.primary, &log).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}

/// Sentinels look on for some eight seconds before they tell a master that came back.
async fn wait_demoted(server: &Server) {
    let demoted = async {
        while !server.is_replica().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let demoted = timeout(Duration::from_secs(60), demoted).await;
    demoted.expect("it is demoted");
}
