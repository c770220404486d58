//! Whether there is a connection, and what is held against it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::failure::{Code, ConnectError};

#[derive(Default)]
pub(super) struct State {
    /// The last number that was given to a connection.
    count: u64,
    up: Option<Up>,
    /// Why there is no connection; `None` while there is one, and when the last one was simply cut.
    pub(super) trouble: Option<ConnectError>,
}

struct Up {
    /// The number it began with.
    first: u64,
    connection: MultiplexedConnection,
    /// Calls that are under way when the connection is given up end with it, without an answer.
    _driver: AbortOnDropHandle<()>,
    since: Instant,
    /// Waves of calls without an answer, one after the other.
    misses: u32,
    /// When the last of them was noticed.
    missed: Option<Instant>,
    heard: Instant,
    loading: Option<Instant>,
}

impl State {
    pub(super) fn connection(&self) -> Option<(MultiplexedConnection, u64)> {
        Some((self.up.as_ref()?.connection.clone(), self.count))
    }

    /// The number of the connection that is up, 0 for none.
    pub(super) fn number(&self) -> u64 {
        if self.up.is_some() { self.count } else { 0 }
    }

    /// A number for a connection that is about to be made.
    pub(super) fn next(&mut self) -> u64 {
        self.count = CONNECTIONS.fetch_add(NUMBERS, Ordering::Relaxed);
        self.count
    }

    /// The connection of the number that was last asked for.
    pub(super) fn came_up(
        &mut self,
        connection: MultiplexedConnection,
        driver: AbortOnDropHandle<()>,
    ) {
        let now = Instant::now();
        self.trouble = None;
        self.up = Some(Up {
            first: self.count,
            connection,
            _driver: driver,
            since: now,
            misses: 0,
            missed: None,
            heard: now,
            loading: None,
        });
    }

    /// The connection that began with this number leads to other data now. Says whether it is the one that is up.
    pub(super) fn emptied(&mut self, first: u64) -> bool {
        let is_up = self.up.as_ref().is_some_and(|up| up.first == first);
        if is_up {
            self.count += 1;
        }
        is_up
    }

    /// How long the connection has been up.
    pub(super) fn age(&self) -> Option<Duration> {
        self.up.as_ref().map(|up| up.since.elapsed())
    }

    /// How long nothing has been heard on it.
    pub(super) fn silence(&self) -> Option<Duration> {
        self.up.as_ref().map(|up| up.heard.elapsed())
    }

    pub(super) fn answered(&mut self, number: u64) {
        if let Some(up) = self.this(number) {
            up.misses = 0;
            up.heard = Instant::now();
        }
    }

    /// A call that began at `began` had no answer in time. Those that were under way when the last one was noticed
    /// belong to the same wave. Says whether the connection is given up for it.
    pub(super) fn missed(&mut self, number: u64, began: Instant) -> bool {
        let Some(up) = self.this(number) else {
            return false;
        };
        if up.missed.is_none_or(|missed| began >= missed) {
            up.misses += 1;
            up.missed = Some(Instant::now());
        }
        let is_dead = up.misses >= MISSES;
        if is_dead {
            self.give_up_for(ConnectError::TimedOut);
        }
        is_dead
    }

    /// The server said no. Gives the trouble that this is, when the connection is given up for it.
    pub(super) fn refused(
        &mut self,
        number: u64,
        code: &Code,
        patience: Duration,
    ) -> Option<ConnectError> {
        let up = self.this(number)?;
        let is_wrong = match code.as_str() {
            "READONLY" | "NOAUTH" | "WRONGPASS" => true,
            "LOADING" => up.loading.get_or_insert_with(Instant::now).elapsed() > patience,
            _ => {
                up.loading = None;
                false
            }
        };
        is_wrong.then(|| {
            let trouble = ConnectError::from(code.clone());
            self.give_up_for(trouble.clone());
            trouble
        })
    }

    pub(super) fn give_up(&mut self, number: u64) {
        if self.this(number).is_some() {
            self.up = None;
        }
    }

    /// The connection leads to a server that is not the right one.
    pub(super) fn give_up_for(&mut self, trouble: ConnectError) {
        self.trouble = Some(trouble);
        self.up = None;
    }

    fn this(&mut self, number: u64) -> Option<&mut Up> {
        let last = self.count;
        // Any of the numbers that it had.
        let had = |up: &&mut Up| (up.first..=last).contains(&number);
        self.up.as_mut().filter(had)
    }
}

/// The first number of the next connection, whichever link it belongs to: what was seen on one was seen on no other.
static CONNECTIONS: AtomicU64 = AtomicU64::new(NUMBERS);
/// Each connection has so many for itself, because it takes the next whenever its server puts its data away. There are
/// as many connections, and nobody lives to see the end of either.
const NUMBERS: u64 = 1 << 32;

/// Waves without an answer after which a connection is no longer believed in: one may be a pause of the server.
const MISSES: u32 = 3;
