//! What else may go while a relay is used.

use streamweld_journal_redis::testing::until;
use streamweld_mock::Script;
use streamweld_tests::{End, blocks, metric, patience, wait_end};

use super::scene::{Scene, assert_whole, begin};

fn gated() -> Script {
    Script::tokens(30)
        .id("fixed")
        .gate_after(10, "go")
        .gate_after(20, "end")
}

/// Its owner dies with what it has shown and Redis never had. That is no part of the answer, so whoever saw it is broken
/// off, and comes back.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_dead_owner_had_is_no_part_of_the_answer() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, _here, mut there) = begin(&one.client, &other.client, 10).await;
    scene.redis.kill();
    scene.mock.gates().release("go");
    there.body.blocks(10).await;
    one.process.signal("KILL");
    patience(one.process.ended()).await;
    scene.redis.restart().await;
    let (rest, end) = there.body.rest().await;
    assert_ne!(end, End::Proper);
    assert!(!String::from_utf8_lossy(&rest).contains("error"));
    // Its end is the one that a lost owner has, behind what stands.
    assert_eq!(
        wait_end(&other.client, &id).await["terminal"]["code"],
        "owner_lost"
    );
    let (body, end) = other.client.events(&id).await.all().await;
    assert_eq!(end, End::Proper);
    let whole = blocks(&scene.whole(&id));
    let shown = blocks(&body);
    assert_eq!(shown[..10], whole[..10]);
    assert_eq!(shown.len(), 11, "{shown:?}");
}

/// Nothing was shown but what stands: the reader waits, and is given the rest where it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_saw_only_what_stands_is_given_the_end_of_a_dead_owner() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, _here, there) = begin(&one.client, &other.client, 10).await;
    scene.redis.kill();
    until("the owner is asked", async || {
        metric(&other.admin, "streamweld_relay_followed").await == 1
    })
    .await;
    one.process.signal("KILL");
    patience(one.process.ended()).await;
    scene.redis.restart().await;
    let (rest, end) = there.all().await;
    assert_eq!(end, End::Proper);
    assert!(String::from_utf8_lossy(&rest).contains("owner_lost"));
    wait_end(&other.client, &id).await;
}

/// A Redis that has lost everything: the owner shows the answer to its end all the same, and so does who follows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_comes_back_empty_costs_nobody_the_answer_who_sees_it() {
    let mut scene = Scene::over(streamweld_journal_redis::testing::Setup::new(), gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, here, mut there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    scene.redis.kill();
    scene.mock.gates().release("go");
    let ten = there.body.blocks(10).await;
    scene.redis.restart().await;
    scene.mock.gates().release("end");
    let from = streamweld_tests::ends(&whole)[9];
    let (rest, end) = there.all().await;
    assert_eq!(end, End::Proper, "{}", String::from_utf8_lossy(&rest));
    super::scene::assert_shown(&[&whole[..from], &ten, &rest].concat(), &whole);
    let (rest, end) = here.all().await;
    assert_eq!(end, End::Proper);
    super::scene::assert_shown(&[&whole[..from], &rest].concat(), &whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_failure_nobody_is_asked() {
    let scene = Scene::new(Script::tokens(30).id("fixed")).await;
    let [one, other] = scene.replicas().await;
    let asked = one.client.durable_chat().await;
    let id = asked.id();
    assert_eq!(asked.all().await.1, End::Proper);
    assert_whole(&other.client, &id, &scene.whole(&id)).await;
    assert_eq!(one.way.accepted() + other.way.accepted(), 0);
}
