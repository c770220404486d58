//! A server that lets us in no more, or not yet, or not for everything: told once, and over when it is.

use std::time::Duration;

use streamweld_journal::{Journal, Outcome, Refusal};
use streamweld_journal_redis::testing::{Fsync, Relay, Server, Setup, free_port, until};
use streamweld_journal_redis::{ConnectError, Finding, RedisJournal, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::connect::{config, connect, connect_to};
use crate::logs::Logs;
use crate::writer::Writer;

/// Appends one event more, however long it takes.
pub(crate) async fn append_at_last(writer: &Writer<'_>) {
    let received = writer.stage("one more");
    until("it is appended", async || {
        if writer.append().await == Outcome::Yes {
            return true;
        }
        _ = writer.journal.tail(writer.id()).await;
        false
    })
    .await;
    writer.stands(received.get(), false).await;
}

async fn is_out(journal: &RedisJournal, expected: ConnectError) {
    until("it says why there is no connection", async || {
        let error = journal.connected(Duration::from_millis(1)).await;
        error == Err(expected.clone())
    })
    .await;
}

/// Whichever connection it is seen on.
#[track_caller]
fn told_once(logs: &Logs, text: &str) {
    let lines = logs.with(text);
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[tokio::test]
async fn row_29_a_flow_that_is_swallowed_is_replaced_in_time() {
    let server = Server::new().await;
    let relay = Relay::to(&server).await;
    let target = Target::parse(&relay.url()).unwrap();
    let journal = connect_to(target, config()).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    let made = relay.made();
    relay.swallow();
    let began = Instant::now();
    append_at_last(&writer).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(relay.made() > made);
    // The other two are not used, and replaced all the same.
    until("all are replaced", async || relay.made() >= made + 3).await;
}

#[tokio::test]
async fn row_37_a_server_that_loads_its_data_is_waited_for() {
    let logs = Logs::begin();
    let mut server = Setup::new()
        .append_only(Fsync::EverySecond)
        // The file is read in small steps, and each key takes its time.
        .config("loading-process-events-interval-bytes", "1024")
        .config("key-load-delay", "300")
        .config("aof-use-rdb-preamble", "yes")
        .start()
        .await;
    server.cli(&["DEBUG", "POPULATE", "2000"]).await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    server.cli(&["BGREWRITEAOF"]).await;
    until("the file is written", async || {
        let info = server.cli(&["INFO", "persistence"]).await;
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    })
    .await;
    let loading = ConnectError::Refused("LOADING".to_owned());
    let (_, ()) = tokio::join!(server.restart(), is_out(&journal, loading));
    append_at_last(&writer).await;
    told_once(&logs, "LOADING");
}

#[tokio::test]
async fn row_40_a_password_that_is_missing_or_wrong_is_told_once() {
    let server = Setup::new().password("the-right-secret").start().await;
    for user in ["", ":the-wrong-secret@"] {
        let logs = Logs::begin();
        let relay = Relay::to(&server).await;
        let url = relay.url().replace("redis://", &format!("redis://{user}"));
        let journal = RedisJournal::start(Target::parse(&url).unwrap(), config());
        is_out(&journal, ConnectError::Credentials).await;
        // It goes on asking, ever more rarely.
        let (began, before) = (Instant::now(), relay.made());
        until("it tries again", async || relay.made() >= before + 12).await;
        assert!(began.elapsed() > Duration::from_millis(300));
        let told = logs.with("redis refuses the user or password");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(logs.with("secret").is_empty());
    }
}

#[tokio::test]
async fn row_40_a_password_that_is_rotated_in_its_file_heals() {
    let logs = Logs::begin();
    let server = Setup::new().password("first-secret").start().await;
    let file = server.folder().join("password");
    std::fs::write(&file, "first-secret\n").unwrap();
    let target = Target::parse(&format!("redis://{}", server.address())).unwrap();
    let journal = connect_to(target.with_password_file(file.clone()), config()).await;
    let writer = Writer::opened(&journal).await;
    server
        .cli(&["CONFIG", "SET", "requirepass", "second-secret"])
        .await;
    // Those that are there stay, so nothing is lost before a new one is needed.
    append_at_last(&writer).await;
    let auth = ["-a", "second-secret", "--no-auth-warning"];
    let kill = ["CLIENT", "KILL", "TYPE", "normal"];
    server.cli(&[&auth[..], &kill].concat()).await;
    is_out(&journal, ConnectError::Credentials).await;
    std::fs::write(&file, "second-secret\n").unwrap();
    append_at_last(&writer).await;
    told_once(&logs, "redis refuses the user or password");
    assert!(logs.with("secret").is_empty());
}

#[tokio::test]
async fn row_40_a_right_that_is_missing_is_told_once() {
    let logs = Logs::begin();
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    server.cli(&["ACL", "SETUSER", "default", "-xadd"]).await;
    writer.stage("a");
    for _ in 0..20 {
        assert_eq!(writer.append().await, Outcome::Unknown);
        writer.stands(1, false).await;
    }
    assert_eq!(logs.with("NOPERM").len(), 1);
    server.cli(&["ACL", "SETUSER", "default", "+xadd"]).await;
    append_at_last(&writer).await;
}

#[tokio::test]
async fn row_40_a_user_without_the_rights_for_a_connection_is_told() {
    let server = Server::new().await;
    server
        .cli(&["ACL", "SETUSER", "default", "-client|tracking"])
        .await;
    let target = Target::parse(&server.url()).unwrap();
    let journal = RedisJournal::start(target, config());
    is_out(&journal, ConnectError::Refused("NOPERM".to_owned())).await;
    server
        .cli(&["ACL", "SETUSER", "default", "+client|tracking"])
        .await;
    append_at_last(&Writer::opened_at_last(&journal).await).await;
}

#[tokio::test]
async fn row_40_a_server_without_room_for_clients_is_told_and_waited_for() {
    let server = Server::new().await;
    let mut limit = TcpStream::connect(server.address()).await.unwrap();
    let mut said = [0; 5];
    limit
        .write_all(b"CONFIG SET maxclients 1\r\n")
        .await
        .unwrap();
    limit.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"+OK\r\n");
    let target = Target::parse(&server.url()).unwrap();
    let journal = RedisJournal::start(target, config());
    is_out(&journal, ConnectError::TooManyClients).await;
    limit
        .write_all(b"CONFIG SET maxclients 99\r\n")
        .await
        .unwrap();
    append_at_last(&Writer::opened_at_last(&journal).await).await;
}

#[tokio::test]
async fn a_password_that_nobody_asked_for_is_refused_on_every_connection() {
    let logs = Logs::begin();
    let server = Server::new().await;
    let file = server.folder().join("password");
    std::fs::write(&file, "secret\n").unwrap();
    let by_url = format!("redis://:secret@{}", server.address());
    let by_file = Target::parse(&server.url()).unwrap();
    for target in [
        Target::parse(&by_url).unwrap(),
        by_file.with_password_file(file.clone()),
    ] {
        let journal = RedisJournal::start(target, config());
        is_out(&journal, ConnectError::NoPassword).await;
        let examined = journal.examined(Duration::from_millis(100)).await;
        assert_eq!(examined, [Finding::Unreachable]);
    }
    assert_eq!(logs.with("redis has no password").len(), 2);
    assert!(logs.with("secret").is_empty());
}

#[tokio::test]
async fn a_database_that_there_is_not_is_named() {
    let server = Server::new().await;
    let url = format!("redis://{}/99", server.address());
    let journal = RedisJournal::start(Target::parse(&url).unwrap(), config());
    is_out(&journal, ConnectError::NoDatabase).await;
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_told_once_and_that_it_is_over() {
    let logs = Logs::begin_with_milestones();
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    assert_eq!(
        server
            .cli(&["REPLICAOF", "127.0.0.1", &free_port().to_string()])
            .await,
        "OK"
    );
    writer.stage("a");
    // Each connection is let in, and refused at the first write.
    until("it has been refused for a while", async || {
        if writer.append().await == Outcome::Unknown {
            _ = journal.tail(writer.id()).await;
        }
        logs.debug("READONLY") >= 4
    })
    .await;
    assert_eq!(server.cli(&["REPLICAOF", "NO", "ONE"]).await, "OK");
    append_at_last(&writer).await;
    until("it is over", async || logs.with("it stays so").len() == 1).await;
    told_once(&logs, "READONLY");
    assert_eq!(logs.with("connected to Redis").len(), 2);
}

#[tokio::test]
async fn a_server_that_hangs_is_told_before_it_is_back() {
    let logs = Logs::begin_with_milestones();
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    append_at_last(&writer).await;
    server.pause();
    writer.stage("a");
    until("it is given up", async || {
        _ = writer.append().await;
        _ = journal.tail(writer.id()).await;
        !logs.with("redis did not answer in time").is_empty()
    })
    .await;
    server.resume();
    until("it is over", async || logs.with("it stays so").len() == 1).await;
    told_once(&logs, "no connection to Redis");
}

#[tokio::test]
async fn a_server_without_memory_says_so_and_not_that_the_replica_is_full() {
    let logs = Logs::begin();
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    writer.stage("a");
    for _ in 0..9 {
        assert_eq!(writer.append().await, Outcome::No(Refusal::Full));
    }
    told_once(&logs, "maxmemory");
    assert!(logs.with("this replica holds").is_empty());
}
