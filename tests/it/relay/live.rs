//! Readers of a generation whose owner is on another replica stay live.

use std::time::{Duration, Instant};

use streamweld_journal_redis::testing::until;
use streamweld_mock::{FaultRelay, Script};
use streamweld_tests::{End, metric, state, wait_end};

use super::scene::{Scene, assert_shown, assert_whole, begin};

/// Stands still after ten events until `go`, and after twenty until `end`.
fn gated() -> Script {
    Script::tokens(30)
        .id("fixed")
        .gate_after(10, "go")
        .gate_after(20, "end")
}

#[tokio::test(flavor = "multi_thread")]
async fn while_redis_stands_still_and_after_it_does_not() {
    let paced = Script::tokens(150)
        .id("fixed")
        .pace(Duration::from_millis(60));
    let scene = Scene::new(paced.gate_after(3, "go")).await;
    let [one, other, another] = scene.replicas().await;
    let (id, here, mut there) = begin(&one.client, &other.client, 3).await;
    let also = another.client.events(&id).await;
    scene.redis.pause();
    let paused = Instant::now();
    scene.mock.gates().release("go");
    let whole = scene.whole(&id);
    let mut shown = streamweld_tests::blocks(&whole)[..3].len();
    let mut body = Vec::new();
    // Longer than any notice takes, with an event after the other all the time.
    while paused.elapsed() < Duration::from_secs(6) {
        body.extend(there.body.chunk().await.expect("it goes on"));
        shown += 1;
    }
    assert!(shown > 20, "{shown}");
    scene.redis.resume();
    let (rest, end) = there.body.rest().await;
    assert_eq!(end, End::Proper);
    let first = whole[..streamweld_tests::ends(&whole)[2]].to_vec();
    let all = [first, body, rest].concat();
    let without = assert_shown(&all, &whole);
    assert!(without > 10, "{without}");
    let (all, end) = also.all().await;
    assert_eq!(end, End::Proper);
    assert!(assert_shown(&all, &whole) > 10);
    drop(here);
    for replica in [&one, &other, &another] {
        assert_whole(&replica.client, &id, &whole).await;
    }
    // Nothing is left of it.
    until("nobody is asked any more", async || {
        let followed = metric(&other.admin, "streamweld_relay_followed").await;
        followed + metric(&one.admin, "streamweld_relay_told").await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_without_ids_has_them_when_redis_is_back() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, mut here, mut there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    scene.redis.kill();
    scene.mock.gates().release("go");
    let mut shown = Vec::new();
    for reader in [&mut here, &mut there] {
        let ten = reader.body.blocks(10).await;
        assert!(!String::from_utf8_lossy(&ten).contains("id: "));
        shown.push(ten);
    }
    assert_eq!(shown[0], shown[1], "the same at both");
    scene.redis.restart().await;
    // It is the owner that writes it; who follows learns of it.
    until("the other replica has them under their ids", async || {
        state(&other.client, &id).await["last_seq"] == 21
    })
    .await;
    let late = other.client.with("last-event-id", &format!("{id}:11"));
    let mut late = late.events(&id).await;
    let ends = streamweld_tests::ends(&whole);
    assert_eq!(late.body.blocks(10).await, whole[ends[9]..ends[19]]);
    scene.mock.gates().release("end");
    for reader in [here, there, late] {
        let (rest, end) = reader.all().await;
        assert_eq!(end, End::Proper);
        assert!(rest == whole[ends[19]..], "ids go on");
    }
    assert_whole(&other.client, &id, &whole).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_the_end_when_redis_never_comes_back() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, here, there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    scene.redis.kill();
    scene.mock.gates().release("go");
    scene.mock.gates().release("end");
    let from = streamweld_tests::ends(&whole)[9];
    for reader in [here, there] {
        let (rest, end) = reader.all().await;
        assert_eq!(end, End::Proper);
        let all = [&whole[..from], &rest].concat();
        assert!(assert_shown(&all, &whole) > 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn and_are_told_of_a_failure_as_at_the_owner() {
    let script = Script::tokens(30).id("fixed").gate_after(10, "go");
    let mut scene = Scene::new(script.rst_after(15)).await;
    let [one, other] = scene.replicas().await;
    let (id, mut asked, there) = begin(&one.client, &other.client, 10).await;
    let mut here = one.client.events(&id).await;
    here.body.blocks(10).await;
    scene.redis.kill();
    scene.mock.gates().release("go");
    let (here, ended) = here.all().await;
    let (there, end) = there.all().await;
    assert_eq!((end, ended), (End::Proper, End::Proper));
    assert!(
        String::from_utf8_lossy(&there).contains("truncated")
            || String::from_utf8_lossy(&there).contains("aborted")
    );
    assert_eq!(there, here);
    let (_, end) = asked.body.rest().await;
    assert_ne!(end, End::Proper);
    scene.redis.restart().await;
    let ended = wait_end(&other.client, &id).await;
    assert_eq!(ended["status"], "error");
}

/// Its owner has Redis all the time, so everything has its id.
#[tokio::test(flavor = "multi_thread")]
async fn under_ids_when_their_replica_alone_is_cut_off() {
    let scene = Scene::new(gated()).await;
    let one = scene.replica().await;
    let redis = scene.redis.address().parse().expect("an address");
    let way = FaultRelay::start(redis).await.expect("a port");
    let url = format!("redis://{}", way.addr());
    let other = scene.replica_over(&url, &[]).await;
    scene.acquainted(2).await;
    let (id, _here, there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    way.pause();
    for gate in ["go", "end"] {
        scene.mock.gates().release(gate);
    }
    let (rest, end) = there.all().await;
    assert_eq!(end, End::Proper);
    assert!(rest == whole[streamweld_tests::ends(&whole)[9]..]);
    assert!(one.way.accepted() > 0, "by the relay");
}
