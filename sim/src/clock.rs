//! Simulated time, and what the clock of one host makes of it.

use std::time::Duration;

use tokio::time::Instant;

/// What has passed since the simulation began.
pub type Moment = Duration;

/// The clock of a host's runtime, which stands still unless the host is stepped.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
    at: Moment,
}

impl Clock {
    /// That of the runtime that this is called in, at a moment.
    pub fn begin(at: Moment) -> Self {
        Self {
            base: Instant::now(),
            at,
        }
    }

    /// What time it is on the host; called in its runtime.
    pub fn now(&self) -> Moment {
        self.at + self.base.elapsed()
    }

    /// When a moment comes, for timers of the host.
    pub fn instant(&self, moment: Moment) -> Instant {
        self.base + moment.saturating_sub(self.at)
    }
}
