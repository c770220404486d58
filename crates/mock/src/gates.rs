//! Named gates at which a stream waits until a test lets it go on.
//!
//! They replace sleeps: a test holds the mock at an exact event, looks at the world, and releases.
//! A gate exists as soon as anybody names it, in either order.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::recorder::{Deadline, TimedOut};

/// The gates of one mock or relay. Cheap to clone; clones share the gates.
#[derive(Debug, Clone)]
pub struct Gates {
    gates: Arc<Mutex<HashMap<String, Gate>>>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Gate {
    open: bool,
    steps: usize,
    /// How many have come, counting those that passed without waiting.
    arrived: usize,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            gates: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }
}

impl Gates {
    /// Opens a gate for everybody, now and later.
    pub fn release(&self, name: &str) {
        self.change(name, |gate| gate.open = true);
    }

    /// Closes a gate again and forgets unused steps.
    pub fn close(&self, name: &str) {
        self.change(name, |gate| {
            gate.open = false;
            gate.steps = 0;
        });
    }

    /// Lets one through, waiting now or coming later.
    pub fn step(&self, name: &str) {
        self.steps(name, 1);
    }

    /// Lets so many through.
    pub fn steps(&self, name: &str, count: usize) {
        self.change(name, |gate| gate.steps += count);
    }

    /// Waits until `count` arrivals in all were seen at the gate: everything before it has then
    /// been written.
    pub async fn wait_arrived(&self, name: &str, count: usize) -> Result<(), TimedOut> {
        Deadline::default()
            .wait(&self.changed, || {
                (self.lock().get(name)?.arrived >= count).then_some(())
            })
            .await
    }

    /// Waits at the gate.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future uses no step; the arrival stays counted.
    pub(crate) async fn pass(&self, name: &str) {
        let mut changes = self.changed.subscribe();
        self.change(name, |gate| gate.arrived += 1);
        while !self.try_pass(name) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn try_pass(&self, name: &str) -> bool {
        let mut gates = self.lock();
        let gate = gates.entry(name.to_owned()).or_default();
        if gate.open {
            return true;
        }
        match gate.steps.checked_sub(1) {
            Some(left) => {
                gate.steps = left;
                true
            }
            None => false,
        }
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Gate)) {
        change(self.lock().entry(name.to_owned()).or_default());
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn steps_and_release() {
        let gates = Gates::default();
        gates.step("g");
        gates.pass("g").await;
        let waits = timeout(Duration::from_secs(1), gates.pass("g")).await;
        assert!(waits.is_err());
        gates.wait_arrived("g", 2).await.unwrap();
        assert!(gates.wait_arrived("g", 3).await.is_err());
        gates.release("g");
        gates.pass("g").await;
        gates.pass("g").await;
    }
}
