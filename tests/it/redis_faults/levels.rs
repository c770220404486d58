//! Levels of durability: what readers are given while the replicas of Redis are well, stopped, killed and promoted.

use std::time::Duration;

use streamweld_journal_redis::testing::{Server, Setup};
use streamweld_mock::Script;
use streamweld_tests::{
    Client, End, Pair, PairSetup, metric, patience, state, wait_end, wait_seq, wait_state,
};
use tokio::time::sleep;

use super::{
    AT_ONCE, NEVER, Reading, Told, assert_all, assert_no_ids, assert_stands, in_three, patient,
    setup, wait_metric,
};

/// Replicas over a Redis that has so many replicas of its own.
async fn start(setup: PairSetup, replicas: usize) -> (Pair, Vec<Server>) {
    let level = "replicated:1".parse().expect("a level");
    let change = move |redis: &mut streamweld_journal_redis::Config| {
        redis.level = level;
        redis.look = Duration::from_millis(100);
        // A replica on a busy machine is given the time that the head of an answer has.
        redis.timing.answer = Duration::from_millis(500);
    };
    let mut pair = setup.redis(change).start().await;
    let mut all = Vec::new();
    for _ in 0..replicas {
        let replica = Setup::new().replica_of(pair.redis()).start().await;
        replica.wait_replicating().await;
        all.push(replica);
    }
    (pair, all)
}

const DURABLE: Option<&str> = Some("durable; level=replicated:1");

/// Waits until a check finds nothing.
async fn is_well(admin: &Client, check: &str) {
    let line = format!(r#"streamweld_journal_check{{check="{check}"}}"#);
    let well = async {
        while metric(admin, &line).await != 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    patience(well).await;
}

/// A replica that breaks and is mended, in mid-answer.
async fn check(
    break_it: impl AsyncFnOnce(&mut Pair, &mut Server),
    mend: impl AsyncFnOnce(&mut Pair, &mut Server) -> Option<Server>,
) {
    let script = in_three(20);
    let (mut pair, mut replicas) = start(patient(setup(script.clone()), AT_ONCE), 1).await;
    let response = pair.one.client.durable_chat().await;
    let mut told = Told::of(&pair, &script, response, 20).await;
    let (one, other) = (pair.one.client.clone(), pair.other.client.clone());
    wait_seq(&one, &told.id, 21).await;
    break_it(&mut pair, &mut replicas[0]).await;
    pair.mock.gates().release("go");
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    let degraded = wait_state(&one, &told.id, |it| it["durability"] == "degraded").await;
    assert_eq!(degraded["last_seq"], 21);
    wait_metric(
        &pair.one.admin,
        r#"streamweld_journal_check{check="level_missed"}"#,
        1,
    )
    .await;
    // Whoever comes elsewhere is shown what surely stands, and no more.
    let late = Reading::begin(other.events(&told.id).await, 20).await;
    assert_eq!(state(&other, &told.id).await["last_seq"], 21);
    // And the model can be asked.
    pair.mock.push_script(Script::tokens(9));
    let response = one.chat().await;
    assert_eq!(response.header("x-streamweld-durability"), Some("degraded"));
    assert_eq!(response.all().await.1, End::Proper);

    let _another = mend(&mut pair, &mut replicas[0]).await;
    wait_state(&one, &told.id, |it| {
        it["durability"] == "durable" && it["last_seq"] == 41
    })
    .await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
    }
    for reading in [told.third, late] {
        assert!(reading.rest().await == (told.whole.clone(), End::Proper));
    }
    wait_end(&one, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    for client in [&pair.one.client, &pair.other.client] {
        client.durable_chat().await.leave().await;
    }
    is_well(&pair.one.admin, "level_missed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_replica_costs_ids_and_they_go_on_when_it_does() {
    check(
        async |_, replica| replica.pause(),
        async |_, replica| {
            replica.resume();
            None
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replica_costs_ids_until_there_is_another() {
    check(
        async |_, replica| replica.kill(),
        async |pair, _| Some(Setup::new().replica_of(pair.redis()).start().await),
    )
    .await;
}

/// The primary is killed in mid-answer, and its replica becomes one: at the level `replicated:1` it has everything that
/// anybody was shown under an id.
#[tokio::test(flavor = "multi_thread")]
async fn all_that_was_shown_under_an_id_outlives_the_primary() {
    const ANSWERS: usize = 10;
    let script = Script::tokens(300)
        .pace(Duration::from_millis(2))
        .id("fixed");
    let (mut pair, replicas) = start(patient(setup(script), NEVER), 1).await;
    let client = pair.one.client.clone();
    let mut readings = Vec::new();
    for _ in 0..ANSWERS {
        let response = client.durable_chat().await;
        let id = response.id();
        readings.push((id, Reading::begin(response, 20).await));
    }
    pair.redis().kill();
    let replica = &replicas[0];
    replica.cli(&["REPLICAOF", "NO", "ONE"]).await;
    for (id, reading) in readings {
        let stands = replica
            .cli(&["XREVRANGE", &super::key(&id, "log"), "+", "-", "COUNT", "1"])
            .await;
        let newest = stands.lines().next().unwrap_or_default();
        let last: u64 = newest
            .split('-')
            .next_back()
            .and_then(|seq| seq.parse().ok())
            .expect("the log is there");
        // Nothing is shown under an id before it counts here.
        let shown = state(&client, &id).await["last_seq"].as_u64();
        let shown = shown.expect("a number");
        drop(reading);
        assert!(shown >= 21 && last >= shown, "{last} of {shown} stand");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_states_and_metrics_name_the_level() {
    let script = Script::tokens(9).id("fixed");
    let (pair, _replicas) = start(setup(script), 1).await;
    let response = pair.one.client.durable_chat().await;
    let id = response.id();
    response.all().await;
    let again = pair.other.client.events(&id).await;
    assert_eq!(again.header("x-streamweld-durability"), DURABLE);
    for replica in [&pair.one, &pair.other] {
        assert_eq!(state(&replica.client, &id).await["level"], "replicated:1");
        let info = r#"streamweld_journal_info{journal="redis",level="replicated:1"}"#;
        assert_eq!(metric(&replica.admin, info).await, 1);
        // Of the server of this story.
        let persistence = r#"streamweld_journal_check{check="persistence"}"#;
        wait_metric(&replica.admin, persistence, 1).await;
        is_well(&replica.admin, "replicas_missing").await;
        assert_eq!(replica.admin.get("/readyz").await.status, 200);
    }
}
