//! A server whose data are replaced by older ones below a connection that stays.
//!
//! Redis keeps its connections when it is demoted, takes the data of another, and is promoted again; over loopback all
//! that takes two milliseconds. An append that goes out afterwards would be taken though its predecessor is lost.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Adoption, Epoch, Found, Journal, Kind, Notice, Outcome, Refusal, Seq, StreamId, Tail, Window,
    WindowConfig,
};
use streamweld_journal_redis::testing::{Relay, Server, Setup, until};
use streamweld_journal_redis::{Config, RedisJournal, Target, Timing};
use tokio::time::timeout;

use crate::connect::{config, connect, connect_to, connect_with};
use crate::writer::Writer;

/// A server that has what `server` has now, and nothing later.
pub(crate) async fn copy_of(server: &Server) -> Server {
    let copy = Setup::new().replica_of(server).start().await;
    copy.wait_replicating().await;
    copy.cli(&["REPLICAOF", "NO", "ONE"]).await;
    copy
}

/// Demotes it, lets it take the data of the copy, and promotes it.
pub(crate) async fn fall_back(server: &Server, copy: &Server) {
    let port = copy.port().to_string();
    server.cli(&["REPLICAOF", "127.0.0.1", &port]).await;
    server.wait_replicating().await;
    server.cli(&["REPLICAOF", "NO", "ONE"]).await;
}

async fn append(writer: &Writer<'_>, text: &str) {
    writer.stage(text);
    assert_eq!(writer.append().await, Outcome::Yes);
}

/// Appends everything behind `last`, which is what really stands.
pub(crate) async fn heal(writer: &Writer<'_>, last: u64) {
    writer.stands(last, false).await;
    let received = writer.window.received();
    let append = writer
        .journal
        .append(&writer.window, Seq::new(last), received);
    assert_eq!(append.await, Outcome::Yes);
    writer.window.commit(received);
}

/// Whoever comes elsewhere is shown all of it, to its end.
async fn ends_whole(writer: &Writer<'_>, elsewhere: &RedisJournal) {
    append(writer, "one more").await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    // Whoever is out of reach for a moment asks again; a gap would stay one.
    let mut found = None;
    until("it is found", async || {
        found = elsewhere.find(writer.id(), SystemTime::now()).await.ok();
        found.is_some()
    })
    .await;
    let Some(Found::Here { window, .. }) = found else {
        panic!("it is not found: {found:?}")
    };
    assert!(window.terminal().is_some(), "a part only");
    for seq in 1..=writer.window.received().get() {
        let seq = Seq::new(seq);
        assert!(window.digest(seq).is_some(), "{seq} is missing");
        assert_eq!(window.digest(seq), writer.window.digest(seq));
    }
}

async fn check_idle(setup: Setup) {
    let server = setup.start().await;
    let (journal, elsewhere) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    let copy = copy_of(&server).await;
    append(&writer, "b").await;
    append(&writer, "c").await;
    fall_back(&server, &copy).await;
    writer.stage("d");
    assert_eq!(writer.append().await, Outcome::Unknown);
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "2");
    heal(&writer, 2).await;
    ends_whole(&writer, &elsewhere).await;
}

#[tokio::test]
async fn an_append_on_an_idle_connection_leaves_no_gap() {
    check_idle(Setup::new()).await;
}

#[tokio::test]
async fn nor_where_the_new_data_are_put_in_at_once() {
    check_idle(Setup::new().config("repl-diskless-load", "swapdb")).await;
}

/// The data are replaced while the append is on its way: it is taken, and taken back.
#[tokio::test]
async fn an_append_under_way_leaves_no_gap() {
    let server = Server::new().await;
    let relay = Relay::to(&server).await;
    let timing = Timing {
        answer: Duration::from_secs(20),
        ..Timing::default()
    };
    let target = Target::parse(&relay.url()).unwrap();
    let journal = connect_to(target, Config { timing, ..config() }).await;
    let elsewhere = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    let copy = copy_of(&server).await;
    append(&writer, "b").await;
    append(&writer, "c").await;
    writer.stage("d");
    relay.hold();
    let late = async {
        fall_back(&server, &copy).await;
        relay.release();
    };
    let (outcome, ()) = tokio::join!(writer.append(), late);
    assert_eq!(outcome, Outcome::Unknown);
    let ids = async || {
        let log = server.cli(&["XRANGE", &writer.log(), "-", "+"]).await;
        let ids = log.lines().filter(|line| line.starts_with("1-"));
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["1-1", "1-2", "1-5"], "that is the gap");
    writer.stands(2, false).await;
    assert_eq!(ids().await, ["1-1", "1-2"]);
    heal(&writer, 2).await;
    assert_eq!(ids().await, ["1-1", "1-2", "1-5"]);
    ends_whole(&writer, &elsewhere).await;
}

/// Its writer dies before it has seen that: who takes over takes it back, or nobody could ever end the generation.
#[tokio::test]
async fn a_record_behind_a_gap_is_taken_back_by_who_takes_over() {
    let server = Server::new().await;
    let (journal, elsewhere) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    append(&writer, "lost").await;
    append(&writer, "behind the gap").await;
    // As if the last had been under way when the one before it was lost.
    server.cli(&["XDEL", &writer.log(), "1-3"]).await;
    let tail = elsewhere.tail(writer.id()).await;
    let Ok(Tail::Last { epoch, last, .. }) = tail else {
        panic!("it can be read: {tail:?}")
    };
    assert_eq!((epoch, last), (Epoch::FIRST, Seq::new(2)));
    let next = epoch.fresh();
    let adopted = elsewhere.adopt(
        writer.id(),
        Adoption::new(Epoch::FIRST, last, next),
        SystemTime::now(),
    );
    assert_eq!(adopted.await, Outcome::Yes);
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "3");
}

/// A writer may have had one under way on each of two connections, and the one before may have left another.
#[tokio::test]
async fn several_records_behind_a_gap_are_taken_back() {
    let server = Server::new().await;
    let (journal, elsewhere) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    append(&writer, "lost").await;
    for _ in 0..3 {
        append(&writer, "behind the gap").await;
    }
    server.cli(&["XDEL", &writer.log(), "1-3"]).await;
    let tail = elsewhere.tail(writer.id()).await;
    assert!(
        matches!(tail, Ok(Tail::Last { last, .. }) if last == Seq::new(2)),
        "{tail:?}"
    );
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "2");
    heal(&writer, 2).await;
    ends_whole(&writer, &elsewhere).await;
}

/// One that was on its way may come behind what was on its way before it.
#[tokio::test]
async fn nothing_ends_behind_a_record_that_has_no_place() {
    let server = Server::new().await;
    let (journal, elsewhere) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    append(&writer, "lost").await;
    append(&writer, "behind the gap").await;
    server.cli(&["XDEL", &writer.log(), "1-3"]).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Unknown);
    assert_eq!(server.cli(&["XLEN", &writer.log()]).await, "3");
    writer.stands(2, false).await;

    // A takeover is lost, and not what was written under it.
    let next = Writer::adopting(&elsewhere, writer.id(), 2, Seq::new(2)).await;
    append(&next, "behind the mark").await;
    server.cli(&["XDEL", &writer.log(), "2-2"]).await;
    next.stage_terminal();
    assert_eq!(next.finish().await, Outcome::Unknown);
    let tail = elsewhere.tail(writer.id()).await;
    assert!(
        matches!(tail, Ok(Tail::Last { epoch: Epoch::FIRST, last, terminal: false, .. }) if last == Seq::new(2)),
        "{tail:?}"
    );
    // The one before has what is missing.
    let terminal = writer.window.received();
    let now = SystemTime::now();
    let ends = journal.finish(&writer.window, Seq::new(2), now).await;
    assert_eq!(ends, Outcome::Yes);
    writer.window.commit(terminal);
    writer.stands(terminal.get(), true).await;
}

/// Many times in a row, while appends go on without a pause.
#[tokio::test(flavor = "multi_thread")]
async fn appends_that_flow_meanwhile_leave_no_gap() {
    const TIMES: usize = 10;
    let server = Server::new().await;
    let (journal, elsewhere) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&journal).await;
    let done = std::sync::atomic::AtomicBool::new(false);
    let falls = async {
        for _ in 0..TIMES {
            let copy = copy_of(&server).await;
            let stood = server.cli(&["XLEN", &writer.log()]).await;
            until("something is appended", async || {
                server.cli(&["XLEN", &writer.log()]).await != stood
            })
            .await;
            fall_back(&server, &copy).await;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let appends = async {
        let mut last = Seq::FIRST;
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let received = writer.stage("x");
            match journal.append(&writer.window, last, received).await {
                Outcome::Yes => last = received,
                Outcome::Unknown => {
                    let Tail::Last {
                        last: tail, digest, ..
                    } = writer.tail().await
                    else {
                        panic!("it stands")
                    };
                    assert_eq!(writer.window.digest(tail), Some(digest));
                    last = tail;
                }
                Outcome::No(refusal) => panic!("{refusal}"),
            }
        }
        last
    };
    let (last, ()) = tokio::join!(appends, falls);
    if last < writer.window.received() {
        heal(&writer, last.get()).await;
    }
    writer.window.commit(writer.window.received());
    ends_whole(&writer, &elsewhere).await;
}

#[tokio::test]
async fn an_older_dump_that_is_loaded_is_noticed() {
    let server = Server::new().await;
    let (journal, elsewhere) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    assert_eq!(server.cli(&["SAVE"]).await, "OK");
    append(&writer, "b").await;
    assert_eq!(server.cli(&["DEBUG", "RELOAD", "NOSAVE"]).await, "OK");
    writer.stage("c");
    assert_eq!(writer.append().await, Outcome::Unknown);
    heal(&writer, 2).await;
    ends_whole(&writer, &elsewhere).await;
}

#[tokio::test]
async fn a_server_that_is_emptied_is_noticed_at_once() {
    let server = Server::new().await;
    let journal = Arc::new(connect(&server).await);
    let writer = Writer::opened(&journal).await;
    append(&writer, "a").await;
    server.cli(&["FLUSHALL"]).await;
    writer.stage("b");
    // Whichever is heard first.
    let outcome = writer.append().await;
    assert!(
        matches!(outcome, Outcome::Unknown | Outcome::No(Refusal::Vanished)),
        "{outcome:?}"
    );
    assert_eq!(writer.tail().await, Tail::None);
    assert_eq!(server.cli(&["EXISTS", &writer.log()]).await, "0");
}

/// Its owner has done with it, so nobody would append it again.
#[tokio::test]
async fn an_end_that_was_lost_is_written_again() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let writer = Writer::opened(&journal).await;
    append(&writer, "kept").await;
    let copy = copy_of(&server).await;
    append(&writer, "lost").await;
    let end = writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    fall_back(&server, &copy).await;
    let elsewhere = connect(&server).await;
    until("it stands again", async || {
        let tail = elsewhere.tail(writer.id()).await;
        matches!(tail, Ok(Tail::Last { terminal: true, last, .. }) if last == end)
    })
    .await;
    let found = elsewhere.find(writer.id(), SystemTime::now()).await;
    let Ok(Found::Here { window, .. }) = found else {
        panic!("{found:?}")
    };
    let shown = |window: &Window| window.staged(Seq::ZERO).runs.concat();
    assert_eq!(shown(&window), shown(&writer.window));
}

/// More was lost with it than its owner's ring holds: what stands is nobody's, and has to be ended in another way.
#[tokio::test]
async fn an_end_that_cannot_be_written_again_is_told() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let (id, now) = (StreamId::generate(SystemTime::now()), SystemTime::now());
    let small = WindowConfig { max_bytes: 4 << 10 };
    let window = Window::new(id, Epoch::FIRST, now, small);
    window.set_label(Bytes::from_static(b"label"));
    let mut staging = window.stage(now);
    staging.push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
    drop(staging);
    let writer = Writer {
        journal: &journal,
        window,
    };
    assert_eq!(writer.open().await, Outcome::Yes);
    writer.window.commit(Seq::FIRST);
    append(&writer, "kept").await;
    let copy = copy_of(&server).await;
    while writer.window.earliest() <= Seq::new(3) {
        append(&writer, &"lost".repeat(100)).await;
    }
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    fall_back(&server, &copy).await;
    let told = async {
        loop {
            if let (id, Notice::EndLost(log)) = journal.next_notice().await {
                return (id, log.epoch, log.label);
            }
        }
    };
    let told = timeout(Duration::from_secs(20), told).await;
    let label = Bytes::from_static(b"label");
    assert_eq!(told, Ok((writer.id(), Epoch::FIRST, label)));
    let adoption = Adoption::new(Epoch::FIRST, Seq::new(2), Epoch::FIRST.fresh());
    let adopted = journal.adopt(writer.id(), adoption, now).await;
    assert_eq!(adopted, Outcome::Yes);
}

/// Its owner remembers no more than that it has done with it.
#[tokio::test]
async fn an_end_that_nobody_has_any_more_is_told() {
    let server = Server::new().await;
    let journal = connect_with(
        &server,
        Config {
            cached: Duration::ZERO,
            ..config()
        },
    )
    .await;
    let writer = Writer::opened(&journal).await;
    append(&writer, "kept").await;
    let copy = copy_of(&server).await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let owned = format!("streamweld:{{presence}}:owned:{:032x}", journal.replica().0);
    until("it is off the list", async || {
        journal.sweep(SystemTime::now());
        server.cli(&["EXISTS", &owned]).await == "0"
    })
    .await;
    fall_back(&server, &copy).await;
    let told = async {
        loop {
            if let (id, Notice::EndLost(log)) = journal.next_notice().await {
                return (id, log.epoch);
            }
        }
    };
    let told = timeout(Duration::from_secs(10), told).await;
    assert_eq!(told, Ok((writer.id(), Epoch::FIRST)));
}
