//! Reading what another replica writes, while it writes, and telling it what to do.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Adoption, Closed, Epoch, Follow, Found, Journal, Notice, Order, Ordered, Outcome, Reader, Seq,
    Step, StreamId, Tail, View, Window, WindowConfig, window_until,
};
use streamweld_journal_redis::RedisJournal;
use streamweld_journal_redis::testing::{Server, until};
use tokio::time::timeout;

use crate::connect::connect;
use crate::writer::Writer;

pub(crate) async fn find(journal: &RedisJournal, id: StreamId) -> (Arc<Window>, Option<Follow>) {
    match journal.find(id, SystemTime::now()).await {
        Ok(Found::Here { window, follow, .. }) => (window, follow.map(|it| it.reading())),
        other => panic!("{other:?}"),
    }
}

/// Reads a window to its end, in time.
pub(crate) async fn read(window: &Arc<Window>) -> (String, Step) {
    let view = View {
        ids: true,
        control: true,
    };
    let mut reader = Reader::new(Arc::clone(window), Seq::ZERO, view);
    let mut text = Vec::new();
    loop {
        let step = timeout(Duration::from_secs(20), reader.next(1 << 20)).await;
        match step.expect("something comes") {
            Step::Run { bytes, .. } => text.extend_from_slice(&bytes),
            end => return (String::from_utf8(text).unwrap(), end),
        }
    }
}

/// Waits until a window shows so much.
pub(crate) async fn shows(window: &Arc<Window>, last: u64) {
    let what = format!("{window:?} shows {last}");
    until(&what, async || window.committed() >= Seq::new(last)).await;
}

/// Appends until it stands, whatever comes between.
pub(crate) async fn append(writer: &Writer<'_>) {
    while writer.append().await != Outcome::Yes {
        let Tail::Last { last, .. } = writer.tail().await else {
            panic!("it stands")
        };
        writer.window.commit(last);
        if last == writer.window.received() {
            return;
        }
    }
}

pub(crate) async fn next_order(journal: &RedisJournal) -> (StreamId, Order) {
    let notice = timeout(Duration::from_secs(10), journal.next_notice()).await;
    match notice.expect("an order comes") {
        (id, Notice::Order(order)) => (id, order),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_follower_shows_each_append_at_once() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    writer.stage("before");
    append(&writer).await;
    let (window, follow) = find(&there, writer.id()).await;
    assert!(follow.is_some());
    assert_eq!(window.committed(), Seq::new(2));
    let replica = there.replica();
    assert_eq!(
        next_order(&here).await,
        (writer.id(), Order::Readers { replica, any: true })
    );
    // Well below the time after which a follower looks by itself.
    for round in 3..50 {
        writer.stage(&format!("event {round}"));
        append(&writer).await;
        timeout(Duration::from_secs(2), shows(&window, round))
            .await
            .unwrap();
    }
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    let (followed, end) = read(&window).await;
    assert!(
        matches!(
            end,
            Step::End {
                sequenced: true,
                ..
            }
        ),
        "{end:?}"
    );
    assert_eq!(followed, read(&writer.window).await.0);
    assert_eq!(window.terminal(), writer.window.terminal());
}

/// Records are read in pages of 32; the last page may be full.
#[tokio::test]
async fn a_log_of_whole_pages_is_read_to_its_end() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    for records in [31, 32, 33, 64] {
        let writer = Writer::opened(&here).await;
        for round in 2..records {
            writer.stage(&format!("event {round}"));
            append(&writer).await;
        }
        writer.stage_terminal();
        assert_eq!(writer.finish().await, Outcome::Yes);
        let length = server.cli(&["XLEN", &writer.log()]).await;
        assert_eq!(length, records.to_string());
        let (window, _) = find(&there, writer.id()).await;
        assert_eq!(read(&window).await.0, read(&writer.window).await.0);
    }
}

#[tokio::test]
async fn whoever_begins_to_follow_at_any_moment_misses_nothing() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let write = async |writer: &Writer<'_>| {
        for round in 0..60 {
            writer.stage(&format!("event {round}"));
            append(writer).await;
            tokio::task::yield_now().await;
        }
        writer.stage_terminal();
        assert_eq!(writer.finish().await, Outcome::Yes);
    };
    for wait in 0..20 {
        let writer = Writer::opened(&here).await;
        let follow = async {
            tokio::time::sleep(Duration::from_micros(300 * wait)).await;
            let (window, _follow) = find(&there, writer.id()).await;
            read(&window).await
        };
        let ((), (followed, end)) = tokio::join!(write(&writer), follow);
        assert!(matches!(end, Step::End { .. }), "{end:?}");
        assert_eq!(followed, read(&writer.window).await.0);
    }
}

#[tokio::test]
async fn a_follower_survives_lost_connections() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    for round in 0..100 {
        match round % 20 {
            3 => _ = server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).await,
            13 => _ = server.cli(&["CLIENT", "KILL", "TYPE", "normal"]).await,
            _ => {}
        }
        writer.stage(&format!("event {round}"));
        append(&writer).await;
    }
    writer.stage_terminal();
    while writer.finish().await != Outcome::Yes {
        writer.tail().await;
    }
    let (followed, end) = read(&window).await;
    assert!(matches!(end, Step::End { .. }), "{end:?}");
    assert_eq!(followed, read(&writer.window).await.0);
}

#[tokio::test]
async fn appends_need_no_script() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    next_order(&here).await;
    server.cli(&["SCRIPT", "FLUSH"]).await;
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    timeout(Duration::from_secs(2), shows(&window, 2))
        .await
        .unwrap();
}

#[tokio::test]
async fn readers_share_a_follower_and_the_last_one_ends_it() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (first, follow) = find(&there, writer.id()).await;
    let (second, another) = find(&there, writer.id()).await;
    assert!(Arc::ptr_eq(&first, &second));
    let readers = format!("streamweld:{{{}}}:readers", writer.id());
    assert_eq!(server.cli(&["ZCARD", &readers]).await, "1");
    let replica = there.replica();
    let any = |any| (writer.id(), Order::Readers { replica, any });
    assert_eq!(next_order(&here).await, any(true));
    drop((follow, another));
    assert_eq!(next_order(&here).await, any(false));
    assert_eq!(server.cli(&["ZCARD", &readers]).await, "0");
    // It can be followed again.
    let (third, _follow) = find(&there, writer.id()).await;
    assert_eq!(next_order(&here).await, any(true));
    writer.stage("a");
    append(&writer).await;
    shows(&third, 2).await;
}

#[tokio::test]
async fn a_log_that_vanishes_under_its_readers_is_told() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    server.cli(&["FLUSHALL"]).await;
    let (_, end) = read(&window).await;
    assert!(matches!(end, Step::Closed(Closed::Incomplete)), "{end:?}");
    let found = there.find(writer.id(), SystemTime::now()).await;
    assert!(matches!(found, Ok(Found::Unknown)), "{found:?}");
}

#[tokio::test]
async fn a_follower_waits_while_redis_is_away() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let (window, _follow) = find(&there, writer.id()).await;
    server.pause();
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Unknown);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(window.closed(), None);
    server.resume();
    append(&writer).await;
    shows(&window, 2).await;
}

#[tokio::test]
async fn a_later_writer_that_knows_less_is_not_spliced_in() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    for text in ["a", "b"] {
        writer.stage(text);
        append(&writer).await;
    }
    let (window, _follow) = find(&there, writer.id()).await;
    // As a failover would that loses the last entry, and a new writer after it.
    server.cli(&["XDEL", &writer.log(), "1-3"]).await;
    let (epoch, now) = (Epoch::new(2).unwrap(), SystemTime::now());
    let adopted = here
        .adopt(
            writer.id(),
            Adoption::new(Epoch::FIRST, Seq::new(2), epoch),
            now,
        )
        .await;
    assert_eq!(adopted, Outcome::Yes);
    let (_, end) = read(&window).await;
    assert!(matches!(end, Step::Closed(Closed::Incomplete)), "{end:?}");
}

/// A takeover is lost, and with it what it had written; the next one has a lower epoch, so nothing is found behind what was
/// read last.
#[tokio::test]
async fn what_replaces_a_lost_takeover_under_a_lower_epoch_is_noticed() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let (lost, next) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    writer.stage("a");
    append(&writer).await;
    let (window, _follow) = find(&there, writer.id()).await;
    let [high, low] = [9, 5].map(|epoch| Epoch::new(epoch).unwrap());
    let lost = taking_over(&lost, writer.id(), high).await;
    lost.stage("lost");
    append(&lost).await;
    let shown = window_until(&window, |window| window.committed() == Seq::new(3));
    timeout(Duration::from_secs(20), shown).await.unwrap();
    for id in ["9-3", "9-2"] {
        server.cli(&["XDEL", &writer.log(), id]).await;
    }
    server.cli(&["XSETID", &writer.log(), "1-2"]).await;
    let next = taking_over(&next, writer.id(), low).await;
    for text in ["b", "c"] {
        next.stage(text);
        append(&next).await;
    }
    let (_, end) = read(&window).await;
    assert!(matches!(end, Step::Closed(Closed::Incomplete)), "{end:?}");
}

/// Adopts from the second entry of the first writer.
async fn taking_over(journal: &RedisJournal, id: StreamId, epoch: Epoch) -> Writer<'_> {
    let (last, now) = (Seq::new(2), SystemTime::now());
    let adoption = Adoption::new(Epoch::FIRST, last, epoch);
    assert_eq!(journal.adopt(id, adoption, now).await, Outcome::Yes);
    let window = Window::new(id, epoch, now, WindowConfig::default());
    window.begin_after(last);
    Writer { journal, window }
}

#[tokio::test]
async fn a_stop_reaches_the_writer() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let stop = Order::Stop { admin: true };
    assert_eq!(there.order(writer.id(), stop).await, Ok(Ordered::Passed));
    assert_eq!(next_order(&here).await, (writer.id(), stop));
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    assert_eq!(there.order(writer.id(), stop).await, Ok(Ordered::NoWriter));
    let unknown = StreamId::generate(SystemTime::now());
    assert_eq!(there.order(unknown, stop).await, Ok(Ordered::NoWriter));
}

#[tokio::test]
async fn a_stop_that_was_not_heard_is_found() {
    let server = Server::new().await;
    let here = connect(&server).await;
    let writer = Writer::opened(&here).await;
    // Written, and the word of it was lost.
    server.cli(&["HSET", &writer.meta(), "stop", "0"]).await;
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    let stop = Order::Stop { admin: false };
    assert_eq!(next_order(&here).await, (writer.id(), stop));
}

#[tokio::test]
async fn a_new_writer_learns_what_waits() {
    let server = Server::new().await;
    let journals = (
        connect(&server).await,
        connect(&server).await,
        connect(&server).await,
    );
    let (old, new, reader) = &journals;
    let writer = Writer::opened(old).await;
    let (window, _follow) = find(reader, writer.id()).await;
    let (epoch, now) = (Epoch::new(2).unwrap(), SystemTime::now());
    assert_eq!(
        new.adopt(
            writer.id(),
            Adoption::new(Epoch::FIRST, Seq::FIRST, epoch),
            now
        )
        .await,
        Outcome::Yes
    );
    let replica = reader.replica();
    let readers = Order::Readers { replica, any: true };
    assert_eq!(next_order(new).await, (writer.id(), readers));
    writer.window.begin_epoch(epoch);
    let adopted = Writer {
        journal: new,
        window: Arc::clone(&writer.window),
    };
    adopted.stage("of the new writer");
    assert_eq!(adopted.append().await, Outcome::Yes);
    timeout(Duration::from_secs(2), shows(&window, 2))
        .await
        .unwrap();
}

#[tokio::test]
async fn who_only_looks_sees_what_stands_and_is_no_reader() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&here).await;
    let look = async || match there.find(writer.id(), SystemTime::now()).await {
        Ok(Found::Here { window, follow, .. }) => (window, follow.expect("it runs")),
        other => panic!("{other:?}"),
    };
    let readers = format!("streamweld:{{{}}}:readers", writer.id());
    for last in 2..5 {
        writer.stage("a");
        append(&writer).await;
        assert_eq!(look().await.0.committed(), Seq::new(last));
    }
    assert_eq!(server.cli(&["EXISTS", &readers]).await, "0");

    let (window, follow) = look().await;
    let reads = follow.reading();
    let (replica, id) = (there.replica(), writer.id());
    let any = |any| (id, Order::Readers { replica, any });
    assert_eq!(next_order(&here).await, any(true));
    writer.stage("b");
    append(&writer).await;
    shows(&window, 5).await;
    // Whoever goes on looking does not stand for who has left.
    drop(reads);
    let looks = async {
        loop {
            look().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        left = next_order(&here) => assert_eq!(left, any(false)),
        () = looks => {}
    }
    writer.stage("c");
    append(&writer).await;
    assert_eq!(look().await.0.committed(), Seq::new(6));
    server.cli(&["FLUSHALL"]).await;
    let told = async || match there.find(id, SystemTime::now()).await {
        Ok(Found::Here { window, .. }) => window.closed() == Some(Closed::Incomplete),
        other => matches!(other, Ok(Found::Unknown)),
    };
    assert!(told().await);
}
