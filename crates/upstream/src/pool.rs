//! Connections that wait for the next request.
//!
//! An HTTP/1.1 connection comes here only when a response ended properly and its head was accepted,
//! so one that cannot be trusted is never here to be used again: it is simply not put back. Nobody
//! watches it here. It is asked whether it is still open when it is taken out, and now and then, so
//! that one that the peer has closed does not keep its socket.
//!
//! An HTTP/2 connection is here while it is in use, because others may share it.
//!
//! The pool is per [`Client`](crate::Client), and a connection's I/O runs on the runtime that made
//! it. Whoever runs one runtime per thread should have one client per thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::connect::Wanted;
use crate::connection::Connection;
use crate::h1;
use crate::http2::SharedHttp2;
use crate::task::Task;

/// Unused and shared connections, by origin.
pub(crate) struct Pool {
    state: Mutex<State>,
    idle_timeout: Duration,
    max_idle: usize,
}

#[derive(Default)]
struct State {
    hosts: HashMap<Arc<str>, Host>,
    /// Closes what was unused for too long. Runs only while there is something to close.
    reaper: Option<Task>,
}

#[derive(Default)]
struct Host {
    /// Oldest first.
    idle: Vec<Idle>,
    shared: Vec<Arc<SharedHttp2>>,
}

struct Idle {
    connection: h1::Connection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(idle_timeout: Duration, max_idle: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            idle_timeout,
            max_idle,
        })
    }

    /// An open connection to `origin`, the most recently used first: the others may then idle out.
    pub(crate) fn checkout(&self, origin: &str, wanted: Wanted) -> Option<Connection> {
        let mut state = self.state();
        let host = state.hosts.get_mut(origin)?;
        if wanted == Wanted::Any {
            if let Some(stream) = host.shared.iter().find_map(SharedHttp2::share) {
                return Some(Connection::Http2(stream));
            }
        }
        let now = Instant::now();
        while let Some(mut idle) = host.idle.pop() {
            if idle.is_fit(now, self.idle_timeout) {
                return Some(Connection::Http1(idle.connection));
            }
        }
        None
    }

    /// Keeps a connection whose response has ended properly.
    pub(crate) fn put_back(self: &Arc<Self>, origin: &Arc<str>, connection: h1::Connection) {
        // Without a runtime (it is being shut down) there is nobody to close it in time.
        if self.max_idle == 0 || Handle::try_current().is_err() {
            return;
        }
        let mut state = self.state();
        let host = state.hosts.entry(Arc::clone(origin)).or_default();
        if host.idle.len() >= self.max_idle {
            host.idle.remove(0);
        }
        host.idle.push(Idle {
            connection,
            since: Instant::now(),
        });
        self.start_reaper(&mut state);
    }

    /// Offers a new HTTP/2 connection to others. When several were made at once because none was
    /// there yet, only the first is offered; the rest end with their request.
    pub(crate) fn offer(self: &Arc<Self>, origin: &Arc<str>, connection: &Arc<SharedHttp2>) {
        let mut state = self.state();
        let host = state.hosts.entry(Arc::clone(origin)).or_default();
        host.shared.retain(|shared| !shared.is_closed());
        if !host.shared.iter().any(|shared| shared.has_room()) {
            host.shared.push(Arc::clone(connection));
        }
        self.start_reaper(&mut state);
    }

    fn start_reaper(self: &Arc<Self>, state: &mut State) {
        if state.reaper.as_ref().is_none_or(Task::is_finished) {
            let period = (self.idle_timeout / 4).clamp(SHORTEST_PERIOD, LONGEST_PERIOD);
            state.reaper = Some(Task::spawn(reap(Arc::downgrade(self), period)));
        }
    }

    /// Closes what is stale; whether anything is left.
    fn sweep(&self) -> bool {
        let mut state = self.state();
        let now = Instant::now();
        state.hosts.retain(|_, host| {
            host.idle
                .retain_mut(|idle| idle.is_fit(now, self.idle_timeout));
            host.shared.retain(|shared| {
                let expired = shared
                    .idle_since()
                    .is_some_and(|since| now - since >= self.idle_timeout);
                !expired && !shared.is_closed()
            });
            !host.idle.is_empty() || !host.shared.is_empty()
        });
        if state.hosts.is_empty() {
            state.reaper = None;
        }
        !state.hosts.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    fn is_fit(&mut self, now: Instant, idle_timeout: Duration) -> bool {
        now - self.since < idle_timeout && self.connection.is_quiet()
    }
}

/// Owned by the pool; ends when the pool is gone or has nothing left.
async fn reap(pool: Weak<Pool>, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.sweep() {
            return;
        }
    }
}

/// How often is looked for stale connections: often enough for short timeouts in use, rare enough
/// to cost nothing.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
const LONGEST_PERIOD: Duration = Duration::from_secs(15);
