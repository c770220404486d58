//! Descriptors that clients cannot use up.
//!
//! Each connection of a client is one, and each to its backend another. When all are used nothing can be opened any
//! more: no connection of a probe, whose silence ends the process, and no new one to the journal. So some are kept:
//! a connection of a client that would be one of them waits to be served, and one to a backend is not made.
//!
//! The system gives the lowest number that is free, so a number says how many are used at least.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use socket2::SockRef;
use tokio::time::{Instant, sleep};

/// Which numbers clients may use.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// They are below this; `None` where the system does not say how many there are.
    clients: Option<RawFd>,
    /// When it was last told that they are short.
    told: Option<Instant>,
}

impl Descriptors {
    /// Those of this process, by its limit now.
    pub(crate) fn of_process() -> Self {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self {
            clients: limit(&limits).map(|limit| limit - kept(limit)),
            told: None,
        }
    }

    /// From which number on they are kept.
    pub(crate) fn clients(&self) -> Option<RawFd> {
        self.clients
    }

    /// Waits until a connection of a client that has just been accepted would not be one of those that are kept.
    ///
    /// # Cancel safety
    /// Nothing is lost but the wait.
    pub(crate) async fn room_for(&mut self, socket: BorrowedFd<'_>) {
        if !self.is_kept(&socket) {
            return;
        }
        if self.told.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            self.told = Some(Instant::now());
            tracing::warn!("descriptors are short: connections of clients wait");
        }
        // A copy gets the number that the next descriptor would have.
        while !SockRef::from(&socket)
            .try_clone()
            .is_ok_and(|copy| !self.is_kept(&copy))
        {
            sleep(LOOK_AGAIN).await;
        }
    }

    fn is_kept(&self, socket: &impl AsRawFd) -> bool {
        self.clients
            .is_some_and(|clients| socket.as_raw_fd() >= clients)
    }
}

/// How many of so many are kept: for the journal, which has three connections and may make all of them again at once,
/// looks names up and reads files, and for operators.
fn kept(limit: RawFd) -> RawFd {
    (limit / 8).clamp(16, 64).min(limit / 2)
}

/// The soft limit of open files.
fn limit(limits: &str) -> Option<RawFd> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A crowd that comes and goes is worth one line now and then.
const TELL_AGAIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_counts() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max processes             63703                63703                processes \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(limit(limits), Some(1024));
        assert_eq!(limit(&limits.replace("1024", "unlimited")), None);
        assert_eq!(limit(""), None);
    }

    #[test]
    fn some_are_kept_and_never_most() {
        for (limit, expected) in [(20, 10), (64, 16), (256, 32), (1024, 64), (1 << 20, 64)] {
            assert_eq!(kept(limit), expected, "of {limit}");
        }
    }
}
