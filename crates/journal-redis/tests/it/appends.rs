//! What is sent to a server that is well.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Adoption, Claim, Epoch, Found, Journal, OpenRefusal, Outcome, Refusal, Seq, Tail,
};
use streamweld_journal_redis::Config;
use streamweld_journal_redis::testing::{Server, until};

use crate::connect::{config, connect, connect_with};
use crate::writer::Writer;

#[tokio::test]
async fn a_vanished_log_is_told() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    server.cli(&["DEL", &writer.log()]).await;
    writer.stage("b");
    assert_eq!(writer.append().await, Outcome::No(Refusal::Vanished));
    assert_eq!(writer.tail().await, Tail::None);
    assert_eq!(server.cli(&["EXISTS", &writer.log()]).await, "0");
}

#[tokio::test]
async fn an_older_writer_elsewhere_is_fenced() {
    let server = Server::new().await;
    let (old, new) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&old).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    let second = Epoch::new(2).unwrap();
    let now = SystemTime::now();
    // It does not hear of it.
    server
        .cli(&["ACL", "SETUSER", "default", "resetchannels"])
        .await;
    let adopted = new
        .adopt(
            writer.id(),
            Adoption::new(Epoch::FIRST, Seq::new(2), second),
            now,
        )
        .await;
    assert_eq!(adopted, Outcome::Yes);
    // Redis refuses the smaller id; what that means is told by the tail.
    writer.stage("of the old writer");
    assert_eq!(writer.append().await, Outcome::Unknown);
    let Tail::Last {
        epoch,
        last,
        digest,
        ..
    } = writer.tail().await
    else {
        panic!("it stands")
    };
    assert_eq!((epoch, last), (second, Seq::new(2)));
    assert_eq!(Some(digest), writer.window.digest(Seq::new(2)));
    let fenced = Outcome::No(Refusal::Fenced { epoch: second });
    assert_eq!(writer.append().await, fenced);
    writer.stage_terminal();
    assert_eq!(writer.finish().await, fenced);
}

#[tokio::test]
async fn redis_itself_refuses_what_follows_the_end() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    writer.stands(2, true).await;
    for id in [
        "*",
        "1-9",
        "2-1",
        "18446744073709551615-18446744073709551615",
    ] {
        let said = server
            .cli(&["XADD", &writer.log(), "NOMKSTREAM", id, "r", "x"])
            .await;
        assert!(said.contains("ERR"), "{said}");
    }
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "2");
}

#[tokio::test]
async fn everything_expires() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::unopened(&journal);
    let (id, now) = (writer.id(), SystemTime::now());
    assert_eq!(journal.claim([1; 32], id, now).await, Ok(Claim::Won));
    assert_eq!(writer.open().await, Outcome::Yes);
    writer.window.commit(Seq::FIRST);
    // With those of the replica.
    check_expiry(&server, 5, 7200).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let gone = format!("streamweld:{{{id}}}:gone");
    let seconds: u64 = server.cli(&["TTL", &gone]).await.parse().unwrap();
    assert!((1195..=1200).contains(&seconds), "{seconds}");
    server.cli(&["DEL", &gone]).await;
    journal.depart().await;
    check_expiry(&server, 3, 600).await;
}

/// There are so many keys, and each lives for about so long.
async fn check_expiry(server: &Server, count: usize, seconds: u64) {
    let keys = server.cli(&["KEYS", "*"]).await;
    assert_eq!(keys.lines().count(), count, "{keys}");
    for key in keys.lines() {
        let ttl: u64 = server.cli(&["TTL", key]).await.parse().unwrap();
        assert!((seconds - 5..=seconds).contains(&ttl), "{key}: {ttl}");
    }
}

#[tokio::test]
async fn appends_put_the_expiry_off() {
    let server = Server::new().await;
    let live = Duration::from_millis(4000);
    let journal = connect_with(&server, Config { live, ..config() }).await;
    let writer = Writer::opened(&journal).await;
    let ttl = async || {
        server
            .cli(&["PTTL", &writer.log()])
            .await
            .parse::<u64>()
            .unwrap()
    };
    until("a part of its time is over", async || ttl().await <= 2900).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    assert!(ttl().await > 3000);
}

#[tokio::test]
async fn a_changed_label_goes_along_once() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    writer.window.set_label(Bytes::from_static(b"the head"));
    server.cli(&["CONFIG", "RESETSTAT"]).await;
    for text in ["a", "b"] {
        writer.stage(text);
        assert_eq!(writer.append().await, Outcome::Yes);
    }
    assert_eq!(
        server.cli(&["HGET", &writer.meta(), "label"]).await,
        "the head"
    );
    assert!(
        server
            .cli(&["INFO", "commandstats"])
            .await
            .contains("cmdstat_hset:calls=1,")
    );
}

#[tokio::test]
async fn an_open_above_the_cap_is_refused() {
    let server = Server::new().await;
    let journal = connect_with(
        &server,
        Config {
            total: 20_000,
            ..config()
        },
    )
    .await;
    let mut held = Vec::new();
    let outcome = loop {
        let writer = Writer::unopened(&journal);
        match writer.open().await {
            Outcome::Yes => held.push(writer),
            other => break other,
        }
    };
    assert_eq!(outcome, Outcome::No(OpenRefusal::Full));
    assert!(!held.is_empty());
    assert_eq!(journal.usage().live, held.len());
    let writer = held.pop().unwrap();
    journal.remove(writer.id()).await;
    assert_eq!(Writer::unopened(&journal).open().await, Outcome::Yes);
}

#[tokio::test]
async fn what_is_kept_elsewhere_counts_and_leaves_half_of_the_cap() {
    let server = Server::new().await;
    let total = 20_000;
    let journal = connect_with(&server, Config { total, ..config() }).await;
    let kept = journal.keep(10_000).expect("half of it");
    assert_eq!(journal.usage().bytes, 10_000);
    assert!(journal.keep(1).is_none());
    let writer = Writer::unopened(&journal);
    assert_eq!(writer.open().await, Outcome::Yes);
    drop(kept);
    let mut held = vec![writer];
    loop {
        let writer = Writer::unopened(&journal);
        if writer.open().await != Outcome::Yes {
            break;
        }
        held.push(writer);
    }
    // What runs is let go for nobody.
    assert!(journal.keep(10_000).is_none());
    assert_eq!(journal.usage().live, held.len());
}

#[tokio::test]
async fn an_append_of_a_full_redis_is_refused_and_goes_on_later() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::No(Refusal::Full));
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(writer.append().await, Outcome::Yes);
    writer.stands(2, false).await;
    let found = journal.find(writer.id(), SystemTime::now()).await;
    assert!(matches!(found, Ok(Found::Here { .. })));
}
