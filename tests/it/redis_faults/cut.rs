//! Connections that are cut, and a server that is killed and comes back.

use std::time::Duration;

use streamweld_mock::Script;
use streamweld_tests::{CHAT, End, blocks, events, metric, patience, wait_end, wait_state};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    AT_ONCE, NEVER, Reading, Told, assert_all, assert_cut, assert_no_ids, assert_no_log,
    assert_stands, assert_unknown, failures, in_three, patient, setup, wait_metric, whole,
    with_a_file,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_that_kept_its_file_has_everything() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER)
        .server(with_a_file())
        .start()
        .await;
    let told = Told::begin(&pair, &script, 20).await;
    pair.redis().kill();
    // What comes while it is away waits for it.
    pair.mock.gates().release("go");
    wait_metric(&pair.one.admin, &failures("unknown"), 1).await;
    pair.redis().restart().await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    for client in [&one, &other] {
        wait_state(client, &told.id, |state| state["last_seq"] == 41).await;
    }
    // And once more while there is nothing to write.
    pair.redis().restart().await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second, told.third] {
        assert!(reading.rest().await == (told.whole.clone(), End::Proper));
    }
    wait_end(&other, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_again_and_again_loses_nothing_that_it_kept() {
    let script = Script::tokens(600)
        .id("fixed")
        .pace(Duration::from_millis(5));
    let mut pair = patient(setup(script.clone()), AT_ONCE)
        .server(with_a_file())
        .start()
        .await;
    let told = Told::begin(&pair, &script, 20).await;
    let (id, whole) = (told.id, told.whole);
    let readings =
        [told.first, told.second, told.third].map(|reading| tokio::spawn(reading.rest()));
    while !readings.iter().all(tokio::task::JoinHandle::is_finished) {
        pair.redis().restart().await;
        // So far that something is written again, or it is over.
        wait_moved(&pair.one.client, &id).await;
    }
    for (turn, reading) in readings.into_iter().enumerate() {
        let (body, end) = patience(reading).await.expect("no panic");
        assert_eq!(end, End::Proper);
        assert_all(&body, &whole);
        // Elsewhere only what is committed is shown.
        assert!(turn < 2 || body == whole);
    }
    wait_end(&pair.other.client, &id).await;
    assert_stands(&pair, &id, &whole).await;
}

/// Waits until a generation has one entry more than now, or has ended.
async fn wait_moved(client: &streamweld_tests::Client, id: &str) {
    let last = streamweld_tests::state(client, id).await["last_seq"].as_u64();
    wait_state(client, id, |state| {
        state["last_seq"].as_u64() > last || !state["terminal"].is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_that_kept_nothing_is_never_begun_anew() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), AT_ONCE).start().await;
    let told = Told::begin(&pair, &script, 20).await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    pair.redis().restart().await;

    // Elsewhere there is nothing left to read.
    let (body, end) = told.third.rest().await;
    assert_eq!(end, End::Fin, "a part is not the whole");
    assert_cut(&body, &told.whole, 20);
    let unknown = (404, "stream_not_found".to_owned());
    assert_eq!(other.events(&told.id).await.error_code().await, unknown);
    // The owner has it all, and notices with the next event.
    let mut late = Reading::begin(one.events(&told.id).await, 20).await;
    pair.mock.gates().release("go");
    wait_state(&one, &told.id, |state| state["durability"] == "degraded").await;
    assert_no_ids(&late.more(20).await);
    pair.mock.gates().release("end");
    for reading in [told.first, told.second, late] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
        assert_no_ids(&blocks(&body)[20..]);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }
    let gone = async {
        while one.events(&told.id).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    patience(gone).await;
    assert_unknown(&pair, &told.id).await;
    assert_no_log(&mut pair).await;
    assert_eq!(metric(&pair.one.admin, &failures("vanished")).await, 1);
    assert_eq!(pair.mock.recorder().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_again_and_again_cost_no_byte() {
    let script = Script::tokens(400)
        .id("fixed")
        .pace(Duration::from_millis(10));
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let mut ids = Vec::new();
    let mut readings = Vec::new();
    for turn in 0..4 {
        let [at, elsewhere] = [[&pair.one, &pair.other], [&pair.other, &pair.one]][turn % 2];
        let response = at.client.send("POST", super::PATH, CHAT).await;
        let id = response.id();
        readings.push((id.clone(), tokio::spawn(response.all())));
        let second = elsewhere.client.clone();
        ids.push((id, second));
    }
    let mut every = interval(Duration::from_millis(200));
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut cuts = 0;
    while !readings.iter().all(|(_, reading)| reading.is_finished()) {
        every.tick().await;
        for kind in ["normal", "pubsub"] {
            pair.redis().cli(&["CLIENT", "KILL", "TYPE", kind]).await;
        }
        cuts += 1;
        // Now and then somebody comes, at the other replica.
        let (id, client) = ids[cuts % ids.len()].clone();
        let reading = async move {
            let response = client.events(&id).await;
            assert_eq!(response.status, 200);
            response.all().await
        };
        if cuts < 17 {
            let id = ids[cuts % ids.len()].0.clone();
            readings.push((id, tokio::spawn(reading)));
        }
    }
    assert!(cuts > 10, "{cuts} cuts only");
    for (id, reading) in readings {
        let (body, end) = patience(reading).await.expect("no panic");
        assert_eq!(end, End::Proper);
        assert!(body == whole(&script, &id));
    }
    for (id, client) in &ids {
        wait_end(client, id).await;
        assert_stands(&pair, id, &whole(&script, id)).await;
    }
    assert_eq!(pair.mock.recorder().count(), ids.len());
}
