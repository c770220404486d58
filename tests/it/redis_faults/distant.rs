//! A server that is far away: each of its answers takes 50 ms more.

use std::sync::Arc;
use std::time::Duration;

use streamweld_generation::HealBounds;
use streamweld_journal_redis::testing::Server;
use streamweld_journal_redis::{Config, RedisJournal, Target};
use streamweld_mock::Script;
use streamweld_tests::{
    CHAT, End, Halt, Harness, Response, Setup, Tap, blocks, is_command, patience, wait_end,
};
use tokio::time::Instant;

use super::{PATH, whole};

const FAR: Duration = Duration::from_millis(50);

/// A server in front of a mock, with such a journal that knows the scripts by now.
async fn start(script: Script, redis: &Server) -> (Harness, Tap) {
    let tap = Tap::start(&redis.address(), FAR).await;
    let target = Target::parse(&tap.url()).expect("the URL of a relay");
    let journal = RedisJournal::start(target, Config::default());
    let connected = journal.connected(Duration::from_secs(10)).await;
    connected.expect("the server answers");
    let mut heal = HealBounds::default();
    // Stories are told while every core is busy.
    heal.open = Duration::from_secs(3);
    let setup = Setup::new(script).journal(Arc::new(journal)).heal(heal);
    let harness = setup.start().await;
    harness.mock.push_script(Script::tokens(1));
    let response = harness.client.chat().await;
    let id = response.id();
    response.all().await;
    wait_end(&harness.client, &id).await;
    (harness, tap)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_comes_later_than_the_opening_waits_for_nothing() {
    let redis = Server::new().await;
    let (harness, tap) = start(Script::tokens(3).head_gate("head"), &redis).await;
    // The opening is the first script that names the log. Behind its answer nothing passes any more.
    tap.halt(Halt::Answered, |it| {
        is_command(it, "EVALSHA") && it.windows(5).any(|five| five == b":log\r")
    });
    let request = harness.client.request("POST", PATH, CHAT);
    let stream = harness.client.begin(&request).await;
    tap.halted().await;
    harness.mock.gates().release("head");
    let response = patience(Response::read(stream)).await.expect("a head");
    assert_eq!(response.status, 200);
    assert!(response.is_durable());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_event_costs_one_exchange() {
    let redis = Server::new().await;
    let script = Script::tokens(3).id("fixed").step_gate("one");
    let (harness, tap) = start(script.clone(), &redis).await;
    let mut response = harness.client.chat().await;
    let expected = whole(&script, &response.id());
    // One append and its answer, and behind that nothing.
    tap.halt(Halt::Answered, |it| is_command(it, "XADD"));
    harness.mock.gates().step("one");
    tap.halted().await;
    let first = response.body.blocks(1).await;
    assert!(expected.starts_with(&first));
    // The next one waits for its own, and is shown without an id when that does not come.
    harness.mock.gates().step("one");
    let second = blocks(&response.body.blocks(1).await);
    assert_eq!(second[0].id, None);
    assert_eq!(second[0].data, blocks(&expected)[1].data);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_meanwhile_goes_together() {
    let redis = Server::new().await;
    for pace in [Duration::ZERO, Duration::from_millis(3)] {
        let script = Script::tokens(400).id("fixed").pace(pace);
        let (harness, _tap) = start(script.clone(), &redis).await;
        let before = appends(&redis).await;
        let began = Instant::now();
        let response = harness.client.chat().await;
        let id = response.id();
        assert!(response.all().await == (whole(&script, &id), End::Proper));
        let took = began.elapsed();
        // Those of opening and end stand in scripts.
        let appends = appends(&redis).await - before - 2;
        // One is under way at a time, and each takes as long as an answer does.
        let most = took.as_millis() / FAR.as_millis() + 1;
        assert!(appends <= most, "{appends} appends in {took:?}");
    }
}

/// How many entries were appended so far, also by scripts.
async fn appends(redis: &Server) -> u128 {
    let stats = redis.cli(&["INFO", "commandstats"]).await;
    let calls = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_xadd:calls=")?.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
}
