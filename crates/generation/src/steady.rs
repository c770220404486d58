//! The time by which a journal in this process counts how long it keeps what it keeps.
//!
//! The time of day may be set while the process runs. An answer that ended a minute ago has not ended an hour ago because of that.
//! Where a time is shown it is the time of day; where something lasts it is this.

use std::sync::OnceLock;
use std::time::SystemTime;

use tokio::time::Instant;

/// The time of day when this was asked first, and what has passed since then by a clock that nobody sets.
#[must_use]
pub fn steady_now() -> SystemTime {
    static BEGUN: OnceLock<(SystemTime, Instant)> = OnceLock::new();
    let (begun, then) = BEGUN.get_or_init(|| (SystemTime::now(), Instant::now()));
    *begun + then.elapsed()
}
