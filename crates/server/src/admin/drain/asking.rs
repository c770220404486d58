//! Who was asked to leave one backend, and what became of each.
//!
//! Each is in one place: it has moved because of the drain, has left for another reason, has ended, or is still there. Where it
//! is shows at itself at every look, so that nobody is counted for what it has not said yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use streamweld_generation::migration::{Order, Report};
use streamweld_generation::{Handle, Head, Leave};
use streamweld_journal::StreamId;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::gates::GateState;

/// How many generations of one backend move at a time. Each is a prompt that the other backends have to read.
const AT_ONCE: usize = 64;

/// It lives as long as a call about the backend, or an answer that is awaited.
pub(super) struct Asking {
    asked: Mutex<BTreeMap<StreamId, Asked>>,
    moving: Semaphore,
    /// Somebody has answered.
    news: watch::Sender<()>,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            asked: Mutex::default(),
            moving: Semaphore::new(AT_ONCE),
            news: watch::Sender::new(()),
        }
    }
}

/// One that was asked.
enum Asked {
    /// It is still there, and has said why, or nothing yet.
    There(Arc<Handle>, Option<Stays>),
    Gone(Gone),
}

struct Stays {
    reason: String,
    gates: Vec<GateState>,
}

/// How one came to be there no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// Another backend goes on with it, because of the drain.
    Moved,
    /// Another goes on with it for another reason.
    Left,
    /// It ended there, or never became a generation.
    Ended,
}

/// How many are where.
pub(in crate::admin) struct Stands {
    pub(in crate::admin) moved: usize,
    pub(in crate::admin) left: usize,
    pub(in crate::admin) ended: usize,
    pub(in crate::admin) remaining: Vec<Remaining>,
}

/// A generation that is still there, and why.
#[derive(Serialize)]
pub(in crate::admin) struct Remaining {
    stream_id: String,
    reason: String,
    gates: Vec<GateState>,
}

impl Asking {
    /// Rings when somebody has answered.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Asks one, unless it was asked. Among `tasks` it outlives the call.
    pub(super) fn ask(self: &Arc<Self>, tasks: &TaskTracker, backend: &str, handle: &Arc<Handle>) {
        let id = handle.spec().id;
        {
            let mut asked = self.lock();
            if let Some(Asked::There(..)) = asked.get(&id) {
                return;
            }
            asked.insert(id, Asked::There(Arc::clone(handle), None));
        }
        let (asking, handle) = (Arc::clone(self), Arc::clone(handle));
        let backend = backend.to_owned();
        // It ends with the generation at the latest, for which a shutdown waits as well.
        tasks.spawn(async move {
            // A candidate may wait for its head for long, and must not keep a turn meanwhile.
            let _turn = match handle.head() {
                Head::Pending => None,
                Head::Streaming(_) | Head::Dropped | Head::Ended => {
                    let turn = asking.moving.acquire().await;
                    Some(turn.expect("it is never closed"))
                }
            };
            if gone(&handle, &backend).is_none() {
                let report = handle.order(Order::Drain).await;
                asking.answered(id, &backend, report);
            }
            asking.news.send_replace(());
        });
    }

    fn answered(&self, id: StreamId, backend: &str, report: Report) {
        let mut all = self.lock();
        match (report, all.get_mut(&id)) {
            (Report::Stays { judged, reason }, Some(Asked::There(_, stays))) => {
                let gates = GateState::refusing(&judged);
                *stays = Some(Stays { reason, gates });
            }
            // What it says of itself shows; if it does not, it is asked again.
            (_, Some(Asked::There(handle, _))) if gone(handle, backend).is_none() => {
                all.remove(&id);
            }
            _ => {}
        }
    }

    /// How it stands with those that were asked, and with those that were `bound` a moment ago and were not.
    pub(super) fn stands(&self, backend: &str, bound: &[Arc<Handle>]) -> Stands {
        let mut asked = self.lock();
        let mut stands = Stands {
            moved: 0,
            left: 0,
            ended: 0,
            remaining: Vec::new(),
        };
        for (id, one) in &mut *asked {
            if let Asked::There(handle, stays) = one {
                match gone(handle, backend) {
                    None => stands.remaining.push(Remaining::of(*id, stays.as_ref())),
                    Some(gone) => *one = Asked::Gone(gone),
                }
            }
            match one {
                Asked::There(..) => {}
                Asked::Gone(Gone::Moved) => stands.moved += 1,
                Asked::Gone(Gone::Left) => stands.left += 1,
                Asked::Gone(Gone::Ended) => stands.ended += 1,
            }
        }
        let others = bound
            .iter()
            .filter(|handle| !asked.contains_key(&handle.spec().id));
        let there = others.filter(|handle| gone(handle, backend).is_none());
        stands
            .remaining
            .extend(there.map(|handle| Remaining::of(handle.spec().id, None)));
        stands
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamId, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How it has come to be at this backend no more, if it has.
fn gone(handle: &Handle, backend: &str) -> Option<Gone> {
    // First: what is over goes nowhere any more.
    let is_over = matches!(handle.head(), Head::Dropped | Head::Ended);
    match handle.left(backend) {
        Some(Leave::Drained) => Some(Gone::Moved),
        Some(Leave::Otherwise) => Some(Gone::Left),
        None => is_over.then_some(Gone::Ended),
    }
}

impl Remaining {
    fn of(id: StreamId, stays: Option<&Stays>) -> Self {
        let (reason, gates) = match stays {
            Some(Stays { reason, gates }) => (reason.as_str(), gates.clone()),
            None => ("what becomes of it is not known yet; ask again", Vec::new()),
        };
        Self {
            stream_id: id.to_string(),
            reason: reason.to_owned(),
            gates,
        }
    }
}

#[cfg(test)]
mod tests;
