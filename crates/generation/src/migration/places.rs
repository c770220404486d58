//! Who is asked to go on, one after the other.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::mover::Mover;
use super::{Candidate, Within};
use crate::source::ByteSource;

/// How long nobody is asked after all have failed, at first; then twice as long each time.
const BACKOFF: Duration = Duration::from_millis(250);

/// Backends that may be asked, and those that were.
pub(super) struct Places<'a, S> {
    mover: &'a Mover<S>,
    within: Within,
    /// Those that have failed in this round.
    pub(super) failed: Vec<u64>,
    /// Those that will not do, whatever happens.
    pub(super) unfit: Vec<u64>,
    until: Option<Instant>,
    backoff: Duration,
}

impl<'a, S: ByteSource> Places<'a, S> {
    pub(super) fn new(mover: &'a Mover<S>, within: Within) -> Self {
        let wait = mover.backends.bounds().wait;
        Self {
            mover,
            within,
            failed: vec![mover.situation.leg.member],
            unfit: Vec::new(),
            until: mover.is_urgent().then(|| Instant::now() + wait),
            backoff: BACKOFF,
        }
    }

    /// The next place. When all have failed and there is time, they are asked once more, the one that was left too: it may
    /// be back. Nobody is waited for where somebody is there and will not do.
    pub(super) async fn next(&mut self) -> Option<Box<dyn Candidate<S>>> {
        let mut again = Instant::now() + self.backoff;
        loop {
            let changed = self.mover.backends.changed();
            let not = [&self.failed[..], &self.unfit].concat();
            let leg = &self.mover.situation.leg;
            if let Some(place) = self.mover.backends.pick(leg, self.within, &not) {
                return Some(place);
            }
            let until = self.until.filter(|_| self.unfit.is_empty())?;
            if Instant::now() >= until {
                return None;
            }
            let _ = timeout_at(until.min(again), changed).await;
            // Whatever changes meanwhile: a fleet that is busy changes all the time.
            if again <= until && Instant::now() >= again {
                self.failed.clear();
                self.backoff *= 2;
                again += self.backoff;
            }
        }
    }
}
