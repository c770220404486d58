//! Replicas that are gone, and those that only look so. Dropping a journal is what a kill leaves behind.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Adoption, Epoch, Journal, Notice, Outcome, Ownerless, Refusal, Seq, StreamId, Tail,
    TerminalParts, Window, WindowConfig,
};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, RedisJournal};
use tokio::time::{Instant, sleep, timeout};

use crate::connect::{config, connect_with};
use crate::writer::Writer;

const LEASE: Duration = Duration::from_millis(1200);
pub(crate) const REPLICAS: &str = "streamweld:{presence}:replicas";

async fn connect(server: &Server) -> RedisJournal {
    let lease = LEASE;
    connect_with(server, Config { lease, ..config() }).await
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

fn owned(journal: &RedisJournal) -> String {
    format!("streamweld:{{presence}}:owned:{:032x}", journal.replica().0)
}

/// The next notice about a log without a writer.
pub(crate) async fn ownerless(journal: &RedisJournal) -> (StreamId, Ownerless) {
    let next = async {
        loop {
            if let (id, Notice::Ownerless(log)) = journal.next_notice().await {
                return (id, log);
            }
        }
    };
    let next = timeout(Duration::from_secs(20), next).await;
    next.expect("it is noticed")
}

/// No such notice comes for some leases. The time is what these tests are about.
async fn assert_nobody_is_dead(journals: &[&RedisJournal]) {
    let until = Instant::now() + LEASE * 3;
    for journal in journals {
        while let Ok(notice) = tokio::time::timeout_at(until, journal.next_notice()).await {
            assert!(!matches!(notice.1, Notice::Ownerless(_)), "{notice:?}");
        }
    }
}

/// The window of whoever adds the end of a log that others wrote.
pub(crate) fn end(id: StreamId, by: Epoch, last: Seq) -> Arc<Window> {
    let now = SystemTime::now();
    let window = Window::new(id, by, now, WindowConfig::default());
    window.begin_after(last);
    let terminal = TerminalParts {
        kind: streamweld_journal::Kind::Error,
        code: Some("owner_lost".into()),
        lines: b"event: streamweld.error\ndata: {}\n".to_vec(),
        ending: Vec::new(),
        id_at: None,
    };
    window.stage_terminal(now, terminal);
    window
}

/// Waits until a set of the presence has so many members.
pub(crate) async fn names(server: &Server, key: &str, count: usize) {
    until("so many are left", async || {
        let command = if key == REPLICAS { "ZCARD" } else { "SCARD" };
        server.cli(&[command, key]).await == count.to_string()
    })
    .await;
}

#[tokio::test]
async fn what_a_dead_replica_left_is_told_with_its_epoch_and_label() {
    let server = Server::new().await;
    let (dies, lives) = (connect(&server).await, connect(&server).await);
    let owned = owned(&dies);
    let id = {
        let writer = Writer::unopened(&dies);
        writer.window.set_label(Bytes::from_static(b"label"));
        assert_eq!(writer.open().await, Outcome::Yes);
        writer.id()
    };
    let died = Instant::now();
    drop(dies);
    let (told, log) = ownerless(&lives).await;
    assert!(died.elapsed() >= LEASE, "it was silent for a whole lease");
    let label = Bytes::from_static(b"label");
    let epoch = epoch(1);
    assert_eq!((told, log), (id, Ownerless { epoch, label }));
    // It is told again until it has its end, and then everything about the dead one is gone.
    assert_eq!(ownerless(&lives).await.0, id);
    let (next, now) = (self::epoch(2), SystemTime::now());
    assert_eq!(
        lives
            .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, next), now)
            .await,
        Outcome::Yes
    );
    let window = end(id, next, Seq::FIRST);
    assert_eq!(lives.finish(&window, Seq::FIRST, now).await, Outcome::Yes);
    names(&server, REPLICAS, 1).await;
    assert_eq!(server.cli(&["EXISTS", &owned]).await, "0");
    let tail = lives.tail(id).await;
    assert!(
        matches!(tail, Ok(Tail::Last { terminal: true, last, .. }) if last == Seq::new(2)),
        "{tail:?}"
    );
}

#[tokio::test]
async fn two_that_take_over_at_once_leave_one_end() {
    let server = Server::new().await;
    let dies = connect(&server).await;
    let (one, other) = (connect(&server).await, connect(&server).await);
    let id = Writer::opened(&dies).await.id();
    drop(dies);
    let ((first, _), (second, _)) = tokio::join!(ownerless(&one), ownerless(&other));
    assert_eq!((first, second), (id, id));
    let (epochs, now) = ([epoch(3), epoch(2)], SystemTime::now());
    let adopted = tokio::join!(
        one.adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epochs[0]), now),
        other.adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epochs[1]), now),
    );
    let fenced = |epoch| Outcome::No(Refusal::Fenced { epoch });
    let (winner, loser, next) = match adopted {
        (Outcome::Yes, lost) if lost == fenced(epochs[0]) => (&one, &other, epochs[0]),
        (lost, Outcome::Yes) if lost == fenced(epochs[1]) => (&other, &one, epochs[1]),
        both => panic!("{both:?}"),
    };
    let window = end(id, next, Seq::FIRST);
    assert_eq!(winner.finish(&window, Seq::FIRST, now).await, Outcome::Yes);
    let late = loser
        .adopt(id, Adoption::new(next, Seq::new(2), next.fresh()), now)
        .await;
    assert_eq!(late, Outcome::No(Refusal::Ended));
    names(&server, REPLICAS, 2).await;
    for journal in [&one, &other] {
        names(&server, &owned(journal), 0).await;
        assert_eq!(journal.usage().live, 0);
    }
}

#[tokio::test]
async fn who_died_with_an_adoption_is_found_by_the_next() {
    let server = Server::new().await;
    let (first, second) = (connect(&server).await, connect(&server).await);
    let id = Writer::opened(&first).await.id();
    drop(first);
    assert_eq!(ownerless(&second).await.0, id);
    let (next, now) = (epoch(2), SystemTime::now());
    assert_eq!(
        second
            .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, next), now)
            .await,
        Outcome::Yes
    );
    assert_eq!(
        server
            .cli(&["SISMEMBER", &owned(&second), &id.to_string()])
            .await,
        "1"
    );
    let third = connect(&server).await;
    drop(second);
    let (told, log) = ownerless(&third).await;
    assert_eq!((told, log.epoch), (id, next));
    names(&server, REPLICAS, 2).await;
}

#[tokio::test]
async fn what_the_owner_ended_meanwhile_stays_so() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (id, now) = (writer.id(), SystemTime::now());
    // Its end comes between the look at the log and its adoption.
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let adopted = there
        .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epoch(2)), now)
        .await;
    assert_eq!(adopted, Outcome::No(Refusal::Ended));
    // And the other way round.
    let writer = Writer::opened(&here).await;
    let id = writer.id();
    let adopted = there
        .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epoch(2)), now)
        .await;
    assert_eq!(adopted, Outcome::Yes);
    writer.stage_terminal();
    let fenced = Outcome::No(Refusal::Fenced { epoch: epoch(2) });
    assert_eq!(writer.finish().await, fenced);
    let window = end(id, epoch(2), Seq::FIRST);
    assert_eq!(there.finish(&window, Seq::FIRST, now).await, Outcome::Yes);
    names(&server, &owned(&here), 0).await;
    names(&server, &owned(&there), 0).await;
}

/// Whether or not it listens at the moment.
#[tokio::test]
async fn a_writer_is_told_that_its_log_was_taken() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    for listens in [true, false] {
        let writer = Writer::opened(&here).await;
        let (id, now) = (writer.id(), SystemTime::now());
        if !listens {
            // The word of it is lost.
            server
                .cli(&["ACL", "SETUSER", "default", "resetchannels"])
                .await;
        }
        let adopted = there
            .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epoch(2)), now)
            .await;
        if !listens {
            server
                .cli(&["ACL", "SETUSER", "default", "allchannels"])
                .await;
            server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        }
        assert_eq!(adopted, Outcome::Yes);
        let told = timeout(Duration::from_secs(20), here.next_notice()).await;
        assert_eq!(told, Ok((id, Notice::Taken)));
        writer.stage("too late");
        assert!(matches!(writer.append().await, Outcome::No(_)));
    }
}

#[tokio::test]
async fn a_server_that_stood_still_leaves_nobody_dead() {
    let server = Server::new().await;
    let (one, other) = (connect(&server).await, connect(&server).await);
    let writers = [Writer::opened(&one).await, Writer::opened(&other).await];
    server.pause();
    sleep(LEASE * 3).await;
    server.resume();
    assert_nobody_is_dead(&[&one, &other]).await;
    for writer in writers {
        writer.stands(1, false).await;
    }
    names(&server, REPLICAS, 2).await;
}

/// Nobody can give a sign of life there.
#[tokio::test]
async fn a_full_redis_ends_nothing() {
    let server = Server::new().await;
    let (one, other) = (connect(&server).await, connect(&server).await);
    let _writers = [Writer::opened(&one).await, Writer::opened(&other).await];
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert_nobody_is_dead(&[&one, &other]).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_nobody_is_dead(&[&one, &other]).await;
}

#[tokio::test]
async fn a_list_that_others_changed_is_made_good() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let _writer = Writer::opened(&journal).await;
    server.cli(&["DEL", REPLICAS, &owned(&journal)]).await;
    names(&server, &owned(&journal), 1).await;
    names(&server, REPLICAS, 1).await;
}

#[tokio::test]
async fn who_departs_leaves_nothing_but_what_it_has_not_ended() {
    let server = Server::new().await;
    let (one, other) = (connect(&server).await, connect(&server).await);
    let ended = Writer::opened(&one).await;
    ended.stage_terminal();
    assert_eq!(ended.finish().await, Outcome::Yes);
    let left = Writer::opened(&one).await;
    one.depart().await;
    assert_eq!(server.cli(&["SCARD", &owned(&one)]).await, "1");
    assert_eq!(ownerless(&other).await.0, left.id());
    other.depart().await;
    assert_eq!(server.cli(&["ZCARD", REPLICAS]).await, "1");
    left.stage_terminal();
    assert_eq!(left.finish().await, Outcome::Yes);
    one.depart().await;
    let left = server.cli(&["KEYS", "streamweld:{presence}:*"]).await;
    assert_eq!(left, "");
}
