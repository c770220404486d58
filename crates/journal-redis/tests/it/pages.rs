//! Reading what a window does not hold from Redis, in pages; windows that begin in mid-log; logs with holes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_journal::{
    Adoption, Closed, Epoch, Follow, Found, Gone, Journal, Kind, Outcome, Reader, Seq, Step,
    StreamId, View, Window, WindowConfig,
};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, RedisJournal};
use tokio::time::timeout;

use crate::connect::{config, connect, connect_with};
use crate::writer::Writer;

const VIEW: View = View {
    ids: true,
    control: true,
};

/// Windows that are filled from Redis hold so little.
fn small() -> Config {
    Config {
        window: WindowConfig {
            max_bytes: 16 << 10,
        },
        ..config()
    }
}

/// A log of `open` and `events` events with a record of its own for each, which has its end or not.
async fn written(journal: &RedisJournal, events: u64, ended: bool) -> Writer<'_> {
    let writer = Writer::opened(journal).await;
    for event in 0..events {
        writer.stage(&format!("{event:0>120}"));
        assert_eq!(writer.append().await, Outcome::Yes);
    }
    if ended {
        writer.stage_terminal();
        assert_eq!(writer.finish().await, Outcome::Yes);
    }
    writer
}

async fn find(journal: &RedisJournal, id: StreamId, after: u64) -> (Arc<Window>, Option<Follow>) {
    let (window, follow) = look(journal, id, after).await;
    (window, follow.map(|it| it.reading()))
}

/// The same for one who does not read yet.
async fn look(journal: &RedisJournal, id: StreamId, after: u64) -> (Arc<Window>, Option<Follow>) {
    let now = SystemTime::now();
    match journal.find_after(id, Seq::new(after), now).await {
        Ok(Found::Here { window, follow, .. }) => (window, follow),
        other => panic!("{other:?}"),
    }
}

/// What is read up to an end, or up to `last`.
async fn read(window: &Arc<Window>, after: u64, last: u64) -> (Vec<u8>, Option<Step>) {
    let mut reader = Reader::new(Arc::clone(window), Seq::new(after), VIEW);
    let mut given = Vec::new();
    while reader.cursor() < Seq::new(last) {
        let step = timeout(Duration::from_secs(20), reader.next(256 << 10)).await;
        match step.expect("something comes") {
            Step::Run { bytes, .. } => given.extend_from_slice(&bytes),
            end => return (given, Some(end)),
        }
    }
    (given, None)
}

/// Everything behind `after` up to `last` is read, and is what `writer` has written.
async fn reads(window: &Arc<Window>, writer: &Writer<'_>, after: u64, last: u64) {
    let (text, end) = read(window, after, last).await;
    assert!(end.is_none(), "{end:?} after {after}");
    // Not shown: it is long.
    assert!(text == bytes(writer, after, last), "after {after}");
}

/// What a writer's window holds behind `after`, up to `last`.
fn bytes(writer: &Writer<'_>, after: u64, last: u64) -> Vec<u8> {
    let batch = writer
        .window
        .staged_through(Seq::new(after), Seq::new(last));
    batch.runs.concat()
}

async fn prepared(window: &Arc<Window>, after: u64) -> Result<(), Gone> {
    let mut reader = Reader::new(Arc::clone(window), Seq::new(after), VIEW);
    let prepared = timeout(Duration::from_secs(20), reader.prepare()).await;
    prepared.expect("it is known")
}

/// How often the log was read.
async fn xranges(server: &Server) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]).await;
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_xrange:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

async fn forget(server: &Server) {
    assert_eq!(server.cli(&["CONFIG", "RESETSTAT"]).await, "OK");
}

#[tokio::test]
async fn a_log_is_read_in_pages_and_not_by_event() {
    const EVENTS: u64 = 3_000;
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect_with(&server, small()).await);
    let writer = written(&here, EVENTS, false).await;
    let last = EVENTS + 1;
    let (window, _follow) = find(&there, writer.id(), last).await;
    assert!(window.earliest() > Seq::new(last - 50));
    forget(&server).await;
    reads(&window, &writer, 0, last).await;
    // The first one does not know yet how large records are, and takes some 64 of them.
    let read = xranges(&server).await;
    assert!((6..12).contains(&read), "{read}");
}

#[tokio::test]
async fn a_window_begins_where_its_first_reader_stands() {
    let server = Server::new().await;
    let here = connect(&server).await;
    for ended in [false, true] {
        let writer = written(&here, 600, ended).await;
        let last = writer.window.committed().get();
        // The last event.
        let end = last - u64::from(ended);
        for after in [590, 400, 17, 2, 1, 0] {
            let there = connect(&server).await;
            forget(&server).await;
            let (window, _follow) = look(&there, writer.id(), after).await;
            let earliest = window.earliest().get();
            assert_eq!(earliest, after.max(1), "what holds the cursor is read");
            assert_eq!(window.committed(), Seq::new(last));
            assert_eq!(window.terminal(), writer.window.terminal());
            assert_eq!(
                xranges(&server).await,
                (last - after) / 32 + 1,
                "after {after}"
            );
            // One that stands there, and one that stands before.
            for from in [after, after / 2] {
                reads(&window, &writer, from, end).await;
            }
        }
    }
}

#[tokio::test]
async fn those_who_come_later_to_a_window_read_what_lies_before_it() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = written(&here, 300, false).await;
    let (window, _follow) = find(&there, writer.id(), 250).await;
    let (same, _other) = find(&there, writer.id(), 10).await;
    assert!(Arc::ptr_eq(&window, &same));
    assert_eq!(same.earliest(), Seq::new(250));
    reads(&same, &writer, 10, 301).await;
    // And go on with what comes.
    writer.stage("more");
    assert_eq!(writer.append().await, Outcome::Yes);
    reads(&same, &writer, 10, 302).await;
}

#[tokio::test]
async fn the_writers_own_readers_read_what_its_ring_has_let_go() {
    let server = Server::new().await;
    let journal = connect(&server).await;
    let ring = WindowConfig {
        max_bytes: 16 << 10,
    };
    let now = SystemTime::now();
    let window = Window::new(StreamId::generate(now), Epoch::FIRST, now, ring);
    window
        .stage(now)
        .push(Kind::Open, |out| out.extend_from_slice(b"data: {}\n"));
    let writer = Writer {
        journal: &journal,
        window,
    };
    assert_eq!(writer.open().await, Outcome::Yes);
    writer.window.commit(Seq::FIRST);
    let mut all = bytes(&writer, 0, 1);
    for event in 2..=500 {
        writer.stage(&"x".repeat(200));
        all.extend(bytes(&writer, event - 1, event));
        assert_eq!(writer.append().await, Outcome::Yes);
    }
    assert!(writer.window.earliest() > Seq::new(400));
    let (text, end) = read(&writer.window, 0, 500).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(text, all);
}

/// Each change of the writer begins ids anew; the log goes on.
#[tokio::test]
async fn a_place_is_found_whoever_wrote_it() {
    let server = Server::new().await;
    let mut journals = vec![connect(&server).await];
    for _ in 0..3 {
        journals.push(connect(&server).await);
    }
    let mut writer = written(&journals[0], 40, false).await;
    for (journal, epoch) in journals.iter().skip(1).zip(2..) {
        let epoch = Epoch::new(epoch).unwrap();
        let expected = writer.window.committed();
        let adopted = journal.adopt(
            writer.id(),
            Adoption::new(writer.window.epoch(), expected, epoch),
            SystemTime::now(),
        );
        assert_eq!(adopted.await, Outcome::Yes);
        writer.window.begin_epoch(epoch);
        writer = Writer {
            journal,
            window: Arc::clone(&writer.window),
        };
        for event in 0..40 {
            writer.stage(&format!("{epoch} {event}"));
            assert_eq!(writer.append().await, Outcome::Yes);
        }
    }
    let last = writer.window.committed().get();
    for after in (0..last)
        .step_by(13)
        .chain([40, 41, 42, 80, 81, 82, last - 1])
    {
        let there = connect(&server).await;
        let (window, _follow) = find(&there, writer.id(), after).await;
        assert!(
            window.earliest() <= Seq::new(after + 1),
            "{window:?} for {after}"
        );
        for from in [after, after / 3] {
            reads(&window, &writer, from, last).await;
        }
    }
}

#[tokio::test]
async fn a_page_counts_for_as_long_as_it_is_held() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect_with(&server, small()).await);
    let writer = written(&here, 2_000, false).await;
    let (window, _follow) = find(&there, writer.id(), 2_000).await;
    let before = there.usage().bytes;
    let mut readers: Vec<Reader> = (0..3)
        .map(|_| Reader::new(Arc::clone(&window), Seq::ZERO, VIEW))
        .collect();
    for reader in &mut readers {
        assert!(matches!(reader.next(1).await, Step::Run { .. }));
    }
    let held = there.usage().bytes - before;
    assert!(((3 * 8) << 10..(3 * 300) << 10).contains(&held), "{held}");
    drop(readers);
    assert_eq!(there.usage().bytes, before);
}

#[tokio::test]
async fn a_trimmed_beginning_is_told_and_the_rest_is_there() {
    let server = Server::new().await;
    let here = connect(&server).await;
    for ended in [false, true] {
        let writer = written(&here, 100, ended).await;
        let end = writer.window.committed().get() - u64::from(ended);
        let trim = ["XTRIM", &writer.log(), "MINID", "=", "1-50"];
        assert_eq!(server.cli(&trim).await, "49");
        for after in [0, 1, 30, 48] {
            let there = connect(&server).await;
            let (window, _follow) = find(&there, writer.id(), after).await;
            let gone = Gone {
                earliest: Seq::new(50),
            };
            assert_eq!(prepared(&window, after).await, Err(gone), "after {after}");
            assert_eq!(prepared(&window, 0).await, Err(gone));
            for from in [49, 50, 60] {
                reads(&window, &writer, from, end).await;
            }
        }
    }
}

#[tokio::test]
async fn a_gap_is_come_to_and_no_further() {
    let server = Server::new().await;
    let here = connect(&server).await;
    let writer = written(&here, 100, false).await;
    let delete = ["XDEL", &writer.log(), "1-50", "1-51"];
    assert_eq!(server.cli(&delete).await, "2");
    for after in [0, 20, 48, 49, 50, 51, 70] {
        let there = connect(&server).await;
        let (window, _follow) = find(&there, writer.id(), after).await;
        if after < 50 {
            let (text, end) = read(&window, after, 101).await;
            assert!(text == bytes(&writer, after, 49), "after {after}");
            assert!(
                matches!(end, Some(Step::Closed(Closed::Incomplete))),
                "{end:?}"
            );
        } else if after < 51 {
            let earliest = Seq::new(52);
            assert_eq!(prepared(&window, after).await, Err(Gone { earliest }));
        } else {
            reads(&window, &writer, after, 101).await;
            // And for one that comes with an older cursor.
            let (text, end) = read(&window, 20, 101).await;
            assert_eq!(text, bytes(&writer, 20, 49));
            assert!(matches!(end, Some(Step::Overtaken { .. })), "{end:?}");
        }
    }
}

#[tokio::test]
async fn a_reader_waits_for_its_page_while_redis_is_away() {
    let mut server = streamweld_journal_redis::testing::Setup::new()
        .config("appendonly", "yes")
        .config("appendfsync", "no")
        .start()
        .await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = written(&here, 100, false).await;
    let (window, _follow) = find(&there, writer.id(), 90).await;
    server.kill();
    let reading = tokio::spawn({
        let window = Arc::clone(&window);
        async move { read(&window, 5, 101).await }
    });
    // Those who need nothing of it read on.
    reads(&window, &writer, 90, 101).await;
    assert!(!reading.is_finished());
    server.restart().await;
    let (text, end) = reading.await.unwrap();
    assert!(end.is_none(), "{end:?}");
    assert_eq!(text, bytes(&writer, 5, 101));
}

#[tokio::test]
async fn a_reader_does_not_wait_for_longer_than_a_log_is_kept() {
    let mut server = Server::new().await;
    let here = connect(&server).await;
    let short = Config {
        retention: Duration::from_millis(300),
        ..config()
    };
    let there = connect_with(&server, short).await;
    let writer = written(&here, 100, false).await;
    let (window, _follow) = find(&there, writer.id(), 90).await;
    server.kill();
    let (text, end) = read(&window, 5, 101).await;
    assert_eq!(text, b"");
    assert!(matches!(end, Some(Step::Overtaken { .. })), "{end:?}");
}

#[tokio::test]
async fn a_reader_whose_log_is_gone_is_told() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = written(&here, 100, true).await;
    let (window, _) = find(&there, writer.id(), 90).await;
    assert_eq!(server.cli(&["DEL", &writer.log()]).await, "1");
    let end = read(&window, 5, 101).await;
    assert!(matches!(end, (text, Some(Step::Overtaken { .. })) if text.is_empty()));
    until("those who are behind it are not concerned", async || {
        read(&window, 90, 101).await.0 == bytes(&writer, 90, 101)
    })
    .await;
}
