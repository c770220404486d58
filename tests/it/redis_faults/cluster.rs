//! A Redis Cluster below two replicas: slots that move under a running answer, and nodes that go.

use std::time::Duration;

use streamweld_journal_redis::testing::Cluster;
use streamweld_mock::Script;
use streamweld_tests::{
    End, Over, Pair, PairSetup, blocks, events, metric, patience, wait_end, wait_seq, wait_state,
};
use tokio::time::{sleep, timeout};

use super::{
    AT_ONCE, NEVER, Reading, Told, assert_all, assert_no_ids, assert_stands, failures, in_three,
    patient, setup_over, wait_metric, whole, with_a_file,
};

fn setup(script: Script) -> PairSetup {
    setup_over(Over::Cluster, script)
}

/// Moves the slot of a log to the node behind the one that has it.
async fn move_on(cluster: &Cluster, log: &str) {
    let to = (cluster.owner(log).await + 1) % cluster.nodes.len();
    cluster.move_slot(log, to).await;
}

/// No command has spanned two slots, on any node that is there.
async fn assert_no_crossing(cluster: &Cluster) {
    for node in cluster.nodes.iter().chain(&cluster.replicas) {
        if node.is_running() {
            let errors = node.cli(&["INFO", "errorstats"]).await;
            assert!(!errors.contains("CROSSSLOT"), "{errors}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_slot_moves_is_shown_to_the_byte() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let log = told.key("log");
    move_on(pair.cluster(), &log).await;
    pair.mock.gates().release("go");
    for reading in [&mut told.first, &mut told.second, &mut told.third] {
        reading.more(20).await;
        assert!(told.whole.starts_with(&reading.held));
    }
    move_on(pair.cluster(), &log).await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second, told.third] {
        assert!(reading.rest().await == (told.whole.clone(), End::Proper));
    }
    wait_end(&pair.one.client, &told.id).await;
    move_on(pair.cluster(), &log).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    assert_no_crossing(pair.cluster()).await;
    // It was not even late.
    assert_eq!(
        metric(&pair.one.admin, "streamweld_unsequenced_suffixes_total").await,
        0
    );
}

/// Round and round, for as long as the answer runs.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_slot_never_stays_is_shown_to_the_byte() {
    let script = Script::tokens(600)
        .id("fixed")
        .pace(Duration::from_millis(5));
    let mut pair = patient(setup(script.clone()), NEVER).start().await;
    let told = Told::begin(&pair, &script, 20).await;
    let (log, expected) = (told.key("log"), told.whole.clone());
    let reading = async {
        let all = tokio::join!(told.first.rest(), told.second.rest(), told.third.rest());
        [all.0, all.1, all.2]
    };
    let mut reading = std::pin::pin!(reading);
    let mut moves = 0;
    let given = patience(async {
        loop {
            move_on(pair.cluster(), &log).await;
            moves += 1;
            if let Ok(given) = timeout(Duration::from_millis(100), &mut reading).await {
                return given;
            }
        }
    })
    .await;
    assert!(moves > 1, "{moves}");
    for given in given {
        assert!(
            given == (expected.clone(), End::Proper),
            "after {moves} moves"
        );
    }
    wait_end(&pair.one.client, &told.id).await;
    assert_stands(&pair, &told.id, &expected).await;
    assert_no_crossing(pair.cluster()).await;
}

/// A move that stays half done: the log waits, and nobody is shown anything wrong.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_slot_is_long_on_its_way_heals() {
    let script = in_three(20);
    let mut pair = patient(setup(script.clone()), AT_ONCE).start().await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let log = told.key("log");
    let cluster = pair.cluster();
    let to = (cluster.owner(&log).await + 1) % 3;
    let way = cluster.begin_move(&log, to).await;
    cluster.move_keys(&way).await;
    pair.mock.gates().release("go");
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    pair.cluster().end_move(&way).await;
    heals(pair, told, 20).await;
}

/// What was shown without ids is in the log in the end, and the follower sees it under its ids.
async fn heals(mut pair: Pair, mut told: Told, events: usize) {
    told.third.more(events).await;
    assert!(told.whole.starts_with(&told.third.held));
    let last = events as u64 * 2 + 1;
    wait_state(&pair.one.client, &told.id, |it| {
        it["durability"] == "durable" && it["last_seq"] == last
    })
    .await;
    pair.mock.gates().release("end");
    for reading in [told.first, told.second] {
        let (body, end) = reading.rest().await;
        assert_eq!(end, End::Proper);
        assert_all(&body, &told.whole);
    }
    assert!(told.third.rest().await == (told.whole.clone(), End::Proper));
    wait_end(&pair.other.client, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    assert_no_crossing(pair.cluster()).await;
}

/// One node is gone, the log's or another one: without a replica of it no slot is served by any.
async fn lose(behind: usize) {
    let script = in_three(20);
    let setup = patient(setup(script.clone()), AT_ONCE).server(with_a_file());
    let mut pair = setup.start().await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let log = told.key("log");
    let cluster = pair.cluster();
    let lost = (cluster.owner(&log).await + behind) % 3;
    cluster.notice_soon().await;
    cluster.nodes[lost].kill();
    let down = async {
        for node in (0..3).filter(|node| *node != lost) {
            let info = async || cluster.nodes[node].cli(&["CLUSTER", "INFO"]).await;
            while !info().await.contains("cluster_state:fail") {
                sleep(Duration::from_millis(5)).await;
            }
        }
    };
    patience(down).await;
    pair.mock.gates().release("go");
    assert_no_ids(&told.first.more(20).await);
    assert_no_ids(&told.second.more(20).await);
    let client = &pair.one.client;
    wait_state(client, &told.id, |it| it["durability"] == "degraded").await;
    wait_metric(&pair.one.admin, &failures("unknown"), 1).await;
    pair.cluster().nodes[lost].restart().await;
    heals(pair, told, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_degrades_an_answer_and_its_return_heals_it() {
    lose(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_lost_node_degrades_an_answer_too() {
    lose(1).await;
}

/// The node of the log dies in mid-answer. What its replica does not have is appended again by the owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_replica_takes_over_costs_nobody_an_event() {
    let script = in_three(20);
    let setup = patient(setup_over(Over::ClusterWithReplicas, script.clone()), NEVER);
    let mut pair = setup.start().await;
    let mut told = Told::begin(&pair, &script, 20).await;
    let log = told.key("log");
    let cluster = pair.cluster();
    let lost = cluster.owner(&log).await;
    cluster.notice_soon().await;
    // The log is in both.
    assert_eq!(cluster.nodes[lost].cli(&["WAIT", "1", "5000"]).await, "1");
    pair.mock.gates().release("go");
    told.third.more(3).await;
    pair.cluster().nodes[lost].kill();
    pair.mock.gates().release("end");
    for reading in [told.first, told.second, told.third] {
        let (body, end) = reading.rest().await;
        assert!(body == told.whole, "to the byte");
        assert_eq!(end, End::Proper);
    }
    wait_end(&pair.one.client, &told.id).await;
    assert_stands(&pair, &told.id, &told.whole).await;
    assert_no_crossing(pair.cluster()).await;
    // New answers are durable as before.
    pair.mock.set_script(Script::tokens(20).id("fixed"));
    for _ in 0..9 {
        let response = pair.other.client.chat().await;
        assert!(response.is_durable());
        assert_eq!(response.all().await.1, End::Proper);
    }
}

/// An operator's or a user's word crosses nodes as well.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_stopped_at_the_other_replica() {
    let script = in_three(20);
    let mut pair = setup(script.clone()).start().await;
    for _ in 0..5 {
        let first = Reading::begin(pair.one.client.chat().await, 20).await;
        let id = first.response.id();
        wait_seq(&pair.one.client, &id, 21).await;
        let stopped = pair
            .other
            .client
            .send("POST", &format!("/v1/streams/{id}/stop"), "")
            .await;
        assert_eq!(stopped.status, 200);
        let (body, end) = first.rest().await;
        assert_eq!(end, End::Proper);
        assert_eq!(blocks(&body)[..20], blocks(&whole(&script, &id))[..20]);
        assert_eq!(events(&body).last().map(String::as_str), Some("[DONE]"));
    }
    assert_no_crossing(pair.cluster()).await;
}
