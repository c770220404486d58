//! What writers keep beside their entries, as whoever continues the log is given it.

use std::time::SystemTime;

use streamweld_journal::{
    Epoch, Journal, Kind, Outcome, Seq, Step, StreamId, Window, WindowConfig,
};
use streamweld_journal_redis::testing::{Relay, Server, until};
use streamweld_journal_redis::{Config, RedisJournal, Target, Timing};

use crate::connect::{config, connect, connect_to};
use crate::follow::{append, find, next_order, read, shows};
use crate::replaced::{copy_of, fall_back, heal};
use crate::writer::Writer;

async fn beside(journal: &RedisJournal, id: StreamId, through: u64) -> String {
    let pieces = journal.beside(id, Seq::new(through)).await;
    let pieces = pieces.expect("in reach").concat();
    String::from_utf8(pieces).unwrap()
}

/// The pieces of entries from 2 on, each with its own number.
fn numbers(entries: std::ops::RangeInclusive<u64>) -> String {
    entries.map(|number| format!("{number} ")).collect()
}

async fn append_numbers(writer: &Writer<'_>, entries: std::ops::RangeInclusive<u64>) {
    for number in entries {
        writer.stage_beside("text", &format!("{number} "));
        append(writer).await;
    }
}

#[tokio::test]
async fn it_stands_with_its_entries_and_readers_pass_over_it() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    // From the very first entry on.
    let now = SystemTime::now();
    let window = Window::new(
        StreamId::generate(now),
        Epoch::FIRST,
        now,
        WindowConfig::default(),
    );
    let mut staging = window.stage(now);
    staging.push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
    staging.beside(b"1 ");
    drop(staging);
    let writer = Writer {
        journal: &here,
        window,
    };
    assert_eq!(writer.open().await, Outcome::Yes);
    writer.window.commit(Seq::FIRST);
    let id = writer.id();
    let (window, _follow) = find(&there, id).await;
    next_order(&here).await;
    append_numbers(&writer, 2..=40).await;
    shows(&window, 40).await;
    writer.stage("without");
    append(&writer).await;
    assert_eq!(beside(&there, id, 41).await, numbers(1..=40));
    assert_eq!(beside(&there, id, 7).await, numbers(1..=7));
    // More than is read at once.
    append_numbers(&writer, 42..=700).await;
    let all = format!("{}{}", numbers(1..=40), numbers(42..=700));
    assert_eq!(beside(&there, id, 700).await, all);
    writer.stage_beside("last", "701 ");
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let whole = format!("{all}701 ");
    for through in [702, 703, u64::MAX] {
        assert_eq!(beside(&there, id, through).await, whole);
    }
    // Who has followed, and who comes now.
    let elsewhere = connect(&server).await;
    for window in [window, find(&elsewhere, id).await.0] {
        let (text, end) = read(&window).await;
        assert!(matches!(end, Step::End { .. }), "{end:?}");
        assert_eq!(text, read(&writer.window).await.0);
    }
    let log = server.cli(&["XRANGE", &writer.log(), "-", "+"]).await;
    let records = log.lines().filter(|line| *line == "r").count();
    let pieces = log.lines().filter(|line| *line == "t").count();
    assert_eq!((records, pieces), (701, 700));
}

/// The new writer's window has nothing of what is beside earlier entries; the journal has.
#[tokio::test]
async fn it_goes_on_with_the_next_writer() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    append_numbers(&writer, 2..=20).await;
    let next = Writer::adopting(&there, writer.id(), 2, Seq::new(20)).await;
    assert_eq!(beside(&there, writer.id(), 20).await, numbers(2..=20));
    append_numbers(&next, 21..=40).await;
    let third = connect(&server).await;
    assert_eq!(beside(&third, writer.id(), 40).await, numbers(2..=40));
}

#[tokio::test]
async fn it_is_appended_again_with_entries_that_were_lost() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    append_numbers(&writer, 2..=5).await;
    let copy = copy_of(&server).await;
    append_numbers(&writer, 6..=9).await;
    fall_back(&server, &copy).await;
    assert_eq!(beside(&there, writer.id(), 9).await, numbers(2..=5));
    writer.stage_beside("text", "10 ");
    assert_eq!(writer.append().await, Outcome::Unknown);
    heal(&writer, 5).await;
    assert_eq!(beside(&there, writer.id(), 10).await, numbers(2..=10));
}

/// The log is made anew without the record behind the gap; those before keep what is beside them.
#[tokio::test]
async fn it_outlives_a_record_that_is_taken_back() {
    let server = Server::new().await;
    let relay = Relay::to(&server).await;
    let timing = Timing {
        answer: std::time::Duration::from_secs(20),
        ..Timing::default()
    };
    let target = Target::parse(&relay.url()).unwrap();
    let here = connect_to(target, Config { timing, ..config() }).await;
    let there = connect(&server).await;
    let writer = Writer::opened(&here).await;
    append_numbers(&writer, 2..=3).await;
    let copy = copy_of(&server).await;
    append_numbers(&writer, 4..=5).await;
    writer.stage_beside("text", "6 ");
    relay.hold();
    let late = async {
        fall_back(&server, &copy).await;
        relay.release();
    };
    let (outcome, ()) = tokio::join!(writer.append(), late);
    assert_eq!(outcome, Outcome::Unknown);
    // What stands behind the gap is as good as not there.
    assert_eq!(beside(&there, writer.id(), 6).await, numbers(2..=3));
    writer.stands(3, false).await;
    assert_eq!(beside(&there, writer.id(), 6).await, numbers(2..=3));
    heal(&writer, 3).await;
    assert_eq!(beside(&there, writer.id(), 6).await, numbers(2..=6));
}

#[tokio::test]
async fn it_is_asked_for_while_redis_is_away_in_vain() {
    let mut server = Server::new().await;
    let here = connect(&server).await;
    let writer = Writer::opened(&here).await;
    append_numbers(&writer, 2..=3).await;
    server.kill();
    until("that is noticed", async || {
        here.beside(writer.id(), Seq::new(3)).await.is_err()
            && here.kept_request(writer.id()).await.is_err()
            && here.replicas().await.is_err()
    })
    .await;
}
