//! Leaving a generation to another replica.
//!
//! The writer reads its backend no further and has everything committed. Then it offers the generation to one replica
//! after the other. Whoever takes it adopts the log from exactly the entry that was offered, under a fresh epoch; that
//! fences this writer off, and is all there is to a hand-over. Every word in between may be lost: a writer that
//! hears nothing reads on, and with its next append the entry that was offered is the last one no more.

use std::time::Duration;

use streamweld_journal::{Journal, Replica, Word, window_until};
use tokio::time::{Instant, timeout, timeout_at};

use crate::handle::Handle;

/// How long what was read may take to be committed.
const SETTLE: Duration = Duration::from_secs(2);
/// How long a replica may take to say that it has heard of an offer.
const HEARS: Duration = Duration::from_secs(1);
/// How many are asked: each keeps a reader waiting.
const ASKED: usize = 3;

/// Offers a generation whose backend is not read meanwhile. Comes back when nobody has taken it, with the reason.
///
/// `patience` is how long a replica that considers it may take to begin.
pub(super) async fn offer(journal: &dyn Journal, handle: &Handle, patience: Duration) -> String {
    let window = handle.window();
    let settled = window_until(window, |window| window.committed() >= window.received());
    if timeout(SETTLE, settled).await.is_err() || window.is_exposed() {
        return "the journal has not taken all that was shown".to_owned();
    }
    let others = journal.replicas().await.unwrap_or_default();
    if others.is_empty() {
        return "there is no other replica".to_owned();
    }
    let mut reasons = Vec::new();
    // Whoever leaves with thousands does not ask all of them of one.
    let chance = window.id().text().bytes().last();
    let first = usize::from(chance.unwrap_or_default()) % others.len();
    for to in others
        .iter()
        .cycle()
        .skip(first)
        .take(others.len().min(ASKED))
    {
        let reason = ask(journal, handle, *to, patience).await;
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

async fn ask(journal: &dyn Journal, handle: &Handle, to: Replica, patience: Duration) -> String {
    let window = handle.window();
    let (epoch, last) = (window.epoch(), window.committed());
    handle.hear_no_more();
    let offer = Word::Offer { epoch, last };
    if journal.say(to, window.id(), offer).await.is_err() {
        return "the journal is out of reach".to_owned();
    }
    let mut until = Instant::now() + HEARS;
    loop {
        match timeout_at(until, handle.word_of(to)).await {
            Ok(Word::Considers { epoch: of }) if of == epoch => until = Instant::now() + patience,
            Ok(Word::Declines { epoch: of, why }) if of == epoch => {
                return format!("a replica has declined: {why}");
            }
            // Of an earlier offer, or none of ours.
            Ok(_) => {}
            Err(_) => return "a replica has not answered in time".to_owned(),
        }
    }
}
