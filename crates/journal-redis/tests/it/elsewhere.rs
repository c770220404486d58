//! What another replica finds.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Adoption, Claim, Epoch, Found, Journal, Notice, OpenRefusal, Order, Ordered, Outcome, Seq, Word,
};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, Target};

use crate::connect::{config, connect, connect_to, connect_with};
use crate::presence::{REPLICAS, names, ownerless};
use crate::writer::Writer;

#[tokio::test]
async fn a_finished_log_reads_as_it_was_written() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    writer.window.set_label(Bytes::from_static(b"label"));
    // More records than one page has, and one that is large.
    for round in 0..70 {
        writer.stage(&format!("event {round}"));
        assert_eq!(writer.append().await, Outcome::Yes);
    }
    writer.stage(&"x".repeat(300_000));
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let Ok(Found::Here { window, access, .. }) = there.find(writer.id(), SystemTime::now()).await
    else {
        panic!("it is there")
    };
    assert_eq!(access, [7; 32]);
    assert_eq!(window.label(), writer.window.label());
    assert_eq!(window.terminal(), writer.window.terminal());
    assert_eq!(
        window.entries(Seq::ZERO, 99),
        writer.window.entries(Seq::ZERO, 99)
    );
    assert_eq!(there.usage().finished, 1);
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_reading() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    server.cli(&["CONFIG", "RESETSTAT"]).await;
    let now = SystemTime::now();
    let mut asked: [_; 50] = std::array::from_fn(|_| there.find(writer.id(), now));
    let mut windows = Vec::new();
    for call in &mut asked {
        // Each is polled once before the first is waited for, so that all are under way.
        let first = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *call).poll(cx))
        });
        assert!(first.await.is_pending());
    }
    for call in asked {
        let Ok(Found::Here {
            window,
            follow: None,
            ..
        }) = call.await
        else {
            panic!("it is there")
        };
        windows.push(window);
    }
    assert!(windows.iter().all(|window| window.terminal().is_some()));
    let stats = server.cli(&["INFO", "commandstats"]).await;
    assert!(stats.contains("cmdstat_xrange:calls=1,"), "{stats}");
}

#[tokio::test]
async fn a_live_log_is_found_as_far_as_it_stands() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    let Ok(Found::Here { window, .. }) = there.find(writer.id(), SystemTime::now()).await else {
        panic!("it is there")
    };
    assert_eq!(
        window.entries(Seq::ZERO, 9),
        writer.window.entries(Seq::ZERO, 9)
    );
}

#[tokio::test]
async fn an_expired_log_leaves_its_tombstone() {
    let server = Server::new().await;
    let short = Config {
        retention: Duration::from_millis(300),
        tombstone: Duration::from_secs(60),
        cached: Duration::ZERO,
        ..config()
    };
    let journal = connect_with(&server, short).await;
    let writer = Writer::opened(&journal).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    until("its retention is over", async || {
        server.cli(&["EXISTS", &writer.log()]).await == "0"
    })
    .await;
    let found = journal.find(writer.id(), SystemTime::now()).await;
    assert!(
        matches!(found, Ok(Found::Expired { access }) if access == [7; 32]),
        "{found:?}"
    );
    assert_eq!(writer.open().await, Outcome::No(OpenRefusal::Exists));
}

#[tokio::test]
async fn nothing_is_read_here_for_longer_than_its_retention() {
    let server = Server::new().await;
    let short = || Config {
        retention: Duration::from_secs(1),
        tombstone: Duration::from_secs(60),
        ..config()
    };
    let (here, there) = (
        connect_with(&server, short()).await,
        connect_with(&server, short()).await,
    );
    let writer = Writer::opened(&here).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    for journal in [&here, &there] {
        let found = journal.find(writer.id(), SystemTime::now()).await;
        assert!(matches!(found, Ok(Found::Here { .. })), "{found:?}");
    }
    until("its retention is over", async || {
        server.cli(&["EXISTS", &writer.log()]).await == "0"
    })
    .await;
    for journal in [&here, &there] {
        let found = journal.find(writer.id(), SystemTime::now()).await;
        assert!(matches!(found, Ok(Found::Expired { .. })), "{found:?}");
    }
}

#[tokio::test]
async fn a_claim_is_seen_by_all_and_lapses() {
    let server = Server::new().await;
    let claim = Duration::from_millis(300);
    let here = connect_with(&server, Config { claim, ..config() }).await;
    let there = connect(&server).await;
    let (first, second) = (Writer::unopened(&here), Writer::unopened(&there));
    let now = SystemTime::now();
    assert_eq!(here.claim([1; 32], first.id(), now).await, Ok(Claim::Won));
    let taken = Claim::Taken {
        id: first.id(),
        body: None,
    };
    assert_eq!(there.claim([1; 32], second.id(), now).await, Ok(taken));
    until("the claim lapses", async || {
        there.claim([1; 32], second.id(), now).await == Ok(Claim::Won)
    })
    .await;
    assert_eq!(
        here.claim_body([1; 32], first.id(), [2; 32], now).await,
        Ok(false)
    );
}

/// A name that a backend gave to its answer may be known only when the answer is over.
#[tokio::test]
async fn a_claim_for_what_has_ended_lives_as_long_as_its_log() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let claimed = journal.claim([1; 32], writer.id(), SystemTime::now());
    assert_eq!(claimed.await, Ok(Claim::Won));
    let name = format!("streamweld:claim:{{{}}}", "01".repeat(32));
    let ttl: u64 = server.cli(&["TTL", &name]).await.parse().unwrap();
    let retention = config().retention.as_secs();
    assert!((retention - 5..=retention).contains(&ttl), "{ttl}");
}

/// What is read at once is 32 records. Behind an end that is the last of them Redis has no range to ask for.
#[tokio::test]
async fn a_log_whose_end_is_the_last_of_a_page_is_read_to_its_end() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    for records in [31, 32, 33, 64] {
        let writer = Writer::opened(&here).await;
        for _ in 2..records {
            writer.stage("a");
            assert_eq!(writer.append().await, Outcome::Yes);
        }
        writer.stage_terminal();
        assert_eq!(writer.finish().await, Outcome::Yes);
        let count = server.cli(&["XLEN", &writer.log()]).await;
        assert_eq!(count, records.to_string());
        let found = there.find(writer.id(), SystemTime::now()).await;
        let Ok(Found::Here { window, .. }) = found else {
            panic!("{records} records: {found:?}")
        };
        assert!(window.terminal().is_some(), "{records} records");
    }
}

/// The commands that docs/journal.md tells for every server, and those for a cluster besides.
pub(crate) fn rights() -> (Vec<String>, Vec<String>) {
    let document = include_str!("../../../../docs/journal.md");
    let (_, rights) = document.split_once("\n## Rights\n").unwrap();
    let (_, commands) = rights.split_once("the commands ").unwrap();
    let (everywhere, in_a_cluster) = commands.split_once("In a cluster").unwrap();
    let each = |text: &str| {
        let commands = text.split('`').skip(1).step_by(2);
        commands.map(|command| format!("+{command}")).collect()
    };
    (each(everywhere), each(in_a_cluster))
}

/// The list of docs/journal.md.
#[tokio::test]
async fn the_documented_rights_are_enough() {
    let server = Server::new().await;
    let (commands, _) = rights();
    let mut user = vec![
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">word",
        "~streamweld:*",
        "resetchannels",
        "&streamweld:*",
        "-@all",
    ];
    user.extend(commands.iter().map(String::as_str));
    assert_eq!(server.cli(&user).await, "OK");
    let url = format!("redis://app:word@{}", server.address());
    let target = Target::parse(&url).unwrap();
    let short = Config {
        lease: Duration::from_millis(1200),
        ..config()
    };
    let (here, there) = (
        connect_to(target.clone(), short.clone()).await,
        connect_to(target.clone(), short.clone()).await,
    );
    let writer = Writer::unopened(&here);
    let (id, now) = (writer.id(), SystemTime::now());
    assert_eq!(here.claim([1; 32], id, now).await, Ok(Claim::Won));
    assert_eq!(here.claim_body([1; 32], id, [2; 32], now).await, Ok(true));
    assert_eq!(writer.open().await, Outcome::Yes);
    writer.window.commit(Seq::FIRST);
    let Ok(Found::Here {
        window,
        follow: Some(follow),
        ..
    }) = there.find(id, now).await
    else {
        panic!("it is followed")
    };
    let _reads = follow.reading();
    here.next_notice().await;
    writer.window.set_label(Bytes::from_static(b"label"));
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    let stop = Order::Stop { admin: false };
    assert_eq!(there.order(id, stop).await, Ok(Ordered::Passed));
    assert_eq!(here.next_notice().await, (id, Notice::Order(stop)));
    assert_eq!(
        here.adopt(
            id,
            Adoption::new(Epoch::FIRST, Seq::new(2), Epoch::new(2).unwrap()),
            now
        )
        .await,
        Outcome::Yes
    );
    writer.window.begin_epoch(Epoch::new(2).unwrap());
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    until("its end is here", async || window.terminal().is_some()).await;
    assert_eq!(here.release([1; 32], id).await, Ok(()));
    here.remove(id).await;
    // What a hand-over needs.
    let writer = Writer::opened(&here).await;
    let (id, request) = (writer.id(), Bytes::from_static(b"request"));
    assert_eq!(here.keep_request(id, request.clone()).await, Ok(()));
    writer.stage_beside("a", "beside");
    assert_eq!(writer.append().await, Outcome::Yes);
    assert_eq!(there.kept_request(id).await, Ok(Some(request)));
    let beside = there.beside(id, Seq::new(2)).await;
    assert_eq!(beside, Ok(vec![Bytes::from_static(b"beside")]));
    assert_eq!(there.replicas().await, Ok(vec![here.replica()]));
    let (from, epoch) = (there.replica(), Epoch::FIRST);
    let word = Word::Considers { epoch };
    assert_eq!(there.say(here.replica(), id, word.clone()).await, Ok(()));
    // Behind what was ordered before, which may be given twice.
    while here.next_notice().await
        != (
            id,
            Notice::Said {
                from,
                word: word.clone(),
            },
        )
    {}
    here.remove(id).await;
    // A replica that dies with what it writes is looked after by the other.
    let dies = connect_to(target, short).await;
    let left = Writer::opened(&dies).await.id();
    drop(dies);
    assert_eq!(ownerless(&here).await.0, left);
    here.remove(left).await;
    names(&server, REPLICAS, 2).await;
    for journal in [&here, &there] {
        journal.depart().await;
    }
    assert_eq!(server.cli(&["KEYS", "*"]).await, "");
    // Nothing was refused on the way.
    assert_eq!(server.cli(&["ACL", "LOG"]).await, "");
}
