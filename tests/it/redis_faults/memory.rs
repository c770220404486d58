//! A server without room, that evicts nothing.

use streamweld_mock::Script;
use streamweld_tests::{End, blocks, events, wait_end, wait_seq, wait_state};

use super::{
    NEVER, Reading, Told, assert_no_ids, assert_stands, degraded, failures, in_three, patient,
    setup, wait_metric, whole,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_without_room_takes_no_new_log_and_heals_the_running_ones() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    // One that has ended before.
    pair.mock.push_script(Script::tokens(9).id("fixed"));
    let before = one.chat().await;
    let (before, all) = (before.id(), before.all().await);
    wait_end(&one, &before).await;

    // One that nobody reads elsewhere yet.
    let gated = Script::tokens(40).id("fixed").gate_after(20, "b");
    pair.mock.push_script(gated.clone());
    let quiet = Reading::begin(one.chat().await, 20).await;
    let quiet_id = quiet.response.id();
    wait_seq(&one, &quiet_id, 21).await;

    let mut told = Told::begin(&pair, &script, 20).await;
    pair.redis().cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    pair.mock.gates().release("go");
    // That there is no room is known at once.
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    wait_metric(&pair.one.admin, &failures("full"), 1).await;
    let state = wait_state(&one, &told.id, |it| it["durability"] == "degraded").await;
    assert_eq!(state["last_seq"], 21);
    // What stands can be read.
    let late = Reading::begin(other.events(&told.id).await, 20).await;
    let mut elsewhere = Reading::begin(other.events(&quiet_id).await, 20).await;
    assert!(other.events(&before).await.all().await == all);
    // And the model can be asked.
    for client in [&one, &other, &one.with("idempotency-key", "k")] {
        pair.mock.push_script(Script::tokens(9).id("fixed"));
        let (body, end) = degraded(client.chat().await).await;
        assert_eq!(end, End::Proper);
        assert_no_ids(&blocks(&body));
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }

    pair.redis().cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    wait_state(&one, &told.id, |it| {
        it["durability"] == "durable" && it["last_seq"] == 41
    })
    .await;
    // The owner has heard of who came meanwhile.
    let quiet_whole = whole(&gated, &quiet_id);
    pair.mock.gates().release("b");
    elsewhere.more(10).await;
    for reading in [quiet, elsewhere] {
        assert!(reading.rest().await == (quiet_whole.clone(), End::Proper));
    }
    pair.mock.gates().release("end");
    let (id_told, whole_told) = told.ends_healed(late).await;
    wait_end(&one, &id_told).await;
    assert_stands(&pair, &id_told, &whole_told).await;
    // New ones are durable again.
    let after = one.with("idempotency-key", "k").chat().await;
    let durability = after.header("x-streamweld-durability");
    assert_eq!(durability, Some("durable; level=async"));
    let id = after.id();
    assert!(after.all().await.0 == whole(&script, &id));
}
