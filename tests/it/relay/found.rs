//! Readers that come while Redis is away, to a replica that has never heard of what they read.

use streamweld_journal_redis::testing::until;
use streamweld_mock::Script;
use streamweld_tests::{End, blocks, ends, metric, wait_seq};

use super::scene::{Scene, assert_shown};

fn gated() -> Script {
    Script::tokens(30)
        .id("fixed")
        .gate_after(10, "go")
        .gate_after(20, "end")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_comes_back_elsewhere_reads_on() {
    let mut scene = Scene::new(gated()).await;
    let [one, other, another] = scene.replicas().await;
    let mut here = one.client.durable_chat().await;
    let id = here.id();
    here.body.blocks(10).await;
    wait_seq(&one.client, &id, 11).await;
    let whole = scene.whole(&id);
    let at = ends(&whole);
    scene.redis.kill();
    // From the middle, from where it stands, and from the start.
    let mut readers = Vec::new();
    for (client, from) in [(&other, 4), (&other, 10), (&another, 10), (&another, 0)] {
        let cursor = format!("{id}:{}", from + 1);
        let resumed = client.client.with("last-event-id", &cursor);
        let reader = match from {
            0 => client.client.events(&id).await,
            _ => resumed.events(&id).await,
        };
        assert_eq!(reader.status, 200, "from {from}");
        readers.push((from, reader));
    }
    for gate in ["go", "end"] {
        scene.mock.gates().release(gate);
    }
    for (from, reader) in readers {
        let begin = if from == 0 { 0 } else { at[from - 1] };
        let (rest, end) = reader.all().await;
        assert_eq!(end, End::Proper);
        assert_eq!(rest[..at[9] - begin], whole[begin..at[9]], "under ids");
        assert_shown(&[&whole[..begin], &rest].concat(), &whole);
    }
    drop(here);
}

/// Whoever may not read is told what is told of an id that nobody knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_told_nothing() {
    let mut scene = Scene::new(gated()).await;
    let [one, other] = scene.replicas().await;
    let owner = one.client.with("authorization", "Bearer secret");
    let mut here = owner.durable_chat().await;
    let id = here.id();
    here.body.blocks(10).await;
    wait_seq(&owner, &id, 11).await;
    scene.redis.kill();
    let mut nobody = id.clone();
    nobody.replace_range(25.., if id.ends_with('0') { "1" } else { "0" });
    let mut told = Vec::new();
    for asked in [&id, &nobody] {
        let refused = other.client.events(asked).await;
        told.push(refused.error_code().await);
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0].1, "journal_unavailable");
    // Who may read does.
    let theirs = other.client.with("authorization", "Bearer secret");
    let mut there = theirs.events(&id).await;
    assert_eq!(there.status, 200);
    let shown = there.body.blocks(10).await;
    assert_eq!(blocks(&shown).len(), 10);
    // And strangers are told the same when it is followed already.
    let again = other.client.events(&id).await;
    assert_eq!(again.error_code().await, told[0]);
}

/// Else the answer would be an orphan as soon as its first reader has left.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_the_owner_counts_as_its_reader() {
    let mut scene = Scene::new(gated()).await;
    let cancels = scene.replica_with(&["--orphan-policy=cancel"]).await;
    let other = scene.replica().await;
    scene.acquainted(2).await;
    let mut here = cancels.client.durable_chat().await;
    let id = here.id();
    here.body.blocks(10).await;
    wait_seq(&cancels.client, &id, 11).await;
    scene.redis.kill();
    let there = other.client.events(&id).await;
    assert_eq!(there.status, 200);
    until("it is read there", async || {
        metric(&cancels.admin, "streamweld_relay_told").await == 1
    })
    .await;
    here.leave().await;
    for gate in ["go", "end"] {
        scene.mock.gates().release(gate);
    }
    let (shown, end) = there.all().await;
    assert_eq!(end, End::Proper);
    assert_shown(&shown, &scene.whole(&id));
}
