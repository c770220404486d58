//! Finding a log, and removing one that never was.

use super::fixture::{ACCESS, Writer, fresh_id, now};
use crate::contract::{Found, Journal, Tail};
use crate::types::Seq;

/// Nobody is told of an id that was never opened.
pub async fn an_id_that_never_was_is_unknown(journal: &dyn Journal) {
    let found = journal.find(fresh_id(), now()).await;
    assert!(matches!(found, Ok(Found::Unknown)), "{found:?}");
}

/// What is found is what was written, with what its caller must match.
pub async fn a_log_is_found_with_its_access(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    let Ok(Found::Here { window, access, .. }) = journal.find(writer.id(), now()).await else {
        panic!("it is here")
    };
    assert_eq!(access, ACCESS);
    assert_eq!(window.id(), writer.id());
    let (found, written) = (
        window.entries(Seq::ZERO, 10),
        writer.window.entries(Seq::ZERO, 10),
    );
    assert_eq!(found, written);
    assert_eq!(found.len(), 3);
}

/// A generation can be read after its end.
pub async fn a_finished_log_is_found(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, crate::contract::Outcome::Yes);
    writer.window.commit(Seq::new(3));
    let Ok(Found::Here { window, .. }) = journal.find(writer.id(), now()).await else {
        panic!("it is here")
    };
    assert_eq!(window.terminal(), writer.window.terminal());
    assert!(window.terminal().is_some());
}

/// A candidate that became no generation is as if it had never been; its id may even be opened.
pub async fn removed_log_leaves_no_trace(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    journal.remove(writer.id()).await;
    assert_eq!(journal.tail(writer.id()).await, Ok(Tail::None));
    let found = journal.find(writer.id(), now()).await;
    assert!(matches!(found, Ok(Found::Unknown)), "{found:?}");
    Writer::unopened(journal, writer.id()).open().await;
}

/// Removing what is not there does nothing.
pub async fn removing_nothing_is_fine(journal: &dyn Journal) {
    let other = Writer::opened(journal).await;
    journal.remove(fresh_id()).await;
    other.stands(1, false).await;
}
