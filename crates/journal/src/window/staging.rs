//! The writer's hold on a window while it stages what one upstream read brought.

use std::sync::MutexGuard;
use std::time::SystemTime;

use super::state::State;
use super::waiters::Wake;
use crate::idline::Prefix;
use crate::types::{Kind, Seq, Terminal, TerminalParts};

/// Stages entries under one lock; see [`Window::stage`](super::Window::stage).
pub struct Staging<'a> {
    prefix: &'a Prefix,
    // Order matters: the lock is released before the readers are woken.
    state: MutexGuard<'a, State>,
    wake: Wake,
    millis: u32,
    /// Something was staged under this very lock.
    has_staged: bool,
}

impl<'a> Staging<'a> {
    pub(super) fn new(prefix: &'a Prefix, state: MutexGuard<'a, State>, now: SystemTime) -> Self {
        let millis = state.millis(now);
        Self {
            prefix,
            state,
            wake: Wake::default(),
            millis,
            has_staged: false,
        }
    }

    /// Stages one entry and returns its sequence. `lines` appends the lines of its block, each ended by
    /// LF, and must leave alone what is already there; the window adds the id line and the blank
    /// line.
    ///
    /// # Panics
    /// When a terminal is staged or a suffix was abandoned; when the kind is final; when the first
    /// entry is not `open`, or a later one is.
    pub fn push(&mut self, kind: Kind, lines: impl FnOnce(&mut Vec<u8>)) -> Seq {
        assert!(!kind.is_terminal(), "a terminal has its own way in");
        self.append(kind, lines)
    }

    /// Keeps bytes beside the entry that was staged last, for whoever continues the log when its writer is gone. Readers
    /// are not given them; what is staged beside one entry is one piece. The window holds them until the entry cannot have
    /// to be appended (again), and [`Batch`](super::Batch) has them for a journal that others read.
    ///
    /// # Panics
    /// When nothing was staged by this `Staging`: an entry of an earlier one may be under way without them.
    pub fn beside(&mut self, bytes: &[u8]) {
        assert!(self.has_staged, "bytes are beside an entry");
        self.state.put_beside(bytes);
    }

    /// The last entry staged so far.
    pub fn received(&self) -> Seq {
        self.state.received()
    }

    pub(super) fn terminal(&mut self, now: SystemTime, parts: TerminalParts) -> Seq {
        assert!(parts.kind.is_terminal(), "`{}` ends nothing", parts.kind);
        let seq = self.append(parts.kind, |out| out.extend_from_slice(&parts.lines));
        self.state.set_terminal(Terminal {
            kind: parts.kind,
            code: parts.code,
            seq,
            time: now,
            lines: exact(parts.lines),
            ending: exact(parts.ending),
            id_at: parts.id_at,
        });
        seq
    }

    fn append(&mut self, kind: Kind, lines: impl FnOnce(&mut Vec<u8>)) -> Seq {
        self.has_staged = true;
        let prefix = self.prefix;
        self.state.push(kind, self.millis, |seq, epoch, out| {
            lines(out);
            debug_assert!(
                out.last().is_none_or(|&byte| byte == b'\n'),
                "lines end with LF"
            );
            prefix.close_block(seq, epoch, out);
        })
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        self.state.turn();
        self.state.settle();
        if self.state.exposed() {
            self.wake = self.state.wake();
        }
    }
}

fn exact(mut bytes: Vec<u8>) -> bytes::Bytes {
    bytes.shrink_to_fit();
    bytes.into()
}
