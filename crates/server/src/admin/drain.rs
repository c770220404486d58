//! Emptying a backend: every generation there is asked to go on elsewhere.
//!
//! Calls about one backend that overlap share what they have asked, so that nobody is asked twice: the second wish would
//! be met behind the first, and move a generation on from the backend that it has just been moved to. What was asked
//! stays asked when its caller leaves.

mod asking;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use streamweld_generation::Handle;
use streamweld_upstream::fleet::{MemberSnapshot, MemberState, UnknownBackend};
use tokio::time::{Instant, sleep, sleep_until};

use self::asking::Asking;
pub(super) use self::asking::{Remaining, Stands};
use crate::app::App;

/// How often those that are bound are looked for again. Most ends are heard of at once.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The backends that are being emptied, by their names.
#[derive(Default)]
pub(crate) struct Drains(Mutex<HashMap<String, Weak<Asking>>>);

impl Drains {
    /// What overlapping calls about a backend share.
    fn of(&self, backend: &str) -> Arc<Asking> {
        let mut drains = self.lock();
        drains.retain(|_, asking| asking.strong_count() > 0);
        if let Some(asking) = drains.get(backend).and_then(Weak::upgrade) {
            return asking;
        }
        let asking = Arc::new(Asking::default());
        drains.insert(backend.to_owned(), Arc::downgrade(&asking));
        asking
    }

    /// The next call about it begins anew.
    fn forget(&self, backend: &str) {
        self.lock().remove(backend);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Asking>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How it stands when a call is answered.
pub(super) struct Drained {
    pub(super) stands: Stands,
    /// What is in flight there beside generations.
    pub(super) other_requests: usize,
    /// It was taken back meanwhile.
    pub(super) undrained: bool,
}

/// Gives a backend no new attempts and asks every generation there to leave. Answers when nothing is left, when it is
/// undrained, or at `until`.
pub(super) async fn drain(
    app: &Arc<App>,
    backend: &str,
    until: Instant,
) -> Result<Drained, UnknownBackend> {
    let fleet = &app.backends.fleet;
    let mut changes = fleet.changes();
    // Whoever waits for its head there leaves at once, unasked.
    let before = bound(app, backend);
    fleet.drain(backend)?;
    let asking = app.drains.of(backend);
    for handle in &before {
        asking.ask(&app.producers, backend, handle);
    }
    let mut news = asking.news();
    loop {
        // First: a request that has its place and is no generation's yet shows here.
        let member = member(app, backend);
        let in_flight = member.as_ref().map_or(0, |member| member.in_flight);
        let undrained = member.is_some_and(|member| member.state != MemberState::Draining);
        let bound = bound(app, backend);
        if !undrained {
            for handle in &bound {
                asking.ask(&app.producers, backend, handle);
            }
        }
        let is_empty = bound.is_empty() && in_flight == 0;
        if is_empty || undrained || Instant::now() >= until {
            return Ok(Drained {
                stands: asking.stands(backend, &bound),
                other_requests: in_flight.saturating_sub(bound.len()),
                undrained,
            });
        }
        tokio::select! {
            _ = news.changed() => {}
            () = changes.changed() => {}
            () = sleep(LOOK_EVERY) => {}
            () = sleep_until(until) => {}
        }
    }
}

/// Gives it attempts again.
pub(super) fn undrain(app: &App, backend: &str) -> Result<(), UnknownBackend> {
    app.backends.fleet.undrain(backend)?;
    app.drains.forget(backend);
    Ok(())
}

/// None when DNS has taken it away, which happens only to what is empty.
fn member(app: &App, backend: &str) -> Option<MemberSnapshot> {
    let mut members = app.backends.fleet.snapshot().into_iter();
    members.find(|member| member.name == backend)
}

/// Every generation and candidate that is at this backend.
fn bound(app: &App, backend: &str) -> Vec<Arc<Handle>> {
    let mut bound = app.shared.registry.all();
    bound.retain(|handle| &*handle.backend() == backend);
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_overlap_share_what_they_have_asked() {
        let drains = Drains::default();
        let first = drains.of("a");
        assert!(Arc::ptr_eq(&first, &drains.of("a")));
        assert!(!Arc::ptr_eq(&first, &drains.of("b")));
        drains.forget("a");
        assert!(!Arc::ptr_eq(&first, &drains.of("a")), "it was undrained");
        let weak = Arc::downgrade(&first);
        drop(first);
        assert!(weak.upgrade().is_none(), "nobody waits for it any more");
    }
}
