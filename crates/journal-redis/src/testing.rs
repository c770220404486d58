//! Real servers for tests: `redis-server` processes of one test, on ports that the kernel gives.
//!
//! They end with the test, and also when the test process is killed: each has a watcher that holds the other end of
//! a pipe. (The kernel's own signal at the death of a parent comes with the death of the *thread* that started the
//! child, and a thread of a runtime may end early.) Their folders go with them.
//!
//! With `STREAMWELD_TEST_REDIS_SERVER` another program is the server, such as a `valkey-server`.
//!
//! Nothing here waits for a time to pass: waits are for conditions, and every wait has a deadline.

mod cluster;
mod folder;
mod process;
mod relay;
mod sentinel;
mod server;

pub use self::cluster::{Cluster, Move};
pub use self::process::wait_stopped;
pub use self::relay::Relay;
pub use self::sentinel::Sentinels;
pub use self::server::{Fsync, Server, Setup, free_port};

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Waits until a condition holds.
///
/// # Panics
/// When it does not within ten seconds; `what` says which.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}: not in time");
}

/// Also with every core busy.
const PATIENCE: Duration = Duration::from_secs(10);
