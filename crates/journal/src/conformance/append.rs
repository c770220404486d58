//! Opening and growing a log.

use super::fixture::{ACCESS, Writer, fresh_id, now, unexpected};
use crate::contract::{Journal, Open, OpenRefusal, Outcome, Refusal, Tail};
use crate::types::Seq;
use crate::window::Digest;

/// A new log has its `open` entry and nothing else.
pub async fn opened_log_stands_at_one(journal: &dyn Journal) {
    let writer = Writer::unopened(journal, fresh_id());
    assert_eq!(journal.tail(writer.id()).await, Ok(Tail::None));
    writer.open().await;
    writer.stands(1, false).await;
}

/// What is staged behind entry 1 waits for an append.
pub async fn open_takes_only_the_first_entry(journal: &dyn Journal) {
    let writer = Writer::unopened(journal, fresh_id());
    writer.stage("early");
    writer.open().await;
    writer.stands(1, false).await;
    assert_eq!(writer.append(1, 2).await, Outcome::Yes);
    writer.stands(2, false).await;
}

/// An id is opened once.
pub async fn open_twice_is_refused(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    let again = Writer::unopened(journal, writer.id());
    let outcome = journal
        .open(&again.window, &Open { access: ACCESS }, now())
        .await;
    assert_eq!(outcome, Outcome::No(OpenRefusal::Exists));
    writer.stands(2, false).await;
}

/// An append takes the log to where it says.
pub async fn append_grows_the_log_by_what_is_staged(journal: &dyn Journal) {
    let writer = Writer::opened(journal).await;
    for text in ["a", "b", "c"] {
        writer.stage(text);
    }
    assert_eq!(writer.append(1, 4).await, Outcome::Yes);
    writer.stands(4, false).await;
    writer.stage("d");
    assert_eq!(writer.append(4, 5).await, Outcome::Yes);
    writer.stands(5, false).await;
}

/// What is staged behind the named range is not appended.
pub async fn append_takes_no_more_than_it_names(journal: &dyn Journal) {
    let writer = Writer::opened(journal).await;
    for text in ["a", "b", "c"] {
        writer.stage(text);
    }
    assert_eq!(writer.append(1, 3).await, Outcome::Yes);
    writer.stands(3, false).await;
    assert_eq!(writer.append(3, 4).await, Outcome::Yes);
    writer.stands(4, false).await;
}

/// The predecessor must be the expected one, neither earlier nor later.
pub async fn append_behind_another_predecessor_changes_nothing(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    writer.stage("next");
    writer.stage("after next");
    assert_eq!(writer.append(2, 4).await, unexpected(3));
    assert_eq!(writer.append(4, 5).await, unexpected(3));
    writer.stands(3, false).await;
    assert_eq!(writer.append(3, 5).await, Outcome::Yes);
}

/// Sending a batch again after a lost answer cannot double it.
pub async fn the_same_batch_again_changes_nothing(journal: &dyn Journal) {
    let writer = Writer::opened(journal).await;
    writer.stage("a");
    assert_eq!(writer.append(1, 2).await, Outcome::Yes);
    assert_eq!(writer.append(1, 2).await, unexpected(2));
    writer.stands(2, false).await;
}

/// A vanished log is an answer, not a silent new start.
pub async fn append_to_no_log_is_told_so(journal: &dyn Journal) {
    let writer = Writer::unopened(journal, fresh_id());
    writer.stage("a");
    assert_eq!(writer.append(1, 2).await, Outcome::No(Refusal::Vanished));
    assert_eq!(journal.tail(writer.id()).await, Ok(Tail::None));
}

/// Readers see what the owner commits, never what a backend has done by itself.
pub async fn appending_shows_nothing_to_readers(journal: &dyn Journal) {
    let writer = Writer::opened(journal).await;
    writer.stage("a");
    assert_eq!(writer.append(1, 2).await, Outcome::Yes);
    assert_eq!(writer.window.committed(), Seq::FIRST);
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, Outcome::Yes);
    assert_eq!(writer.window.committed(), Seq::FIRST);
    assert_eq!(writer.window.terminal(), None);
}

/// The digest tells whether the last entry is the one that was sent.
pub async fn digest_is_of_the_last_entry(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    let Ok(Tail::Last { digest, .. }) = journal.tail(writer.id()).await else {
        panic!("the log is here")
    };
    let batch = writer.window.staged_through(Seq::FIRST, Seq::new(2));
    assert_eq!(digest, Digest::of(&batch.runs.concat()));
    assert_ne!(digest, Digest::of(b"something else"));
}
