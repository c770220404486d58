//! Panics of tasks, counted. The runtime catches each at the border of its task; what a task leaves undone is told by
//! what it drops: a producer's generation ends with `internal_error`, a connection is closed.

use std::future::Future;
use std::thread;

use hyper::rt::Executor;
use prometheus_client::metrics::counter::Counter;

/// Held by a task: counts the panic that ends it.
#[derive(Clone, Debug)]
pub(crate) struct Panics(pub(crate) Counter);

impl Drop for Panics {
    fn drop(&mut self) {
        // The runtime drops a task that panicked while the panic goes through it.
        if thread::panicking() {
            self.0.inc();
        }
    }
}

/// Spawns what the HTTP implementation wants to have spawned: each stream of a connection of HTTP/2.
#[derive(Clone, Debug)]
pub(crate) struct Counting(pub(crate) Counter);

impl<F> Executor<F> for Counting
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        let panics = Panics(self.0.clone());
        // It ends with its connection, which drops what it waits for.
        tokio::spawn(async move {
            let _panics = panics;
            task.await
        });
    }
}
