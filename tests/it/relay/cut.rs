//! A relay that is cut falls back to Redis, or is made anew.

use streamweld_journal_redis::testing::until;
use streamweld_mock::{Cut, RelayPlan, Script};
use streamweld_tests::{End, metric};

use super::scene::{Scene, assert_shown, assert_whole, begin};

fn gated() -> Script {
    Script::tokens(40)
        .id("fixed")
        .gate_after(10, "go")
        .gate_after(20, "on")
        .gate_after(30, "end")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_reset_in_the_middle_is_made_anew() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, _here, mut there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    scene.redis.kill();
    let gates = scene.mock.gates();
    let mut shown = whole[..streamweld_tests::ends(&whole)[9]].to_vec();
    for (gate, cut) in [("go", Cut::Rst), ("on", Cut::Fin)] {
        gates.release(gate);
        shown.extend(there.body.blocks(10).await);
        let before = one.way.accepted();
        one.way.cut_connections(cut);
        one.way
            .wait_accepted(before + 1)
            .await
            .expect("it is made anew");
    }
    gates.release("end");
    let (rest, end) = there.body.rest().await;
    shown.extend(rest);
    assert_eq!(end, End::Proper);
    assert_shown(&shown, &whole);
    let cuts = "streamweld_relay_failures_total{reason=\"cut\"}";
    assert!(metric(&other.admin, cuts).await >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cut_for_good_leaves_the_rest_to_redis() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, _here, mut there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    scene.redis.kill();
    let gates = scene.mock.gates();
    gates.release("go");
    let mut shown = whole[..streamweld_tests::ends(&whole)[9]].to_vec();
    shown.extend(there.body.blocks(10).await);
    one.way.set_plan(RelayPlan::refuse());
    one.way.cut_connections(Cut::Rst);
    gates.release("on");
    gates.release("end");
    scene.redis.restart().await;
    let (rest, end) = there.body.rest().await;
    assert_eq!(end, End::Proper);
    shown.extend(rest);
    assert_shown(&shown, &whole);
    assert_whole(&other.client, &id, &whole).await;
}

/// Nothing says so: the flow is just silent.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_half_open_is_noticed_and_made_anew() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let (id, _here, mut there) = begin(&one.client, &other.client, 10).await;
    let whole = scene.whole(&id);
    scene.redis.kill();
    let gates = scene.mock.gates();
    gates.release("go");
    let mut shown = whole[..streamweld_tests::ends(&whole)[9]].to_vec();
    shown.extend(there.body.blocks(10).await);
    one.way.pause();
    gates.release("on");
    until("it is noticed", async || {
        let cut = "streamweld_relay_failures_total{reason=\"cut\"}";
        metric(&other.admin, cut).await >= 1
    })
    .await;
    one.way.resume();
    gates.release("end");
    let (rest, end) = there.body.rest().await;
    assert_eq!(end, End::Proper);
    shown.extend(rest);
    assert_shown(&shown, &whole);
}
