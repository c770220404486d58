//! A log that goes on under another writer, which begins a window of its own, and who reads it where.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{
    Found, Journal, Notice, Outcome, Reader, Refusal, Seq, Step, StreamId, View, Window,
};
use streamweld_journal_redis::RedisJournal;
use streamweld_journal_redis::testing::{Server, until};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connect::connect;
use crate::follow::{find, shows};
use crate::writer::Writer;

/// Reads what is found at a replica to its end, from behind `after` on.
fn read(
    tasks: &mut JoinSet<(u64, Vec<u8>)>,
    journal: &Arc<RedisJournal>,
    id: StreamId,
    after: u64,
) {
    let journal = Arc::clone(journal);
    tasks.spawn(async move {
        let found = journal.find_after(id, Seq::new(after), SystemTime::now());
        let Ok(Found::Here { window, follow, .. }) = found.await else {
            panic!("it is there")
        };
        let _follow = follow.map(|follow| follow.reading());
        let view = View {
            ids: true,
            control: true,
        };
        let mut reader = Reader::new(window, Seq::new(after), view);
        let mut given = Vec::new();
        loop {
            match timeout(Duration::from_secs(30), reader.next(64 << 10)).await {
                Ok(Step::Run { bytes, .. }) => given.extend_from_slice(&bytes),
                Ok(Step::End {
                    sequenced: true, ..
                }) => return (after, given),
                other => panic!("behind {after}: {other:?}"),
            }
        }
    });
}

/// Appends entries up to `last`, a few in each batch.
async fn append_to(writer: &Writer<'_>, last: u64) {
    let mut batch = 1;
    while writer.window.received() < Seq::new(last) {
        for _ in 0..batch {
            if writer.window.received() < Seq::new(last) {
                writer.stage(&format!("by {}", writer.window.epoch()));
            }
        }
        batch = batch % 7 + 1;
        assert_eq!(writer.append().await, Outcome::Yes);
    }
}

/// Whose generation it is told to be another's now.
pub(crate) async fn taken(journal: &RedisJournal) -> StreamId {
    let taken = async {
        loop {
            if let (id, Notice::Taken) = journal.next_notice().await {
                return id;
            }
        }
    };
    let taken = timeout(Duration::from_secs(20), taken).await;
    taken.expect("it is told")
}

/// All that was written up to `last` by these, one behind the other.
fn written(windows: &[&Arc<Window>], last: u64) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    for window in windows {
        let after = all.last().map_or(0, |(seq, _)| *seq);
        for seq in after + 1..=window.committed().get().min(last) {
            let (before, seq) = (Seq::new(seq - 1), Seq::new(seq));
            all.push((seq.get(), window.staged_through(before, seq).runs.concat()));
        }
    }
    all
}

#[tokio::test]
async fn all_readers_everywhere_read_on() {
    let server = Server::new().await;
    let old = Arc::new(connect(&server).await);
    let new = Arc::new(connect(&server).await);
    let third = Arc::new(connect(&server).await);
    let writer = Writer::opened(&old).await;
    let id = writer.id();
    append_to(&writer, 31).await;
    // Those who were there before, also where the next writer will be.
    let mut readers = JoinSet::new();
    for journal in [&new, &third] {
        read(&mut readers, journal, id, 0);
        read(&mut readers, journal, id, 20);
    }
    let key = format!("streamweld:{{{id}}}:readers");
    until("both follow", async || {
        server.cli(&["ZCARD", &key]).await == "2"
    })
    .await;
    assert_eq!(server.cli(&["EXPIRE", &writer.log(), "60"]).await, "1");

    let next = Writer::adopting(&new, id, 2, Seq::new(31)).await;
    let left: u64 = server.cli(&["TTL", &writer.log()]).await.parse().unwrap();
    assert!(left > 7000, "{left}");
    next.window
        .set_label(Bytes::from_static(b"of the new writer"));
    append_to(&next, 60).await;
    assert_eq!(
        server.cli(&["HGET", &writer.meta(), "label"]).await,
        "of the new writer"
    );
    // The old owner is refused, and reads on like everybody else.
    assert_eq!(taken(&old).await, id);
    writer.stage("too late");
    assert!(matches!(
        writer.append().await,
        Outcome::No(Refusal::Fenced { .. })
    ));
    for (journal, after) in [(&old, 0), (&old, 31), (&new, 0), (&new, 45), (&third, 31)] {
        read(&mut readers, journal, id, after);
    }
    append_to(&next, 131).await;
    assert!(new.usage().bytes >= next.window.held() as u64);
    assert_eq!((new.usage().live, old.usage().live), (1, 0));
    next.stage_terminal();
    assert_eq!(next.finish().await, Outcome::Yes);
    for (journal, after) in [(&old, 5), (&new, 5), (&new, 100), (&third, 5)] {
        read(&mut readers, journal, id, after);
    }

    let all = written(&[&writer.window, &next.window], 131);
    let text = |after: u64| {
        let behind = all.iter().filter(|(seq, _)| *seq > after);
        behind
            .flat_map(|(_, block)| block.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(all.len(), 131);
    let whole = String::from_utf8(text(0)).unwrap();
    for cursor in [
        format!("{id}:31"),
        format!("{id}:32~2"),
        format!("{id}:131~2"),
    ] {
        assert!(whole.contains(&format!("\nid: {cursor}\n")), "{cursor}");
    }
    let mut read = 0;
    while let Some(given) = readers.join_next().await {
        let (after, given) = given.unwrap();
        assert!(given == text(after), "behind {after}");
        read += 1;
    }
    assert_eq!(read, 13);
    assert_eq!(new.usage().live, 0);
}

/// Its follower has read the end as well; what it keeps is no reason to forget whose end it is.
#[tokio::test]
async fn who_ends_what_it_follows_looks_after_that_end() {
    let server = Server::new().await;
    let (old, new) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&old).await;
    append_to(&writer, 5).await;
    let (followed, _follow) = find(&new, writer.id()).await;
    let next = Writer::adopting(&new, writer.id(), 2, Seq::new(5)).await;
    append_to(&next, 20).await;
    shows(&followed, 20).await;
    next.stage_terminal();
    assert_eq!(next.finish().await, Outcome::Yes);
    until("it has read the end", async || {
        followed.terminal().is_some()
    })
    .await;
    let followers = format!("streamweld:{{{}}}:readers", writer.id());
    until("it follows no more", async || {
        server.cli(&["EXISTS", &followers]).await == "0"
    })
    .await;
    let (found, follow) = find(&new, writer.id()).await;
    assert!(follow.is_none() && Arc::ptr_eq(&found, &next.window));
    assert_eq!(new.usage().finished, 1);
}

/// A process that adopts what was taken from it has an old window, which readers must not be given any more.
#[tokio::test]
async fn a_log_that_comes_back_is_read_where_it_is_written() {
    let server = Server::new().await;
    let (one, other) = (connect(&server).await, connect(&server).await);
    for is_told in [true, false] {
        let writer = Writer::opened(&one).await;
        let id = writer.id();
        append_to(&writer, 3).await;
        let next = Writer::adopting(&other, id, 2, Seq::new(3)).await;
        append_to(&next, 6).await;
        if is_told {
            assert_eq!(taken(&one).await, id);
        }
        let back = Writer::adopting(&one, id, 3, Seq::new(6)).await;
        append_to(&back, 9).await;
        let (found, follow) = find(&one, id).await;
        assert!(follow.is_none() && Arc::ptr_eq(&found, &back.window));
        back.stage_terminal();
        assert_eq!(back.finish().await, Outcome::Yes);
        let (text, end) = crate::follow::read(&found).await;
        assert!(matches!(end, Step::End { .. }), "{end:?}");
        let windows = [&writer.window, &next.window, &back.window];
        let all = written(&windows, 9).into_iter();
        assert_eq!(
            text.as_bytes(),
            all.flat_map(|(_, block)| block).collect::<Vec<_>>()
        );
    }
    assert_eq!((one.usage().live, other.usage().live), (0, 0));
}

/// Until it writes it is read like any other replica's; then as its own.
#[tokio::test]
async fn a_writer_that_has_written_nothing_yet_is_read_as_well() {
    let server = Server::new().await;
    let (old, new) = (connect(&server).await, connect(&server).await);
    let writer = Writer::opened(&old).await;
    append_to(&writer, 5).await;
    let next = Writer::adopting(&new, writer.id(), 2, Seq::new(5)).await;
    let (before, _follow) = find(&new, writer.id()).await;
    assert_eq!(before.committed(), Seq::new(5));
    append_to(&next, 9).await;
    shows(&before, 9).await;
    let (since, follow) = find(&new, writer.id()).await;
    assert!(follow.is_none() && Arc::ptr_eq(&since, &next.window));
    let shown = |window: &Window| window.staged(Seq::new(5)).runs.concat();
    assert_eq!(shown(&before), shown(&since));
}
