//! Waiting for a condition, with an end.

use std::time::Duration;

use tokio::{sync::watch, time::timeout};

/// What a test waited for did not happen in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("did not happen within {0:?}")]
pub struct TimedOut(Duration);

/// How long a wait may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(pub(crate) Duration);

impl Default for Deadline {
    /// Long enough for a loaded machine, short enough for a person.
    fn default() -> Self {
        Self(Duration::from_secs(10))
    }
}

impl Deadline {
    /// Looks after every change until there is an answer.
    pub(crate) async fn wait<T>(
        self,
        changed: &watch::Sender<()>,
        look: impl Fn() -> Option<T>,
    ) -> Result<T, TimedOut> {
        let mut changes = changed.subscribe();
        let wait = async {
            loop {
                if let Some(found) = look() {
                    return found;
                }
                if changes.changed().await.is_err() {
                    // The sender is borrowed from the caller, so it cannot be gone.
                    std::future::pending::<()>().await;
                }
            }
        };
        timeout(self.0, wait).await.map_err(|_| TimedOut(self.0))
    }
}
