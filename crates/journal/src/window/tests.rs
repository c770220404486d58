//! What needs to see inside: what is held, and a model with random operations.

mod beside;
mod earlier;
mod foreseen;
mod held;
mod listing;
mod mirror;
mod model;

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use super::*;
use crate::types::Kind;
use crate::{Reader, StreamId};

pub(super) fn at(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_000 + millis)
}

pub(super) fn window(max_bytes: usize) -> Arc<Window> {
    let id = StreamId::parse("01arz3ndektsv4rrffq69g5fav").unwrap();
    Window::new(id, Epoch::FIRST, at(0), WindowConfig { max_bytes })
}

/// Stages an entry whose `data:` line is `len` long.
pub(super) fn stage(window: &Window, kind: Kind, len: usize) -> Seq {
    window.stage(at(1)).push(kind, |out| write_line(out, len))
}

pub(super) fn write_line(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(b"data: ");
    out.resize(out.len() + len.saturating_sub(7), b'x');
    out.push(b'\n');
}

pub(super) fn terminal() -> TerminalParts {
    TerminalParts {
        kind: Kind::Done,
        code: None,
        lines: b"data: end\n".to_vec(),
        ending: Vec::new(),
        id_at: None,
    }
}
