//! A server whose disk is full. What it does then depends on how it keeps its file.

use std::time::Duration;

use streamweld_journal_redis::testing::{Fsync, Server, Setup};
use streamweld_mock::Script;
use streamweld_tests::{End, Pair, blocks, events, wait_end, wait_state};

use super::{
    AT_ONCE, NEVER, Reading, Told, assert_no_ids, assert_stands, degraded, failures, in_three,
    patient, setup, wait_metric, whole,
};

/// Room for a few KiB of somebody else beside what these stories write.
const ROOM: u32 = 64;

/// Writes until it says that it cannot.
async fn fill(redis: &Server) {
    let some = "x".repeat(4 << 10);
    while redis.cli(&["SET", "somebody:else", &some]).await == "OK" {}
    // It says so to a sign of life as well.
    let alive = redis.cli(&["PING"]).await;
    assert!(alive.starts_with("MISCONF"), "{alive}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_takes_no_new_log_replays_and_heals_the_running_ones() {
    let script = in_three(20);
    let server = Setup::new().append_only(Fsync::EverySecond).room(ROOM);
    let setup = patient(setup(script.clone()), AT_ONCE).server(server);
    let mut pair = setup.start().await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    // One that has ended before.
    pair.mock.push_script(Script::tokens(9).id("fixed"));
    let before = one.chat().await;
    let (before, all) = (before.id(), before.all().await);
    wait_end(&one, &before).await;

    let mut told = Told::begin(&pair, &script, 20).await;
    fill(pair.redis()).await;
    pair.mock.gates().release("go");
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    wait_metric(&pair.one.admin, &failures("unknown"), 1).await;
    let state = wait_state(&one, &told.id, |it| it["durability"] == "degraded").await;
    assert_eq!(state["last_seq"], 21);

    // What stands can be read, also over connections that are made only now.
    let late = Reading::begin(other.events(&told.id).await, 20).await;
    for kind in ["normal", "pubsub"] {
        pair.redis().cli(&["CLIENT", "KILL", "TYPE", kind]).await;
    }
    assert!(read_again(&pair, &before).await == all);
    // And the model can be asked.
    for client in [&one, &other, &one.with("idempotency-key", "k")] {
        pair.mock.push_script(Script::tokens(9).id("fixed"));
        let (body, end) = degraded(client.chat().await).await;
        assert_eq!(end, End::Proper);
        assert_no_ids(&blocks(&body));
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }

    pair.redis().make_room();
    wait_state(&one, &told.id, |it| {
        it["durability"] == "durable" && it["last_seq"] == 41
    })
    .await;
    pair.mock.gates().release("end");
    let (id_told, whole_told) = told.ends_healed(late).await;
    wait_end(&one, &id_told).await;
    assert_stands(&pair, &id_told, &whole_told).await;
    // New ones are durable again, and all of it has reached the file.
    let after = one.with("idempotency-key", "k").chat().await;
    assert!(after.is_durable());
    let after_id = after.id();
    let expected = whole(&script, &after_id);
    assert!(after.all().await.0 == expected);
    pair.redis().restart().await;
    assert!(read_again(&pair, &after_id).await == (expected, End::Proper));
    assert_stands(&pair, &id_told, &whole_told).await;
}

/// Reads a generation at the replica that did not write it, once it has a connection.
async fn read_again(pair: &Pair, id: &str) -> (Vec<u8>, End) {
    let read = async {
        loop {
            let response = pair.other.client.events(id).await;
            if response.status == 200 {
                return response.all().await;
            }
        }
    };
    streamweld_tests::patience(read).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_ends_because_its_disk_is_full_loses_nothing() {
    // Far more than there is room for.
    let script = Script::tokens(600)
        .id("fixed")
        .pace(Duration::from_millis(1));
    let server = Setup::new().append_only(Fsync::Always).room(ROOM);
    let setup = patient(setup(script.clone()), NEVER).server(server);
    let mut pair = setup.start().await;
    let told = Told::begin(&pair, &script, 20).await;
    let (id, whole) = (told.id, told.whole);
    let readings =
        [told.first, told.second, told.third].map(|reading| tokio::spawn(reading.rest()));
    pair.redis().wait_ended().await;
    wait_metric(&pair.one.admin, &failures("unknown"), 1).await;
    // In the same place it would only end again.
    pair.redis().make_room();
    pair.redis().restart().await;
    for reading in readings {
        let reading = streamweld_tests::patience(reading).await;
        assert!(reading.expect("no panic") == (whole.clone(), End::Proper));
    }
    wait_end(&pair.other.client, &id).await;
    assert_stands(&pair, &id, &whole).await;
    assert_eq!(pair.mock.recorder().count(), 1);
}
