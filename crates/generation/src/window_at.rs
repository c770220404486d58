//! One entry of a log that others write.

use std::sync::Arc;
use std::time::Duration;

use streamweld_journal::{Found, Journal, Seq, StreamId, Window, window_until};
use tokio::time::timeout;

use crate::steady_now;

/// A window that holds an entry, and no entry before it that is not needed for that. It is followed no more. `None`: the entry
/// cannot be read `within` that time.
pub async fn window_at(
    journal: &dyn Journal,
    id: StreamId,
    entry: Seq,
    within: Duration,
) -> Option<Arc<Window>> {
    let before = Seq::new(entry.get().saturating_sub(1));
    let read = async {
        let found = journal.find_after(id, before, steady_now()).await;
        let Ok(Found::Here { window, follow, .. }) = found else {
            return None;
        };
        window_until(&window, |window| window.committed() >= entry).await;
        // It is followed until here.
        drop(follow);
        Some(window)
    };
    timeout(within, read).await.ok().flatten()
}
