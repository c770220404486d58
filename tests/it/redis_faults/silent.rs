//! A server that is stopped in its tracks for longer than any answer may take.

use std::time::Duration;

use streamweld_tests::{End, wait_end, wait_state};
use tokio::time::sleep;

use super::{
    AT_ONCE, Told, assert_all, assert_no_ids, assert_stands, failures, in_three, patient, setup,
    wait_metric,
};

/// Longer than it takes to give a connection up: three answers, and what is between them.
const LONG: Duration = Duration::from_secs(3);

async fn check(silence: Option<Duration>) {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), AT_ONCE).start().await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    pair.redis().pause();
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
    pair.redis().resume();
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
    check(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_silence_loses_and_doubles_nothing() {
    check(Some(LONG)).await;
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
