//! A server that has older data all of a sudden, below connections that stay.

use streamweld_journal_redis::testing::Server;
use streamweld_tests::{End, Pair, wait_end, wait_state};

use super::tail::remember;
use super::{NEVER, Told, assert_stands, in_three, patient, setup};

/// Demotes it, lets it take the data of the copy, and promotes it. Nobody is cut off.
async fn fall_back(pair: &mut Pair, copy: &Server) {
    let port = copy.port().to_string();
    let redis = pair.redis();
    redis.cli(&["REPLICAOF", "127.0.0.1", &port]).await;
    redis.wait_replicating().await;
    redis.cli(&["REPLICAOF", "NO", "ONE"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_lost_is_appended_again_before_anything_else() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let mut told = Told::begin(&pair, &script, 20).await;
    let copy = remember(&mut pair).await;
    pair.mock.gates().release("go");
    told.first.more(20).await;
    for client in [&one, &other] {
        wait_state(client, &told.id, |state| state["last_seq"] == 41).await;
    }
    // While nothing is said on any connection.
    fall_back(&mut pair, &copy).await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second, told.third] {
        assert!(reading.rest().await == (told.whole.clone(), End::Proper));
    }
    wait_end(&other, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}
