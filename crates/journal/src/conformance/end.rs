//! Ending a log.

use super::fixture::{Writer, fresh_id, unexpected};
use crate::contract::{Journal, Outcome, Refusal};

/// A finished log says so.
pub async fn finish_stands_as_terminal(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    writer.stage_terminal();
    assert_eq!(writer.finish(3).await, Outcome::Yes);
    writer.stands(4, true).await;
}

/// The terminal takes the entries before it along.
pub async fn finish_takes_what_is_staged_along(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    writer.stage("late");
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, Outcome::Yes);
    writer.stands(4, true).await;
}

/// The predecessor must be the expected one here as well.
pub async fn finish_behind_another_predecessor_changes_nothing(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    writer.stage("never appended");
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, unexpected(3));
    assert_eq!(writer.finish(4).await, unexpected(3));
    writer.stands(3, false).await;
    assert_eq!(writer.finish(3).await, Outcome::Yes);
}

/// A vanished log cannot be ended.
pub async fn finish_of_no_log_is_told_so(journal: &dyn Journal) {
    let writer = Writer::unopened(journal, fresh_id());
    writer.stage_terminal();
    assert_eq!(writer.finish(1).await, Outcome::No(Refusal::Vanished));
}

/// After a terminal the log never changes again, whoever asks, expecting whatever.
pub async fn nothing_follows_a_terminal(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    writer.stage("late");
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, Outcome::Yes);
    let ended = Outcome::No(Refusal::Ended);
    assert_eq!(writer.append(2, 3).await, ended);
    assert_eq!(writer.finish(2).await, ended);
    assert_eq!(writer.finish(3).await, ended);
    assert_eq!(writer.adopt(1, 4, 2).await, ended);
    writer.stands(4, true).await;
}
