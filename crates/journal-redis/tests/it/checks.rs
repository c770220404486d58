//! What is found wrong with a server, and that it is found again when that changes.

use std::time::Duration;

use streamweld_journal::{Journal, Level};
use streamweld_journal_redis::testing::{Fsync, Server, Setup, free_port, until};
use streamweld_journal_redis::{Config, Finding, RedisJournal, Target};

use crate::connect::{config, connect_with};
use crate::logs::Logs;

fn soon() -> Config {
    Config {
        look: Duration::from_millis(50),
        ..config()
    }
}

/// What is wrong according to the metrics.
fn wrong(journal: &RedisJournal) -> Vec<&'static str> {
    let checks = journal.checks().into_iter();
    checks.filter(|it| it.is_wrong).map(|it| it.name).collect()
}

async fn becomes(journal: &RedisJournal, expected: &[&str]) {
    let what = format!("{expected:?} is found");
    until(&what, async || wrong(journal) == expected).await;
}

async fn safe() -> Server {
    Setup::new().append_only(Fsync::EverySecond).start().await
}

#[tokio::test]
async fn a_server_that_is_well_has_no_findings() {
    let server = safe().await;
    let journal = connect_with(&server, config()).await;
    let examined = journal.examined(Duration::from_secs(10)).await;
    assert_eq!(examined, []);
    assert_eq!(wrong(&journal), [""; 0]);
    assert_eq!(journal.checks().len(), Finding::ALL.len());
}

#[tokio::test]
async fn what_changes_while_it_runs_is_found_and_found_mended() {
    let server = safe().await;
    let journal = connect_with(&server, soon()).await;
    let set = async |name: &str, value: &str| {
        assert_eq!(server.cli(&["CONFIG", "SET", name, value]).await, "OK");
    };
    becomes(&journal, &[]).await;
    set("maxmemory-policy", "allkeys-lru").await;
    becomes(&journal, &["eviction_policy"]).await;
    set("appendonly", "no").await;
    becomes(&journal, &["eviction_policy", "persistence"]).await;
    set("maxmemory-policy", "noeviction").await;
    set("appendonly", "yes").await;
    becomes(&journal, &[]).await;
}

#[tokio::test]
async fn a_server_that_comes_back_otherwise_is_looked_at_anew() {
    let mut server = Server::new().await;
    let hourly = Config {
        look: Duration::from_secs(3600),
        ..config()
    };
    let journal = connect_with(&server, hourly).await;
    becomes(&journal, &["persistence"]).await;
    server.cli(&["CONFIG", "SET", "appendonly", "yes"]).await;
    server.cli(&["CONFIG", "REWRITE"]).await;
    server.kill();
    until("it is missed", async || {
        wrong(&journal).contains(&"unreachable")
    })
    .await;
    server.restart().await;
    becomes(&journal, &[]).await;
}

#[tokio::test]
async fn replicas_count_where_the_level_needs_them() {
    let primary = safe().await;
    let config = Config {
        level: "replicated:1".parse().unwrap(),
        ..soon()
    };
    let journal = connect_with(&primary, config).await;
    becomes(&journal, &["replicas_missing"]).await;
    let mut replica = Setup::new().replica_of(&primary).start().await;
    becomes(&journal, &[]).await;
    replica.kill();
    becomes(&journal, &["replicas_missing"]).await;
    // The others do not ask for any.
    let asynchronous = connect_with(&primary, soon()).await;
    becomes(&asynchronous, &[]).await;
}

#[tokio::test]
async fn a_replica_is_no_place_for_a_journal() {
    let primary = safe().await;
    let replica = Setup::new()
        .append_only(Fsync::EverySecond)
        .replica_of(&primary)
        .start()
        .await;
    replica.wait_replicating().await;
    let journal = connect_with(&replica, soon()).await;
    // Each connection is given up at the first write, so most of the time there is none.
    until("its role is found", async || {
        wrong(&journal).contains(&"replica_role")
    })
    .await;
}

#[tokio::test]
async fn who_may_not_look_says_so_and_goes_on() {
    let server = safe().await;
    server
        .cli(&["ACL", "SETUSER", "default", "-info", "-config|get"])
        .await;
    let fsync = Config {
        level: Level::Fsync,
        ..soon()
    };
    for config in [soon(), fsync] {
        let journal = connect_with(&server, config).await;
        let examined = journal.examined(Duration::from_secs(10)).await;
        assert!(examined.contains(&Finding::NotChecked), "{examined:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_finding_too() {
    let url = format!("redis://127.0.0.1:{}", free_port());
    let journal = RedisJournal::start(Target::parse(&url).unwrap(), config());
    let examined = journal.examined(Duration::from_millis(10)).await;
    assert_eq!(examined, [Finding::Unreachable]);
}

#[tokio::test]
async fn who_may_not_listen_is_told_once_and_asks_ever_more_rarely() {
    let logs = Logs::begin_with_milestones();
    let server = safe().await;
    server
        .cli(&["ACL", "SETUSER", "default", "resetchannels"])
        .await;
    let journal = connect_with(&server, config()).await;
    let examined = journal.examined(Duration::from_millis(300)).await;
    assert_eq!(examined, [Finding::NoFeed]);
    becomes(&journal, &["no_feed"]).await;
    until("it is told", async || !logs.with("no_feed").is_empty()).await;
    // Some in the first second, and then one each.
    let tries = logs.debug("NOPERM");
    assert!((3..30).contains(&tries), "{tries}");
    server
        .cli(&["ACL", "SETUSER", "default", "allchannels"])
        .await;
    becomes(&journal, &[]).await;
    until("it is told", async || logs.with("no_feed").len() == 2).await;
    let told = logs.with("NOPERM");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn a_server_without_waitaof_is_told_by_its_check_alone() {
    let logs = Logs::begin();
    let server = Setup::new().append_only(Fsync::Always).start().await;
    let fsync = Config {
        level: Level::Fsync,
        ..soon()
    };
    let journal = connect_with(&server, fsync).await;
    until("it is looked at", async || {
        !logs.with("waitaof_missing").is_empty() || wrong(&journal).is_empty()
    })
    .await;
    _ = journal.examined(Duration::from_secs(10)).await;
    let told = logs.with("refuses a command");
    assert!(told.is_empty(), "{told:?}");
}
