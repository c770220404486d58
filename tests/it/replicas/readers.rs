//! Whose readers count, and what a state says where.

use std::time::{Duration, Instant};

use serde_json::json;
use streamweld_generation::OrphanPolicy;
use streamweld_mock::Outcome;
use streamweld_server::Config;
use streamweld_tests::{End, Over, Pair, metric, state, wait_end, wait_state};
use tokio::time::{sleep, timeout};

use super::{begin, gated, whole};

over_both! {
    a_reader_at_the_other_replica_keeps_a_cancel_away
    the_last_reader_that_leaves_the_other_replica_begins_the_wait
}

async fn a_reader_at_the_other_replica_keeps_a_cancel_away(over: Over) {
    let script = gated(40, 10);
    let change = |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::Cancel;
    let pair = Pair::with(over, script.clone(), change).await;
    let one = &pair.one.client;
    let (id, first) = begin(&pair, one, 10).await;
    let second = pair.other.client.events(&id).await;
    wait_state(one, &id, |state| state["readers"] == 2).await;
    first.leave().await;
    wait_state(one, &id, |state| state["readers"] == 1).await;
    pair.mock.gates().release("go");
    assert!(second.all().await == (whole(&script, &id), End::Proper));
    assert_eq!(wait_end(one, &id).await["status"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_asks_for_the_state_keeps_no_cancel_away() {
    let change = |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::Cancel;
    let pair = Pair::with(Over::Redis, gated(40, 10), change).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, first) = begin(&pair, one, 10).await;
    let asks = async {
        loop {
            assert_eq!(state(other, &id).await["stream_id"], id);
            assert_eq!(
                other.with("authorization", "x").events(&id).await.status,
                404
            );
        }
    };
    // They ask before, meanwhile and after.
    let asked = timeout(Duration::from_millis(500), asks).await;
    assert!(asked.is_err());
    assert_eq!(state(one, &id).await["readers"], 1);
    first.leave().await;
    let ended = wait_state(other, &id, |state| state["status"] == "error").await;
    assert_eq!(ended["terminal"]["code"], "orphan_cancelled");
}

async fn the_last_reader_that_leaves_the_other_replica_begins_the_wait(over: Over) {
    const AFTER: Duration = Duration::from_millis(50);
    let change =
        |config: &mut Config| config.generation.orphan_policy = OrphanPolicy::CancelAfter(AFTER);
    let pair = Pair::with(over, gated(40, 10), change).await;
    let one = &pair.one.client;
    let (id, first) = begin(&pair, one, 10).await;
    let second = pair.other.client.events(&id).await;
    let third = pair.other.client.events(&id).await;
    wait_state(one, &id, |state| state["readers"] == 2).await;
    first.leave().await;
    second.leave().await;
    // The time itself is what this is about.
    sleep(AFTER * 4).await;
    assert_eq!(state(one, &id).await["status"], "streaming");
    let left = Instant::now();
    third.leave().await;
    let ended = wait_end(one, &id).await;
    assert_eq!(ended["terminal"]["code"], "orphan_cancelled");
    assert!(left.elapsed() >= AFTER);
    let ending = pair.mock.recorder().wait_closed(0).await.expect("ends");
    assert_ne!(ending.outcome, Outcome::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_shows_on_both_where_it_stands() {
    let pair = Pair::start(Over::Link, gated(40, 10)).await;
    let (one, other) = (&pair.one.client, &pair.other.client);
    let (id, first) = begin(&pair, one, 10).await;
    let readers = [other.events(&id).await, other.events(&id).await];
    let mut here = wait_state(one, &id, |state| state["readers"] == 2).await;
    let mut there = state(other, &id).await;
    assert_eq!(here["owner_alive"], true);
    assert_eq!(there["readers"], 2);
    assert_eq!(there["status"], "streaming");
    // How many read is each replica's own; everything else is the same.
    for state in [&mut here, &mut there] {
        state["readers"] = json!(null);
    }
    assert_eq!(here, there);
    assert_eq!(metric(&pair.one.admin, "streamweld_readers").await, 1);
    assert_eq!(metric(&pair.other.admin, "streamweld_readers").await, 2);
    pair.link().lose(0);
    let there = state(other, &id).await;
    assert_eq!(there["owner_alive"], false);
    assert_eq!(there["status"], "streaming");
    for reader in readers {
        assert_eq!(reader.all().await.1, End::Fin, "it is to come back");
    }
    pair.mock.gates().release("go");
    first.all().await;
    // Its end stands, whoever was taken for lost.
    wait_end(one, &id).await;
    assert_eq!(wait_end(other, &id).await, state(one, &id).await);
}
