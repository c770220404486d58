//! A server that comes back without the last of what it had acknowledged, as a replica that was promoted does.

use streamweld_journal_redis::testing::{Server, Setup};
use streamweld_tests::{End, Pair, blocks, wait_end, wait_seq, wait_state};

use super::{NEVER, Reading, assert_stands, in_three, patient, setup, whole};

/// Remembers what Redis holds now, and gives the server that does.
pub(super) async fn remember(pair: &mut Pair) -> Server {
    let copy = Setup::new().replica_of(pair.redis()).start().await;
    copy.wait_replicating().await;
    copy.cli(&["REPLICAOF", "NO", "ONE"]).await;
    copy
}

/// Makes Redis forget everything that `copy` does not know. Our connections are cut, as a failover does.
async fn fall_back(pair: &mut Pair, copy: &Server) {
    let port = copy.port().to_string();
    let redis = pair.redis();
    redis.cli(&["REPLICAOF", "127.0.0.1", &port]).await;
    redis.wait_replicating().await;
    for kind in ["normal", "pubsub"] {
        redis.cli(&["CLIENT", "KILL", "TYPE", kind]).await;
    }
    redis.cli(&["REPLICAOF", "NO", "ONE"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_tail_is_appended_again_by_its_owner() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let mut first = Reading::begin(one.chat().await, 20).await;
    let id = first.response.id();
    let expected = whole(&script, &id);
    wait_seq(&one, &id, 21).await;
    let copy = remember(&mut pair).await;
    pair.mock.gates().release("go");
    first.more(20).await;
    wait_seq(&one, &id, 41).await;
    fall_back(&mut pair, &copy).await;

    // Elsewhere it is not there any more, and whoever has read it is told so, and not left to wait.
    let ahead = other.with("last-event-id", &format!("{id}:41"));
    let refused = (409, "cursor_ahead".to_owned());
    assert_eq!(ahead.events(&id).await.error_code().await, refused);
    // At the owner it is.
    let here = one.with("last-event-id", &format!("{id}:41"));
    let here = here.events(&id).await;
    assert_eq!(here.status, 200);
    let there = Reading::begin(other.events(&id).await, 20).await;

    pair.mock.gates().release("end");
    assert!(first.rest().await == (expected.clone(), End::Proper));
    assert!(there.rest().await == (expected.clone(), End::Proper));
    let (rest, end) = here.all().await;
    assert_eq!(end, End::Proper);
    assert_eq!(blocks(&rest), blocks(&expected)[40..]);
    wait_end(&other, &id).await;
    assert_stands(&pair, &id, &expected).await;
    let (rest, end) = ahead.events(&id).await.all().await;
    assert_eq!(
        (blocks(&rest), end),
        (blocks(&expected)[40..].to_vec(), End::Proper)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_read_a_lost_tail_elsewhere_goes_on_behind_it() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    let first = Reading::begin(one.chat().await, 20).await;
    let id = first.response.id();
    let expected = whole(&script, &id);
    let mut there = Reading::begin(other.events(&id).await, 20).await;
    let copy = remember(&mut pair).await;
    pair.mock.gates().release("go");
    there.more(20).await;
    fall_back(&mut pair, &copy).await;
    wait_state(&other, &id, |state| state["last_seq"] == 41).await;
    pair.mock.gates().release("end");
    assert!(there.rest().await == (expected.clone(), End::Proper));
    assert!(first.rest().await == (expected.clone(), End::Proper));
    wait_end(&one, &id).await;
    assert_stands(&pair, &id, &expected).await;
}
