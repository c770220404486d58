//! The two signals that end a command.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// From here on they end nothing by themselves.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            term: listen(SignalKind::terminate())?,
            int: listen(SignalKind::interrupt())?,
        })
    }

    /// The exit code that a shell gives a process killed by the signal.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.term.recv() => 143,
            _ = self.int.recv() => 130,
        }
    }
}
