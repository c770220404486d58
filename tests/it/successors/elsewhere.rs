//! The same where Redis is reached by sentinels, and where it is a cluster; and a failover that loses a tail just before its
//! owner does.

use streamweld_journal_redis::testing::{Cluster, Sentinels, Server, until};
use streamweld_mock::Engine;
use streamweld_tests::{Client, End, blocks, patience, texts, wait_end, wait_seq};

use super::scene::{Begun, PATH, Scene, Sidecar, TEXT, assert_whole, body, entries};

/// From which events on an answer is gone on with.
const COUNTS: [usize; 5] = [1, 5, 9, 13, 20];

/// Answers of two replicas: those of the first go on at the second when it is told to end, and those of the second at a third
/// when it is killed with its engine.
async fn go_on_over(redis: &str) {
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar_at("a", redis).await;
    let second = scene.sidecar_at("b", redis).await;
    let mut handed = Vec::new();
    for count in COUNTS {
        handed.push(first.begin(&scene, count).await);
    }
    first.process.signal("TERM");
    let (status, output) = patience(first.process.ended()).await;
    assert!(status.success(), "{output}");
    assert_moved(&second, &handed, "hand_over").await;
    let mut left = Vec::new();
    for count in COUNTS {
        left.push(second.begin(&scene, count).await);
    }
    let third = scene.sidecar_at("c", redis).await;
    second.die().await;
    assert_moved(&third, &left, "owner_lost").await;
}

/// Each is one answer now, and was moved once.
async fn assert_moved(to: &Sidecar, answers: &[Begun], trigger: &str) {
    for begun in answers {
        patience(assert_whole(&to.client, begun)).await;
        let moves = entries(&to.client, &begun.id, "streamweld.migration").await;
        assert_eq!(moves.len(), 1, "{moves:?}");
        assert_eq!(moves[0]["trigger"], trigger);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_go_on_where_sentinels_watch() {
    let redis = Sentinels::new().await;
    go_on_over(&redis.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_go_on_over_a_cluster() {
    let redis = Cluster::new().await;
    go_on_over(&redis.url()).await;
    // No command has spanned two slots.
    for node in &redis.nodes {
        let errors = node.cli(&["INFO", "errorstats"]).await;
        assert!(!errors.contains("CROSSSLOT"), "{errors}");
    }
}

/// Behind how many events of [`TEXT`] the failover cuts, and how many had been shown.
const STAYS: usize = 9;
const SHOWN: usize = 14;

/// An answer of which the last events are in the primary alone: they have been shown, and the replica is cut off.
async fn begin_unreplicated(
    scene: &Scene,
    first: &Sidecar,
    (primary, replica): (&Server, &Server),
) -> Begun {
    let script = scene.script().gate_after(STAYS, "go");
    first.mock.push_script(script.gate_after(SHOWN, "never"));
    let asked = body().to_string();
    let mut response = first.client.send("POST", PATH, &asked).await;
    let id = response.id();
    let mut shown = response.body.blocks(STAYS).await;
    wait_seq(&first.client, &id, STAYS as u64 + 1).await;
    let log = format!("streamweld:{{{id}}}:log");
    let request = format!("streamweld:{{{id}}}:request");
    until("it is replicated", async || {
        let length = primary.cli(&["XLEN", &log]).await;
        length == replica.cli(&["XLEN", &log]).await
            && replica.cli(&["EXISTS", &request]).await == "1"
    })
    .await;
    // It can ask for no more, and what it has been sent ends here.
    replica.pause();
    primary.cli(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    first.mock.gates().release("go");
    shown.extend(response.body.blocks(SHOWN - STAYS).await);
    assert!(blocks(&shown).iter().all(|block| block.id.is_some()));
    Begun {
        id,
        shown,
        response,
    }
}

/// Whoever has seen nothing of what was lost has one answer; whoever has is told.
async fn assert_recognised(client: &Client, begun: &Begun) {
    let id = &begun.id;
    let state = patience(wait_end(client, id)).await;
    assert_eq!(state["status"], "done", "{state}");
    let (all, end) = client.events(id).await.all().await;
    assert_eq!((end, texts(&all).as_str()), (End::Proper, TEXT));
    let moves = entries(client, id, "streamweld.migration").await;
    assert_eq!(moves[0]["seq"], STAYS as u64 + 2);
    for (at, block) in blocks(&begun.shown).into_iter().enumerate() {
        let cursor = block.id.expect("an id");
        let back = client.with("last-event-id", &cursor).events(id).await;
        if at < STAYS {
            let (rest, end) = back.all().await;
            assert_eq!(end, End::Proper);
            assert_eq!(blocks(&rest), blocks(&all)[at + 1..], "{cursor}");
        } else {
            let lost = (409, "journal_regressed".to_owned());
            assert_eq!(back.error_code().await, lost, "{cursor}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_a_failover_loses_before_a_takeover_is_recognised() {
    let mut redis = Sentinels::new().await;
    let url = redis.url();
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar_at("a", &url).await;
    let second = scene.sidecar_at("b", &url).await;
    let begun = begin_unreplicated(&scene, &first, (&redis.primary, &redis.replica)).await;
    let mut there = second.client.events(&begun.id).await;
    assert_eq!(blocks(&there.body.blocks(SHOWN).await).len(), SHOWN);
    redis.primary.kill();
    first.die().await;
    redis.replica.resume();
    assert_recognised(&second.client, &begun).await;
    // Who was shown what is lost is shown nothing behind it, and no end.
    let (rest, end) = patience(there.body.rest()).await;
    assert_ne!(end, End::Proper);
    for block in blocks(&rest) {
        let form = block.data.expect("data");
        assert!(form.contains("journal_incomplete"), "{form}");
        assert_eq!(block.id, None);
    }
}

/// Who had been replaced has heard of it and writes no more, and the log names it as its writer again.
#[tokio::test(flavor = "multi_thread")]
async fn an_adoption_that_a_failover_loses_leaves_nobody_waiting() {
    let mut redis = Sentinels::new().await;
    let url = redis.url();
    let scene = Scene::new(Engine::Vllm).await;
    let first = scene.sidecar_at("a", &url).await;
    let second = scene.sidecar_at("b", &url).await;
    second
        .mock
        .push_script(scene.script().gate_after(6, "held"));
    let mut begun = first.begin(&scene, STAYS).await;
    let log = format!("streamweld:{{{}}}:log", begun.id);
    until("it is replicated", async || {
        redis.primary.cli(&["XLEN", &log]).await == redis.replica.cli(&["XLEN", &log]).await
    })
    .await;
    first.process.signal("STOP");
    redis.replica.pause();
    redis
        .primary
        .cli(&["CLIENT", "KILL", "TYPE", "replica"])
        .await;
    let mut there = second.client.events(&begun.id).await;
    patience(there.body.blocks(STAYS + 3)).await;
    first.process.signal("CONT");
    // It has heard of the other: it shows what that has written.
    let lost = patience(begun.response.body.blocks(3)).await;
    assert!(blocks(&lost).iter().all(|block| block.id.is_some()));
    redis.primary.kill();
    redis.replica.resume();
    let state = patience(wait_end(&first.client, &begun.id)).await;
    assert_eq!(state["status"], "done", "{state}");
    assert_whole(&first.client, &begun).await;
    // The other learns of it as soon as it has something to append.
    second.mock.gates().release("held");
    patience(wait_end(&second.client, &begun.id)).await;
    assert_whole(&second.client, &begun).await;
    let moves = entries(&first.client, &begun.id, "streamweld.migration").await;
    let [moved] = &moves[..] else {
        panic!("what stands is of one adoption: {moves:?}")
    };
    assert_eq!(moved["to"], "a", "{moved}");
    for block in blocks(&lost) {
        let cursor = block.id.expect("an id");
        let back = first.client.with("last-event-id", &cursor);
        let regressed = (409, "journal_regressed".to_owned());
        assert_eq!(back.events(&begun.id).await.error_code().await, regressed);
    }
}
