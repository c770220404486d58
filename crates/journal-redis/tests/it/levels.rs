//! Levels of durability: what is committed, shown and answered while the replicas of Redis are well, and while not.

use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Adoption, Epoch, Found, Journal, Level, Outcome, Refusal, Seq, Tail, Unreachable, Window,
};
use streamweld_journal_redis::testing::{Fsync, Server, Setup, until};
use streamweld_journal_redis::{Config, RedisJournal};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connect::{config, connect, connect_with};
use crate::follow::{find, next_order, shows};
use crate::writer::Writer;

fn at(level: &str) -> Config {
    Config {
        level: level.parse().unwrap(),
        ..config()
    }
}

/// A server with a replica that goes along.
async fn replicated() -> (Server, Server) {
    let primary = Server::new().await;
    let replica = Setup::new().replica_of(&primary).start().await;
    replica.wait_replicating().await;
    (primary, replica)
}

/// Appends until it stands, as the owner of a generation does: what is unknown is read back.
async fn append(writer: &Writer<'_>) {
    let appended = async {
        while writer.append().await != Outcome::Yes {
            if let Ok(Tail::Last { last, .. }) = writer.journal.tail(writer.id()).await {
                writer.window.commit(last);
            }
            if writer.window.committed() == writer.window.received() {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = timeout(Duration::from_secs(10), appended).await;
    in_time.expect("it is appended");
}

async fn finish(writer: &Writer<'_>) {
    until("it is ended", async || match writer.finish().await {
        Outcome::Yes | Outcome::No(Refusal::Ended) => true,
        Outcome::No(refusal) => panic!("{refusal}"),
        Outcome::Unknown => matches!(
            writer.journal.tail(writer.id()).await,
            Ok(Tail::Last { terminal: true, .. })
        ),
    })
    .await;
}

async fn opened(journal: &RedisJournal) -> Writer<'_> {
    loop {
        let writer = Writer::unopened(journal);
        match writer.open().await {
            Outcome::Yes => {
                writer.window.commit(Seq::FIRST);
                return writer;
            }
            Outcome::Unknown => journal.remove(writer.id()).await,
            Outcome::No(refusal) => panic!("{refusal}"),
        }
    }
}

fn committed(window: &Window) -> u64 {
    window.committed().get()
}

#[tokio::test]
async fn what_a_replica_does_not_have_is_not_committed() {
    let (primary, replica) = replicated().await;
    let journal = connect_with(&primary, at("replicated:1")).await;
    assert_eq!(journal.level().unwrap().to_string(), "replicated:1");
    let writer = opened(&journal).await;
    writer.stage("a");
    append(&writer).await;

    replica.pause();
    writer.stage("b");
    assert_eq!(writer.append().await, Outcome::Unknown);
    // It is there, and does not stand.
    assert_eq!(primary.cli(&["XLEN", &writer.log()]).await, "3");
    for _ in 0..3 {
        assert_eq!(journal.tail(writer.id()).await, Err(Unreachable));
        assert_eq!(writer.append().await, Outcome::Unknown);
    }
    assert_eq!(primary.cli(&["XLEN", &writer.log()]).await, "3");
    // Nor does anything that begins or ends now.
    assert_eq!(Writer::unopened(&journal).open().await, Outcome::Unknown);
    assert!(wrong(&journal).contains(&"level_missed"));

    replica.resume();
    writer.stands(3, false).await;
    writer.window.commit(Seq::new(3));
    writer.stage("c");
    append(&writer).await;
    writer.stage_terminal();
    finish(&writer).await;
    until("nothing is missed any more", async || {
        !wrong(&journal).contains(&"level_missed")
    })
    .await;
}

fn wrong(journal: &RedisJournal) -> Vec<&'static str> {
    let checks = journal.checks().into_iter();
    checks.filter(|it| it.is_wrong).map(|it| it.name).collect()
}

#[tokio::test]
async fn a_replica_that_was_killed_is_missed_until_there_is_another() {
    let (primary, mut replica) = replicated().await;
    let journal = connect_with(&primary, at("replicated:1")).await;
    let writer = opened(&journal).await;
    replica.kill();
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    assert_eq!(journal.tail(writer.id()).await, Err(Unreachable));
    let _another = Setup::new().replica_of(&primary).start().await;
    writer.stands(2, false).await;
}

#[tokio::test]
async fn two_replicas_are_more_than_one() {
    let (primary, _one) = replicated().await;
    let one = connect_with(&primary, at("replicated:1")).await;
    let two = connect_with(&primary, at("replicated:2")).await;
    opened(&one).await;
    assert_eq!(Writer::unopened(&two).open().await, Outcome::Unknown);
    let another = Setup::new().replica_of(&primary).start().await;
    another.wait_replicating().await;
    opened(&two).await;
}

#[tokio::test]
async fn an_end_and_a_change_of_writer_wait_as_well() {
    let (primary, replica) = replicated().await;
    let here = connect_with(&primary, at("replicated:1")).await;
    let there = connect_with(&primary, at("replicated:1")).await;
    let (ended, adopted) = (opened(&here).await, opened(&here).await);
    ended.stage_terminal();
    replica.pause();
    assert_eq!(ended.finish().await, Outcome::Unknown);
    assert_eq!(here.tail(ended.id()).await, Err(Unreachable));
    let (epoch, now) = (Epoch::new(2).unwrap(), SystemTime::now());
    let outcome = there
        .adopt(
            adopted.id(),
            Adoption::new(Epoch::FIRST, Seq::FIRST, epoch),
            now,
        )
        .await;
    assert_eq!(outcome, Outcome::Unknown);
    // A reader of the end would be shown what may be lost.
    assert!(there.find(ended.id(), now).await.is_err());

    replica.resume();
    ended.stands(2, true).await;
    // One has its end, and of the other it was told that it has lost it.
    until("it writes neither", async || here.usage().live == 0).await;
    until("the other one writes", async || {
        matches!(there.tail(adopted.id()).await, Ok(Tail::Last { epoch: of, .. }) if of == epoch)
    })
    .await;
    until("it is found", async || {
        matches!(there.find(ended.id(), now).await, Ok(Found::Here { .. }))
    })
    .await;
    // Once it is known to be there, nobody asks a replica for it.
    let sure = async || primary.cli(&["HGET", &ended.meta(), "sure"]).await;
    until("it is known", async || sure().await == "1").await;
    replica.pause();
    let late = connect_with(&primary, at("replicated:1")).await;
    let Ok(Found::Here { window, .. }) = late.find(ended.id(), now).await else {
        panic!("it is there")
    };
    assert!(window.terminal().is_some());
}

#[tokio::test]
async fn followers_are_not_shown_what_may_be_lost() {
    let (primary, replica) = replicated().await;
    let here = connect_with(&primary, at("replicated:1")).await;
    let there = connect_with(&primary, at("replicated:1")).await;
    let writer = opened(&here).await;
    writer.stage("a");
    append(&writer).await;
    let (window, _follow) = find(&there, writer.id()).await;
    next_order(&here).await;
    shows(&window, 2).await;
    replica.pause();
    writer.stage("b");
    assert_eq!(writer.append().await, Outcome::Unknown);
    // One that comes now is shown what surely stands.
    let late = connect_with(&primary, at("replicated:1")).await;
    let (late_window, _late) = find(&late, writer.id()).await;
    assert_eq!((committed(&late_window), committed(&window)), (2, 2));
    assert_eq!(primary.cli(&["XLEN", &writer.log()]).await, "3");
    replica.resume();
    writer.stands(3, false).await;
    writer.window.commit(Seq::new(3));
    writer.stage("c");
    append(&writer).await;
    writer.stage_terminal();
    finish(&writer).await;
    for window in [window, late_window] {
        shows(&window, 5).await;
        assert!(window.terminal().is_some());
    }
}

/// Everything that had its yes is at the replica when the primary is gone, at whichever moment that is.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_primary_takes_nothing_committed_with_it() {
    const WRITERS: usize = 20;
    let (mut primary, replica) = replicated().await;
    let journal = std::sync::Arc::new(connect_with(&primary, at("replicated:1")).await);
    let mut writers = JoinSet::new();
    let began = std::sync::Arc::new(tokio::sync::Barrier::new(WRITERS + 1));
    for _ in 0..WRITERS {
        let (journal, began) = (journal.clone(), began.clone());
        writers.spawn(async move {
            let writer = opened(&journal).await;
            let mut round = 0;
            loop {
                writer.stage(&format!("event {round}"));
                if writer.append().await != Outcome::Yes && round > 20 {
                    return (writer.id(), committed(&writer.window));
                }
                if let Ok(Tail::Last { last, .. }) = journal.tail(writer.id()).await {
                    writer.window.commit(last);
                }
                if round == 20 {
                    began.wait().await;
                }
                round += 1;
            }
        });
    }
    began.wait().await;
    primary.kill();
    let shown = writers.join_all().await;
    replica.cli(&["REPLICAOF", "NO", "ONE"]).await;
    let promoted = connect(&replica).await;
    for (id, last) in shown {
        assert!(last > 1);
        match promoted.tail(id).await {
            Ok(Tail::Last { last: there, .. }) => assert!(there.get() >= last, "{there} {last}"),
            other => panic!("{other:?}, of {last}"),
        }
    }
}

#[tokio::test]
async fn at_the_level_async_a_lost_primary_may_take_the_tail_with_it() {
    let (mut primary, replica) = replicated().await;
    let journal = connect_with(&primary, at("async")).await;
    let writer = Writer::opened(&journal).await;
    until("the replica has it", async || {
        replica.cli(&["XLEN", &writer.log()]).await == "1"
    })
    .await;
    let careful = connect_with(&primary, at("replicated:1")).await;
    // It has what it has, and hears no more.
    replica.cli(&["REPLICAOF", "127.0.0.1", "1"]).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    assert_eq!(Writer::unopened(&careful).open().await, Outcome::Unknown);
    primary.kill();
    replica.cli(&["REPLICAOF", "NO", "ONE"]).await;
    let promoted = connect(&replica).await;
    let Ok(Tail::Last { last, .. }) = promoted.tail(writer.id()).await else {
        panic!("it was opened")
    };
    assert_eq!(last, Seq::FIRST);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wait_serves_many_batches() {
    const BATCHES: u64 = 40;
    let (primary, _replica) = replicated().await;
    let journal = std::sync::Arc::new(connect_with(&primary, at("replicated:1")).await);
    let mut writers = JoinSet::new();
    let ready = std::sync::Arc::new(tokio::sync::Barrier::new(51));
    for _ in 0..50 {
        let (journal, ready) = (journal.clone(), ready.clone());
        writers.spawn(async move {
            let writer = opened(&journal).await;
            ready.wait().await;
            for batch in 0..BATCHES {
                writer.stage(&format!("event {batch}"));
                append(&writer).await;
            }
        });
    }
    ready.wait().await;
    primary.cli(&["CONFIG", "RESETSTAT"]).await;
    writers.join_all().await;
    let stats = primary.cli(&["INFO", "commandstats"]).await;
    let calls = |name: &str| -> u64 {
        let start = format!("cmdstat_{name}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|it| it.split(',').next()?.parse().ok())
            .unwrap_or(0)
    };
    let (waits, appends) = (calls("wait"), calls("xadd"));
    assert!(waits > 0 && waits * 2 < appends, "{waits} for {appends}");
}

#[tokio::test]
async fn a_server_that_wants_more_replicas_changes_nothing() {
    let (primary, replica) = replicated().await;
    let journal = connect_with(&primary, at("replicated:1")).await;
    let writer = opened(&journal).await;
    let wanted = async |count: &str| {
        let set = ["CONFIG", "SET", "min-replicas-to-write", count];
        assert_eq!(primary.cli(&set).await, "OK");
    };
    wanted("2").await;
    writer.stage("a");
    for _ in 0..2 {
        assert_eq!(writer.append().await, Outcome::No(Refusal::Unready));
    }
    assert_eq!(primary.cli(&["XLEN", &writer.log()]).await, "1");
    wanted("0").await;
    append(&writer).await;
    writer.stands(2, false).await;
    drop(replica);
}

/// With a server that knows `WAITAOF`, which `STREAMWELD_TEST_REDIS_SERVER` may name, it waits for the disk; with an
/// older one nothing can, and the level that is named is the one there is.
#[tokio::test]
async fn the_level_fsync_waits_for_the_disk_where_the_server_can() {
    let server = Setup::new().append_only(Fsync::Always).start().await;
    let journal = connect_with(&server, at("fsync")).await;
    let findings = journal.examined(Duration::from_secs(10)).await;
    let names: Vec<_> = findings.iter().map(|it| it.name()).collect();
    let has_waitaof = !server
        .cli(&["WAITAOF", "0", "0", "0"])
        .await
        .contains("ERR");
    if has_waitaof {
        assert_eq!(names, [""; 0]);
        assert_eq!(journal.level(), Some(Level::Fsync));
    } else {
        assert_eq!(names, ["waitaof_missing"]);
        assert_eq!(journal.level(), Some(Level::Async));
    }
    let writer = opened(&journal).await;
    writer.stage("a");
    append(&writer).await;
    if has_waitaof {
        let stats = server.cli(&["INFO", "commandstats"]).await;
        assert!(stats.contains("cmdstat_waitaof"), "{stats}");
        // Nothing reaches the disk any more.
        server.cli(&["CONFIG", "SET", "appendonly", "no"]).await;
        writer.stage("b");
        assert_eq!(writer.append().await, Outcome::Unknown);
        assert_eq!(journal.tail(writer.id()).await, Err(Unreachable));
        server.cli(&["CONFIG", "SET", "appendonly", "yes"]).await;
        writer.stands(3, false).await;
        writer.window.commit(Seq::new(3));
        let later = ["CONFIG", "SET", "appendfsync", "everysec"];
        server.cli(&later).await;
        writer.stage("c");
        append(&writer).await;
    }
    writer.stage_terminal();
    finish(&writer).await;
}
