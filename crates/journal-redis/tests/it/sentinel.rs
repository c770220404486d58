//! A master that sentinels name, and what becomes of a connection when it is another one.

use std::time::{Duration, SystemTime};

use streamweld_journal::{Adoption, Epoch, Journal, Outcome, Refusal, Seq};
use streamweld_journal_redis::testing::{Sentinels, Server, Setup, until};
use streamweld_journal_redis::{ConnectError, RedisJournal, Target};

use crate::connect::{config, connect, connect_to};
use crate::refused::append_at_last;
use crate::writer::Writer;

/// Waits until a replica has the two records that there are.
async fn wait_copied(replica: &Server, writer: &Writer<'_>) {
    until("it is replicated", async || {
        replica.cli(&["XLEN", &writer.log()]).await == "2"
    })
    .await;
}

async fn connect_by(all: &Sentinels) -> RedisJournal {
    connect_to(Target::parse(&all.url()).unwrap(), config()).await
}

/// Waits until a server has the connections of a journal.
async fn has_ours(server: &Server) {
    until("our connections are where they belong", async || {
        let clients = server.cli(&["CLIENT", "LIST"]).await;
        let of = |word: &str| clients.lines().filter(|it| it.contains(word)).count();
        // Those that append and read follow no key, the one that listens listens to our orders.
        of(" flags=t ") == 2 && of(" cmd=subscribe ") >= 1
    })
    .await;
}

/// Sentinels look on for some eight seconds before they tell a master what it is now.
async fn wait_demoted(server: &Server) {
    let demoted = async {
        while !server.is_replica().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let demoted = tokio::time::timeout(Duration::from_secs(60), demoted).await;
    demoted.expect("it is demoted");
}

#[tokio::test]
async fn a_failover_is_followed_and_the_old_master_does_no_harm() {
    let mut all = Sentinels::new().await;
    let journal = connect_by(&all).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    has_ours(&all.primary).await;
    wait_copied(&all.replica, &writer).await;
    all.primary.kill();
    append_at_last(&writer).await;
    assert_eq!(all.replica.cli(&["XLEN", &writer.log()]).await, "3");
    has_ours(&all.replica).await;
    // It comes back as it was, a master with nothing.
    all.primary.restart().await;
    append_at_last(&writer).await;
    wait_demoted(&all.primary).await;
    append_at_last(&writer).await;
    assert_eq!(all.replica.cli(&["XLEN", &writer.log()]).await, "5");
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
}

/// Row 34. Nothing is written and nobody asks: what the sentinels announce is enough.
#[tokio::test]
async fn row_34_a_demoted_master_is_left_before_anybody_calls() {
    let all = Sentinels::new().await;
    let journal = connect_by(&all).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    has_ours(&all.primary).await;
    until("a sentinel begins", async || {
        let failover = ["SENTINEL", "FAILOVER", Sentinels::NAME];
        all.sentinels[0].cli(&failover).await == "OK"
    })
    .await;
    has_ours(&all.replica).await;
    wait_demoted(&all.primary).await;
    append_at_last(&writer).await;
    assert_eq!(all.replica.cli(&["XLEN", &writer.log()]).await, "3");
}

/// Row 34, where nobody announces anything: an append is what notices.
#[tokio::test]
async fn row_34_a_demotion_without_a_word_is_noticed_by_an_append() {
    let primary = Server::new().await;
    let replica = Setup::new().replica_of(&primary).start().await;
    replica.wait_replicating().await;
    let setup = Setup::new();
    let sentinel = setup.start_sentinel("127.0.0.1", primary.port(), 1).await;
    let url = format!("redis+sentinel://{}/streamweld", sentinel.address());
    let journal = connect_to(Target::parse(&url).unwrap(), config()).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    wait_copied(&replica, &writer).await;
    // It says nothing more, until it names the other one, which has to be told by being asked.
    let other = ["SENTINEL", "REMOVE", Sentinels::NAME];
    assert_eq!(sentinel.cli(&other).await, "OK");
    replica.cli(&["REPLICAOF", "NO", "ONE"]).await;
    let port = replica.port().to_string();
    primary.cli(&["REPLICAOF", "127.0.0.1", &port]).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    until("the connection is given up", async || {
        let error = journal.connected(Duration::from_millis(1)).await;
        error == Err(ConnectError::UnknownService)
    })
    .await;
    let monitor = [
        "SENTINEL",
        "MONITOR",
        Sentinels::NAME,
        "127.0.0.1",
        &port,
        "1",
    ];
    assert_eq!(sentinel.cli(&monitor).await, "OK");
    append_at_last(&writer).await;
    // What waited went along in one record.
    assert_eq!(replica.cli(&["XLEN", &writer.log()]).await, "3");
}

/// Row 36. Both servers are masters for a while, and a later writer goes on in one of them.
#[tokio::test]
async fn row_36_of_two_masters_the_writer_of_the_lower_epoch_loses() {
    let old = Server::new().await;
    let new = Setup::new().replica_of(&old).start().await;
    new.wait_replicating().await;
    let here = connect(&old).await;
    let writer = Writer::opened(&here).await;
    append_at_last(&writer).await;
    wait_copied(&new, &writer).await;
    new.cli(&["REPLICAOF", "NO", "ONE"]).await;
    let there = connect(&new).await;
    let second = Epoch::new(2).unwrap();
    let adopted = there.adopt(
        writer.id(),
        Adoption::new(Epoch::FIRST, Seq::new(2), second),
        SystemTime::now(),
    );
    assert_eq!(adopted.await, Outcome::Yes);
    // The old one is taken at its word, where nobody will read it again.
    append_at_last(&writer).await;
    let port = new.port().to_string();
    old.cli(&["REPLICAOF", "127.0.0.1", &port]).await;
    old.wait_replicating().await;
    old.cli(&["REPLICAOF", "NO", "ONE"]).await;
    writer.stage("of the old writer");
    assert_eq!(writer.append().await, Outcome::Unknown);
    writer.tail().await;
    let fenced = Outcome::No(Refusal::Fenced { epoch: second });
    assert_eq!(writer.append().await, fenced);
    writer.stage_terminal();
    assert_eq!(writer.finish().await, fenced);
    // Its mark, and nothing of the other.
    assert_eq!(old.cli(&["XLEN", &writer.log()]).await, "3");
}

async fn check_refused(url: &str, expected: ConnectError) {
    let journal = RedisJournal::start(Target::parse(url).unwrap(), config());
    let error = journal.connected(Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(error, expected);
    let told = format!("{error} {error:?}");
    assert!(!told.contains("127") && !told.contains("secret"), "{told}");
}

#[tokio::test]
async fn what_sentinels_do_not_say_is_told_by_its_reason() {
    let primary = Server::new().await;
    let replica = Setup::new().replica_of(&primary).start().await;
    replica.wait_replicating().await;
    let sentinel = Setup::new()
        .password("sentinel-secret")
        .start_sentinel("127.0.0.1", primary.port(), 1)
        .await;
    let url = |service: &str, login: &str| {
        // The first of them is not there.
        let hosts = format!("127.0.0.1:1,{}", sentinel.address());
        format!("redis+sentinel://{hosts}/{service}{login}")
    };
    let login = "?sentinel_pass=sentinel-secret";
    let nobody = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/streamweld";
    check_refused(nobody, ConnectError::NoSentinel).await;
    check_refused(&url("streamweld", ""), ConnectError::SentinelCredentials).await;
    let wrong = url("streamweld", "?sentinel_pass=other-secret");
    check_refused(&wrong, ConnectError::SentinelCredentials).await;
    check_refused(&url("other", login), ConnectError::UnknownService).await;
    let port = replica.port().to_string();
    let monitor = ["SENTINEL", "MONITOR", "early", "127.0.0.1", &port, "1"];
    assert_eq!(sentinel.cli(&monitor).await, "OK");
    check_refused(&url("early", login), ConnectError::NotMaster).await;
    let target = Target::parse(&url("streamweld", login)).unwrap();
    let journal = connect_to(target, config()).await;
    append_at_last(&Writer::opened(&journal).await).await;
}
