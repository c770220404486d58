//! Connections that stay open while nothing passes on them any more, as behind a firewall that forgot them.

use std::time::{Duration, Instant};

use streamweld_journal_redis::testing::{Relay, Server};
use streamweld_tests::{End, wait_end, wait_state};

use super::{AT_ONCE, Told, assert_all, assert_stands, in_three, patient, setup};

/// Fault row 29.
const BUDGET: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn row_29_flows_that_are_swallowed_are_replaced_in_time() {
    let redis = Server::new().await;
    let relay = Relay::to(&redis).await;
    let script = in_three(20);
    let pair = patient(setup(script.clone()), AT_ONCE)
        .redis_at(relay.url())
        .start()
        .await;
    let mut told = Told::begin(&pair, &script, 20).await;
    relay.swallow();
    let swallowed = Instant::now();
    pair.mock.gates().release("go");
    wait_state(&pair.one.client, &told.id, |state| {
        state["durability"] == "durable" && state["last_seq"] == 41
    })
    .await;
    let took = swallowed.elapsed();
    assert!(took < BUDGET, "{took:?}");
    // The connection that listens is silent, and found out by being asked.
    told.third.more(20).await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
    }
    assert!(told.third.rest().await == (told.whole.clone(), End::Proper));
    wait_end(&pair.other.client, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
}
