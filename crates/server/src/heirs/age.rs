//! How long a generation has run that another replica began.
//!
//! Clocks of two machines differ, so both times are of one: when it was begun and when its last entry was made, by the clock of
//! whoever wrote it. What has passed since then is at most what a hand-over or a takeover takes, and is given to it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use streamweld_generation::window_at;
use streamweld_journal::{Journal, Seq, StreamId};

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
    let window = window_at(&**journal, id, last, READ).await;
    let last = window.and_then(|window| window.time_of(last));
    let age = last.and_then(|last| last.duration_since(created).ok());
    age.unwrap_or_default()
}
