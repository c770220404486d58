//! The request of a generation, kept for whoever takes it over, and for no longer.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use streamweld_journal::{Adoption, Epoch, Journal, Outcome, Refusal, Seq, Tail};
use streamweld_journal_redis::testing::{Server, until};
use streamweld_journal_redis::{Config, RedisJournal};

use crate::connect::{config, connect, connect_with};
use crate::presence::end;
use crate::writer::Writer;

async fn opened<'a>(journal: &'a RedisJournal, request: &'static str) -> Writer<'a> {
    let writer = Writer::opened(journal).await;
    let request = Bytes::from_static(request.as_bytes());
    assert_eq!(journal.keep_request(writer.id(), request).await, Ok(()));
    writer
}

async fn kept(journal: &RedisJournal, writer: &Writer<'_>) -> Option<Bytes> {
    journal.kept_request(writer.id()).await.expect("in reach")
}

#[tokio::test]
async fn every_replica_is_given_what_was_kept_last() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = opened(&here, "first").await;
    assert_eq!(kept(&there, &writer).await.unwrap(), "first");
    // The new writer may change it.
    let large = Bytes::from(vec![b'x'; 3 << 20]);
    let replaced = there.keep_request(writer.id(), large.clone()).await;
    assert_eq!(replaced, Ok(()));
    assert_eq!(kept(&here, &writer).await, Some(large));
    // It is held by Redis alone.
    let (usage, window) = (here.usage(), writer.window.held() as u64);
    assert!(usage.bytes < window + 1024, "{usage:?}");
}

#[tokio::test]
async fn it_goes_with_the_end_whoever_writes_that() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = opened(&here, "of one that ends").await;
    writer.stage_terminal();
    assert_eq!(writer.finish().await, Outcome::Yes);
    assert_eq!(kept(&there, &writer).await, None);

    let writer = opened(&here, "of one that is taken").await;
    let (id, epoch, now) = (writer.id(), Epoch::new(2).unwrap(), SystemTime::now());
    let adopted = there
        .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epoch), now)
        .await;
    assert_eq!(adopted, Outcome::Yes);
    assert!(kept(&there, &writer).await.is_some());
    let window = end(id, epoch, Seq::FIRST);
    assert_eq!(there.finish(&window, Seq::FIRST, now).await, Outcome::Yes);
    assert_eq!(kept(&there, &writer).await, None);

    let writer = opened(&here, "of none").await;
    here.remove(writer.id()).await;
    assert_eq!(kept(&there, &writer).await, None);
    assert_eq!(server.cli(&["KEYS", "*:request"]).await, "");
}

#[tokio::test]
async fn it_expires_with_a_log_that_nobody_writes() {
    let server = Server::new().await;
    let live = Duration::from_millis(300);
    let journal = connect_with(&server, Config { live, ..config() }).await;
    let writer = opened(&journal, "short").await;
    until("both are gone", async || {
        kept(&journal, &writer).await.is_none()
            && server.cli(&["EXISTS", &writer.log()]).await == "0"
    })
    .await;
}

/// By appends and by an adoption.
#[tokio::test]
async fn its_expiry_is_put_off_with_that_of_the_log() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let writer = opened(&here, "long").await;
    let shorten = async || {
        for key in [writer.log(), writer.request()] {
            assert_eq!(server.cli(&["EXPIRE", &key, "60"]).await, "1");
        }
    };
    let is_long = async || {
        for key in [writer.log(), writer.request()] {
            let left: u64 = server.cli(&["TTL", &key]).await.parse().unwrap();
            assert!(left > 7000, "{left} s of {key}");
        }
    };
    shorten().await;
    // What is new beside the log comes with it.
    writer.window.set_label(Bytes::from_static(b"label"));
    writer.stage("a");
    assert_eq!(writer.append().await, Outcome::Yes);
    is_long().await;
    shorten().await;
    Writer::adopting(&there, writer.id(), 2, Seq::new(2)).await;
    is_long().await;
}

#[tokio::test]
async fn it_goes_where_its_log_is_found_to_have_vanished() {
    let server = Server::new().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let vanished = Outcome::No(Refusal::Vanished);
    let now = SystemTime::now();
    for way in ["append", "finish", "adopt", "tail"] {
        let writer = opened(&here, "of a log that vanishes").await;
        let id = writer.id();
        assert_eq!(server.cli(&["DEL", &writer.log()]).await, "1");
        assert!(kept(&there, &writer).await.is_some());
        writer.stage("a");
        match way {
            "append" => assert_eq!(writer.append().await, vanished),
            "finish" => {
                writer.stage_terminal();
                assert_eq!(writer.finish().await, vanished);
            }
            "adopt" => {
                let epoch = Epoch::new(2).unwrap();
                let adopted = there
                    .adopt(id, Adoption::new(Epoch::FIRST, Seq::FIRST, epoch), now)
                    .await;
                assert_eq!(adopted, vanished);
            }
            _ => assert_eq!(writer.tail().await, Tail::None),
        }
        assert_eq!(kept(&there, &writer).await, None, "{way}");
    }
}
