//! Writes that must make progress.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long a peer may take nothing while there is something to write.
#[derive(Debug)]
pub(crate) struct Pace {
    timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            stalled: None,
        }
    }

    /// Gives up on a peer that takes nothing: a write that stays pending for the timeout is an error.
    pub(crate) fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let after = self.timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + after)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}
