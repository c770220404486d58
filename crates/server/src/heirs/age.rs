//! How long a generation has run that another replica began.
//!
//! Clocks of two machines differ, so both times are of one: when it was begun and when its last entry was made, by the clock of
//! whoever wrote it. What has passed since then is at most what a hand-over or a takeover takes, and is given to it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_generation::steady_now;
use streamweld_journal::{Found, Journal, Seq, StreamId, window_until};
use tokio::time::timeout;

/// How long the last entry is waited for.
const READ: Duration = Duration::from_secs(2);

/// How long it had run at its entry `last`. An entry that cannot be read says nothing, and it counts as begun now: a limit that
/// is kept too late is better than an answer that is ended too soon.
pub(super) async fn age(
    journal: &Arc<dyn Journal>,
    id: StreamId,
    created: SystemTime,
    last: Seq,
) -> Duration {
    let before = Seq::new(last.get().saturating_sub(1));
    let read = async {
        let found = journal.find_after(id, before, steady_now()).await;
        let Ok(Found::Here { window, follow, .. }) = found else {
            return None;
        };
        window_until(&window, |window| window.committed() >= last).await;
        // It is followed until here.
        drop(follow);
        window.time_of(last)
    };
    let last = timeout(READ, read).await.ok().flatten();
    let age = last.and_then(|last| last.duration_since(created).ok());
    age.unwrap_or_default()
}
