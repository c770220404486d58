//! Changing the writer.

use super::fixture::{Writer, epoch, fenced, fresh_id, unexpected};
use crate::contract::{Journal, Outcome, Refusal};
use crate::types::Epoch;

/// The new writer goes on where the old one stood, under its own epoch.
pub async fn adopt_hands_the_log_to_a_higher_epoch(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    assert_eq!(writer.adopt(1, 2, 2).await, Outcome::Yes);
    writer.stands_under(2, 2, false).await;
    writer.window.begin_epoch(epoch(2));
    writer.stage("under the new epoch");
    assert_eq!(writer.append(2, 3).await, Outcome::Yes);
    writer.stands_under(2, 3, false).await;
    writer.window.commit(writer.window.received());
    assert_eq!(writer.adopt(2, 3, 9).await, Outcome::Yes);
    writer.window.begin_epoch(epoch(9));
    writer.stage_terminal();
    assert_eq!(writer.finish(3).await, Outcome::Yes);
    writer.stands_under(9, 4, true).await;
}

/// Who adopts has seen everything.
pub async fn adopt_needs_the_last_entry(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 3).await;
    assert_eq!(writer.adopt(1, 2, 2).await, unexpected(3));
    assert_eq!(writer.adopt(1, 4, 2).await, unexpected(3));
    writer.stands(3, false).await;
}

/// Of two that adopt at once, one wins, whichever has the higher epoch.
pub async fn adopt_needs_the_writer_before(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    assert_eq!(writer.adopt(2, 2, 4).await, fenced(1));
    assert_eq!(writer.adopt(1, 2, 7).await, Outcome::Yes);
    for late in [5, 9] {
        assert_eq!(writer.adopt(1, 2, late).await, fenced(7));
    }
    writer.stands_under(7, 2, false).await;
    assert_eq!(writer.adopt(7, 2, 1 << 40).await, Outcome::Yes);
    writer.stands_under(1 << 40, 2, false).await;
    // So close to each other that a double could not tell them apart.
    let (last, before) = (Epoch::LAST.get(), Epoch::LAST.get() - 1);
    assert_eq!(writer.adopt(1 << 40, 2, before).await, Outcome::Yes);
    assert_eq!(writer.adopt(last - 2, 2, last).await, fenced(before));
    writer.stands_under(before, 2, false).await;
}

/// Who has had no answer asks for the same again.
pub async fn an_adoption_that_stands_is_a_yes_again(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    assert_eq!(writer.adopt(1, 2, 5).await, Outcome::Yes);
    assert_eq!(writer.adopt(1, 2, 5).await, Outcome::Yes);
    writer.stands_under(5, 2, false).await;
    writer.window.begin_epoch(epoch(5));
    writer.stage("under the new epoch");
    assert_eq!(writer.append(2, 3).await, Outcome::Yes);
    assert_eq!(writer.adopt(1, 2, 5).await, unexpected(3));
    writer.stands_under(5, 3, false).await;
    assert_eq!(writer.adopt(5, 3, 6).await, Outcome::Yes);
    assert_eq!(writer.adopt(1, 3, 5).await, fenced(6));
    writer.stands_under(6, 3, false).await;
}

/// A vanished log cannot be adopted.
pub async fn adopt_of_no_log_is_told_so(journal: &dyn Journal) {
    let writer = Writer::unopened(journal, fresh_id());
    assert_eq!(writer.adopt(1, 1, 2).await, Outcome::No(Refusal::Vanished));
}

/// An owner that was replaced changes nothing any more.
pub async fn an_older_epoch_is_fenced(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    assert_eq!(writer.adopt(1, 2, 2).await, Outcome::Yes);
    writer.stage("of the old owner");
    assert_eq!(writer.append(2, 3).await, fenced(2));
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, fenced(2));
    writer.stands_under(2, 2, false).await;
}

/// An adoption may be lost again, with the end of the log: then its epoch is no right to write.
pub async fn an_epoch_that_nobody_adopted_writes_nothing(journal: &dyn Journal) {
    let writer = Writer::with_entries(journal, 2).await;
    writer.window.begin_epoch(epoch(2));
    writer.stage("behind what an older epoch wrote");
    assert_eq!(writer.append(2, 3).await, fenced(1));
    writer.stage_terminal();
    assert_eq!(writer.finish(2).await, fenced(1));
    writer.stands_under(1, 2, false).await;
}
