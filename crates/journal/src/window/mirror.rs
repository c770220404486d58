//! A window that shows what another process appends.

use std::sync::MutexGuard;

use super::Digest;
use super::batch::Entry;
use super::state::State;
use crate::idline::Prefix;
use crate::types::{Epoch, Kind, Seq, Terminal};

/// Entries that another process appended, with the bytes that its window stored.
#[derive(Clone, Copy, Debug)]
pub struct Mirrored<'a> {
    /// The epoch that all of them were written under.
    pub epoch: Epoch,
    /// In order and without a gap.
    pub entries: &'a [Entry],
    /// Their blocks, one behind the other.
    pub bytes: &'a [u8],
    /// What the last of them is, if that is a terminal.
    pub terminal: Option<&'a Terminal>,
}

/// Why entries were not taken. None of them was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// What lies between the window's last entry and these is missing.
    #[error("the entry {expected} is missing")]
    Gap {
        /// The first one missing.
        expected: Seq,
    },
    /// They were written under an older epoch than what stands, or change what stands.
    #[error("they do not continue what stands")]
    Foreign,
    /// They are others than those that were foreseen in their place.
    #[error("they replace what was foreseen")]
    Replaced,
    /// They are not what a window stores.
    #[error("they are malformed")]
    Malformed,
}

/// Appends. Entries that stand already are skipped, and those that were foreseen have to be the same. Gives the last of
/// them that is here.
pub(super) fn mirror(
    prefix: &Prefix,
    state: &mut MutexGuard<'_, State>,
    new: &Mirrored<'_>,
) -> Result<Seq, MirrorError> {
    check(prefix, new)?;
    let (committed, received) = (state.committed(), state.received());
    let Some(first) = new.entries.first() else {
        return Ok(committed);
    };
    if first.seq > received.next() {
        return Err(MirrorError::Gap {
            expected: received.next(),
        });
    }
    let skipped = (received.next().get() - first.seq.get()).min(new.entries.len() as u64) as usize;
    let (old, entries) = new.entries.split_at(skipped);
    let mut start = 0;
    for entry in old {
        let block = &new.bytes[start..start + entry.len];
        start += entry.len;
        if entry.seq <= committed {
            continue;
        }
        // The bytes have the epoch in them, unless it is the first.
        let is_same = state.digest(entry.seq) == Some(Digest::of(block));
        if !is_same || entry.kind.is_terminal() != state.ends_at(entry.seq) {
            return Err(MirrorError::Replaced);
        }
    }
    let last_old = old.last().map_or(committed, |entry| entry.seq);
    if entries.is_empty() {
        return Ok(last_old.max(committed));
    }
    if new.epoch < state.epoch() || state.has_terminal() {
        return Err(MirrorError::Foreign);
    }
    if new.epoch > state.epoch() && received > committed {
        return Err(MirrorError::Replaced);
    }
    let opens = entries[0].seq == Seq::FIRST;
    if opens != (entries[0].kind == Kind::Open) {
        return Err(MirrorError::Malformed);
    }
    if received == committed {
        state.begin_epoch(new.epoch);
    }
    for entry in entries {
        let block = &new.bytes[start..start + entry.len];
        start += entry.len;
        let millis = state.millis(entry.time);
        state.push(entry.kind, millis, |_, _, out| out.extend_from_slice(block));
    }
    if let Some(terminal) = new.terminal {
        state.set_terminal(terminal.clone());
    }
    Ok(state.received())
}

/// Everything that reading relies on: what comes from elsewhere may be anything.
fn check(prefix: &Prefix, new: &Mirrored<'_>) -> Result<(), MirrorError> {
    let mut rest = new.bytes;
    let mut close = Vec::new();
    for (place, entry) in new.entries.iter().enumerate() {
        let seq = new.entries[0].seq.get().checked_add(place as u64);
        let is_last = place + 1 == new.entries.len();
        let ends = new
            .terminal
            .filter(|terminal| is_last && terminal.seq == entry.seq && terminal.kind == entry.kind);
        if seq != Some(entry.seq.get())
            || entry.seq == Seq::ZERO
            || entry.kind.is_terminal() != ends.is_some()
            || (place > 0 && entry.kind == Kind::Open)
        {
            return Err(MirrorError::Malformed);
        }
        let (block, behind) = rest
            .split_at_checked(entry.len)
            .ok_or(MirrorError::Malformed)?;
        close.clear();
        prefix.close_block(entry.seq, new.epoch, &mut close);
        let lines = block
            .strip_suffix(&close[..])
            .ok_or(MirrorError::Malformed)?;
        if lines.last().is_some_and(|byte| *byte != b'\n') {
            return Err(MirrorError::Malformed);
        }
        rest = behind;
    }
    if !rest.is_empty() || (new.entries.is_empty() && new.terminal.is_some()) {
        return Err(MirrorError::Malformed);
    }
    Ok(())
}
