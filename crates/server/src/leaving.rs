//! A replica that leaves hands over what it runs (protocol.md 8.9).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use streamweld_generation::migration::{Order, Report};
use streamweld_generation::{Durability, Handle, Head};
use streamweld_journal::StreamId;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use crate::app::App;

/// How many are offered at a time: for each of them a reader waits, and a backend has a prompt to read.
const AT_ONCE: usize = 64;
/// How often is looked for those that have begun meanwhile, and for those that are left.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was asked of the generations of a replica that leaves.
#[derive(Debug)]
pub(crate) struct Leaving {
    asked: Mutex<BTreeMap<StreamId, Option<String>>>,
    turns: Semaphore,
    handed_over: AtomicUsize,
}

impl Default for Leaving {
    fn default() -> Self {
        Self {
            asked: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
            handed_over: AtomicUsize::new(0),
        }
    }
}

impl Leaving {
    /// Why a generation is still here, where it was offered and nobody has taken it.
    pub(crate) fn reason(&self, id: StreamId) -> Option<String> {
        self.lock().get(&id).cloned().flatten()
    }

    /// How many others have taken.
    pub(crate) fn handed_over(&self) -> usize {
        self.handed_over.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamId, Option<String>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to leave: nothing new begins here from now on, and what runs is offered to the other replicas, each once. Comes
/// back when nothing runs any more, or at `until`.
pub(crate) async fn leave(app: &Arc<App>, until: Instant) {
    app.start_shutdown();
    let has_others = app.shared.journal.replica().is_some();
    loop {
        let running = app.shared.registry.all();
        if running.is_empty() || Instant::now() >= until {
            return;
        }
        if has_others {
            for handle in running {
                offer(app, handle);
            }
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = sleep_until(until) => {}
        }
    }
}

/// Offers one that has begun, unless that was done.
fn offer(app: &Arc<App>, handle: Arc<Handle>) {
    let id = handle.spec().id;
    if handle.head() != Head::Streaming(Durability::Durable) {
        return;
    }
    {
        let mut asked = app.leaving.lock();
        if asked.contains_key(&id) {
            return;
        }
        asked.insert(id, None);
    }
    let app = Arc::clone(app);
    app.producers.clone().spawn(async move {
        let turn = app.leaving.turns.acquire().await;
        if turn.is_err() {
            return;
        }
        match handle.order(Order::HandOver).await {
            Report::Stays { reason, .. } => {
                tracing::info!(stream_id = %id, reason, "no other replica goes on with it");
                app.leaving.lock().insert(id, Some(reason));
            }
            _ if handle.is_lost() => {
                app.leaving.handed_over.fetch_add(1, Ordering::AcqRel);
            }
            _ => {}
        }
    });
}
