//! Generations that nobody writes are ended here, so that no reader waits for ever (protocol.md 8.5).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use streamweld_generation::EndAs;
use streamweld_journal::{Ownerless as Log, StreamId};
use tokio::sync::Semaphore;

use crate::app::App;
use crate::heirs;

/// How many are ended at once: a replica may have left thousands.
const AT_ONCE: usize = 64;

/// Those that are being ended now.
#[derive(Debug)]
pub(crate) struct Ownerless {
    now: Mutex<HashSet<StreamId>>,
    turns: Semaphore,
}

impl Default for Ownerless {
    fn default() -> Self {
        Self {
            now: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl Ownerless {
    /// Ends one, in a task of its own, which shutdown waits for; what is being ended already is left alone. It ends
    /// when it is known who has ended the generation, or with the first answer that does not come in a shutdown.
    pub(crate) fn end(&self, app: &Arc<App>, id: StreamId, log: Log, how: EndAs) {
        if app.shared.registry.find(id).is_some() || !self.lock().insert(id) {
            return;
        }
        let app = Arc::clone(app);
        app.producers.clone().spawn(async move {
            let _here = Here { app: &app, id };
            let turn = app.ownerless.turns.acquire().await;
            if turn.is_ok() {
                match how {
                    EndAs::OwnerLost => heirs::succeed_lost(&app, id, &log).await,
                    how => heirs::end(&app, id, &log, &how).await,
                };
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<StreamId>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them; also a panic takes it out, so that it is tried again.
struct Here<'a> {
    app: &'a App,
    id: StreamId,
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.app.ownerless.lock().remove(&self.id);
    }
}
