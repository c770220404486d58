//! Idempotency keys.

use super::fixture::{Writer, fresh_id, fresh_key, now};
use crate::contract::{Claim, Journal};

/// A free key is had for the asking.
pub async fn first_claim_wins(journal: &dyn Journal) {
    assert_eq!(
        journal.claim(fresh_key(), fresh_id(), now()).await,
        Ok(Claim::Won)
    );
}

/// Asking again after a lost answer is no loss.
pub async fn claiming_again_wins_again(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    assert_eq!(journal.claim_body(key, id, [1; 32], now()).await, Ok(true));
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    taken(journal, key, id, Some([1; 32])).await;
}

/// A key has one holder, and the others learn who that is.
pub async fn second_claim_is_told_of_the_first(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    taken(journal, key, id, None).await;
    taken(journal, key, id, None).await;
    assert_eq!(
        journal.claim(fresh_key(), fresh_id(), now()).await,
        Ok(Claim::Won)
    );
}

/// Opening the log keeps its claim.
pub async fn claim_outlives_the_opening(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    Writer::unopened(journal, id).open().await;
    taken(journal, key, id, None).await;
}

/// The digest of the body is known later than the claim.
pub async fn body_is_told_once_known(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    assert_eq!(journal.claim_body(key, id, [9; 32], now()).await, Ok(true));
    taken(journal, key, id, Some([9; 32])).await;
}

/// Only the holder adds a digest.
pub async fn body_needs_the_claim(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim_body(key, id, [9; 32], now()).await, Ok(false));
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    assert_eq!(
        journal.claim_body(key, fresh_id(), [9; 32], now()).await,
        Ok(false)
    );
    taken(journal, key, id, None).await;
}

/// A released key is free again.
pub async fn release_frees_the_key(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    assert_eq!(journal.release(key, id).await, Ok(()));
    assert_eq!(journal.release(key, id).await, Ok(()));
    assert_eq!(journal.claim(key, fresh_id(), now()).await, Ok(Claim::Won));
}

/// Only the holder releases.
pub async fn release_needs_the_claim(journal: &dyn Journal) {
    let (key, id) = (fresh_key(), fresh_id());
    assert_eq!(journal.claim(key, id, now()).await, Ok(Claim::Won));
    assert_eq!(journal.release(key, fresh_id()).await, Ok(()));
    taken(journal, key, id, None).await;
}

/// A candidate that became no generation does not keep its key.
pub async fn removing_the_log_frees_its_key(journal: &dyn Journal) {
    let key = fresh_key();
    let writer = Writer::opened(journal).await;
    assert_eq!(journal.claim(key, writer.id(), now()).await, Ok(Claim::Won));
    journal.remove(writer.id()).await;
    assert_eq!(journal.claim(key, fresh_id(), now()).await, Ok(Claim::Won));
}

async fn taken(
    journal: &dyn Journal,
    key: crate::contract::Key,
    id: crate::StreamId,
    body: Option<[u8; 32]>,
) {
    assert_eq!(
        journal.claim(key, fresh_id(), now()).await,
        Ok(Claim::Taken { id, body })
    );
}
