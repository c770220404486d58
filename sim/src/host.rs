//! A machine with one process on it: a runtime of its own, whose clock stands still unless it is stepped.
//!
//! All hosts are on one thread and are stepped one after the other, by less than any message takes from one to another. So
//! what one of them does in a step reaches the others in a later one, whichever was first. A host that is not stepped
//! stands still like a stopped process, and finds out when it goes on that time has passed. One that is dropped is
//! killed: nothing of it runs again.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{advance, sleep_until};

use crate::clock::{Clock, Moment};
use crate::net::HostId;

/// See the module.
pub struct Host {
    id: HostId,
    runtime: Runtime,
    clock: Clock,
}

impl Host {
    /// One that begins at a moment.
    ///
    /// # Panics
    /// When no runtime is to be had.
    pub fn start(id: HostId, at: Moment) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without a driver for sockets");
        let clock = runtime.block_on(async { Clock::begin(at) });
        Self { id, runtime, clock }
    }

    /// What it is called in the network.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// Its clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Runs something on it, until that is done or the host is gone.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Does at once what waits for nothing.
    pub fn at_once<T>(&self, task: impl Future<Output = T>) -> T {
        self.runtime.block_on(task)
    }

    /// Lets it work from one moment to the next. Where it has been standing still, time has passed without it.
    pub fn step(&self, from: Moment, to: Moment) {
        let clock = self.clock;
        self.runtime.block_on(async move {
            let missed = from.saturating_sub(clock.now());
            if !missed.is_zero() {
                advance(missed).await;
            }
            sleep_until(clock.instant(to)).await;
        });
    }
}
