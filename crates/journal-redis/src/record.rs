//! One committed batch as bytes: the field of a stream entry, and the payload of what is published to followers.
//!
//! The entries' bytes are those of the writer's window, so a follower stores them as they are. What is read back may
//! be anything: decoding never panics, takes no memory before it has checked that what is named is there, and leaves
//! it to [`Window::mirror`] whether the content continues what stands.
//!
//! ```text
//! version  u8      2, or 1, which is read as well (the script of an end reads as far as `first`)
//! epoch    u64     of the writer, all numbers big-endian; u32 in version 1
//! first    u64     the sequence of the first entry
//! count    u32     entries; none in a mark: that of a change of the writer, or one that says where the log stands
//! follows  u64     in a mark: the epoch of what it stands behind; not in version 1
//! entries          count times: kind u8, length u32, nanoseconds since 1970 u64
//! terminal u8      0, or 1 and then: kind u8, nanoseconds u64, id_at u64 (all ones: none),
//!                  code u16 (all ones: none) and its text, lines u32 and bytes, ending u32 and bytes
//! bytes            the blocks of the entries, one behind the other, to the end
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use streamweld_journal::rules::Brings;
use streamweld_journal::{
    Adoption, Batch, Digest, Entry, Epoch, Kind, MirrorError, Mirrored, Seq, Terminal, Window,
};

/// A decoded batch; its blocks are borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The epoch that all entries were written under.
    pub epoch: Epoch,
    /// Where the entries begin; where the next one belongs, when there are none.
    pub first: Seq,
    /// In order and without a gap.
    pub entries: Vec<Entry>,
    /// Their blocks, one behind the other.
    pub bytes: &'a [u8],
    /// What the last entry is, if that is a terminal.
    pub terminal: Option<Terminal>,
    /// In a mark: the epoch of what it stands behind. Version 1 did not tell.
    pub follows: Option<Epoch>,
}

/// Bytes that are no record of a version that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a journal record")]
pub struct BadRecord;

/// The bytes of a batch that was written under `epoch`.
///
/// # Panics
/// When an entry, or a part of the terminal, is longer than 4 GiB.
pub fn encode(batch: &Batch, epoch: Epoch) -> Vec<u8> {
    let first = batch
        .entries
        .first()
        .map_or(batch.after.next(), |it| it.seq);
    let mut out = Vec::with_capacity(
        HEAD + batch.entries.len() * ENTRY
            + 1
            + batch.terminal.as_deref().map_or(0, terminal_len)
            + batch.len(),
    );
    put_head(&mut out, epoch, first, batch.entries.len());
    for entry in &batch.entries {
        out.push(entry.kind as u8);
        put_len(&mut out, entry.len);
        put_time(&mut out, entry.time);
    }
    match batch.terminal.as_deref() {
        None => out.push(0),
        Some(terminal) => {
            out.push(1);
            put_terminal(&mut out, terminal);
        }
    }
    for run in &batch.runs {
        out.extend_from_slice(run);
    }
    out
}

/// The record without entries that marks a change of the writer.
pub fn change(adoption: Adoption) -> Vec<u8> {
    mark(adoption.epoch(), adoption.last(), adoption.replaces())
}

/// The record without entries that says where a log stands that is written under `epoch`. It is published and not stored.
pub fn stand(epoch: Epoch, last: Seq) -> Vec<u8> {
    mark(epoch, last, epoch)
}

fn mark(epoch: Epoch, last: Seq, follows: Epoch) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + FOLLOWS + 1);
    put_head(&mut out, epoch, last.next(), 0);
    out.extend_from_slice(&follows.get().to_be_bytes());
    out.push(0);
    out
}

/// Reads what [`encode`], [`change`] and [`stand`] write, and wrote in version 1.
///
/// # Errors
/// When it is anything else. That the blocks are what a window stores is not looked at here.
pub fn decode(bytes: &[u8]) -> Result<Record<'_>, BadRecord> {
    let mut rest = Rest(bytes);
    let version = rest.u8()?;
    let epoch = match version {
        VERSION => rest.epoch()?,
        NARROW => Epoch::new(rest.u32()?.into()).ok_or(BadRecord)?,
        _ => return Err(BadRecord),
    };
    let first = rest.u64()?;
    let count = rest.u32()? as usize;
    let follows = (count == 0 && version == VERSION).then(|| rest.epoch());
    let follows = follows.transpose()?;
    // Entries after the last sequence there can be would wrap around.
    let Some(behind) = first.checked_add(count as u64).filter(|_| first != 0) else {
        return Err(BadRecord);
    };
    let heads = rest.take(count.checked_mul(ENTRY).ok_or(BadRecord)?)?;
    let mut entries = Vec::with_capacity(count);
    let mut total = 0_usize;
    for (seq, head) in (first..behind).zip(heads.chunks_exact(ENTRY)) {
        let mut head = Rest(head);
        let entry = Entry {
            seq: Seq::new(seq),
            kind: head.kind()?,
            len: head.u32()? as usize,
            time: head.time()?,
        };
        total = total.checked_add(entry.len).ok_or(BadRecord)?;
        entries.push(entry);
    }
    let terminal = match rest.u8()? {
        0 => None,
        1 => {
            let last = entries.last().ok_or(BadRecord)?;
            Some(rest.terminal(last.seq)?)
        }
        _ => return Err(BadRecord),
    };
    if rest.0.len() != total {
        return Err(BadRecord);
    }
    Ok(Record {
        epoch,
        first: Seq::new(first),
        entries,
        bytes: rest.0,
        terminal,
        follows,
    })
}

impl Record<'_> {
    /// Appends the entries to a window that follows, and shows them; see [`Window::mirror`]. Returns the last entry
    /// that stands there.
    ///
    /// # Errors
    /// Nothing was changed; see [`MirrorError`].
    pub fn show(&self, window: &Window) -> Result<Seq, MirrorError> {
        window.mirror(&self.mirrored())
    }

    /// The same with entries that may not stand; see [`Window::foresee`].
    ///
    /// # Errors
    /// Nothing was changed; see [`MirrorError`].
    pub fn foresee(&self, window: &Window) -> Result<Seq, MirrorError> {
        window.foresee(&self.mirrored())
    }

    fn mirrored(&self) -> Mirrored<'_> {
        Mirrored {
            epoch: self.epoch,
            entries: &self.entries,
            bytes: self.bytes,
            terminal: self.terminal.as_ref(),
        }
    }

    /// What it brings, for whoever follows.
    pub fn brings(&self) -> Brings {
        match self.entries.last() {
            Some(last) => Brings::Entries(last.seq),
            None => Brings::Mark {
                follows: self.follows,
            },
        }
    }

    /// The last entry with the digest of its block; `None` when there are no entries.
    pub fn last(&self) -> Option<(Seq, Digest)> {
        let last = self.entries.last()?;
        let block = &self.bytes[self.bytes.len() - last.len..];
        Some((last.seq, Digest::of(block)))
    }
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], BadRecord> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BadRecord)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(BadRecord)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, BadRecord> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, BadRecord> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, BadRecord> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, BadRecord> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn epoch(&mut self) -> Result<Epoch, BadRecord> {
        Epoch::new(self.u64()?).ok_or(BadRecord)
    }

    fn kind(&mut self) -> Result<Kind, BadRecord> {
        let number = usize::from(self.u8()?);
        Kind::ALL.get(number).copied().ok_or(BadRecord)
    }

    fn time(&mut self) -> Result<SystemTime, BadRecord> {
        time(self.u64()?).ok_or(BadRecord)
    }

    fn terminal(&mut self, seq: Seq) -> Result<Terminal, BadRecord> {
        let kind = self.kind()?;
        let time = self.time()?;
        let id_at = match self.u64()? {
            u64::MAX => None,
            at => Some(usize::try_from(at).map_err(|_| BadRecord)?),
        };
        let code = match self.u16()? {
            u16::MAX => None,
            len => {
                let text = std::str::from_utf8(self.take(usize::from(len))?);
                Some(text.map_err(|_| BadRecord)?.to_owned())
            }
        };
        let len = self.u32()? as usize;
        let lines = Bytes::copy_from_slice(self.take(len)?);
        let len = self.u32()? as usize;
        let ending = Bytes::copy_from_slice(self.take(len)?);
        // Readers cut the ending there.
        if !kind.is_terminal() || id_at.is_some_and(|at| at > ending.len()) {
            return Err(BadRecord);
        }
        Ok(Terminal {
            kind,
            code,
            seq,
            time,
            lines,
            ending,
            id_at,
        })
    }
}

/// Nanoseconds since 1970 as this crate stores them: a time before counts as 1970, one after 2554 as then.
pub(crate) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The other way round; `None` where the system has no such time.
pub(crate) fn time(nanos: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
}

fn put_head(out: &mut Vec<u8>, epoch: Epoch, first: Seq, count: usize) {
    out.push(VERSION);
    out.extend_from_slice(&epoch.get().to_be_bytes());
    out.extend_from_slice(&first.get().to_be_bytes());
    put_len(out, count);
}

fn put_terminal(out: &mut Vec<u8>, terminal: &Terminal) {
    out.push(terminal.kind as u8);
    put_time(out, terminal.time);
    let id_at = terminal.id_at.map_or(u64::MAX, |at| at as u64);
    out.extend_from_slice(&id_at.to_be_bytes());
    // A word; one that is longer than any would be is told without.
    let code = terminal.code.as_deref();
    match code.filter(|code| code.len() < usize::from(u16::MAX)) {
        None => out.extend_from_slice(&u16::MAX.to_be_bytes()),
        Some(code) => {
            out.extend_from_slice(&(code.len() as u16).to_be_bytes());
            out.extend_from_slice(code.as_bytes());
        }
    }
    for part in [&terminal.lines, &terminal.ending] {
        put_len(out, part.len());
        out.extend_from_slice(part);
    }
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("windows are smaller than 4 GiB");
    out.extend_from_slice(&len.to_be_bytes());
}

fn put_time(out: &mut Vec<u8>, time: SystemTime) {
    out.extend_from_slice(&nanos(time).to_be_bytes());
}

fn terminal_len(terminal: &Terminal) -> usize {
    let code = terminal.code.as_ref().map_or(0, String::len);
    1 + 8 + 8 + 2 + code + 4 + terminal.lines.len() + 4 + terminal.ending.len()
}

const VERSION: u8 = 2;
/// Its epochs were counted.
const NARROW: u8 = 1;
const HEAD: usize = 1 + 8 + 8 + 4;
const FOLLOWS: usize = 8;
const ENTRY: usize = 1 + 4 + 8;

// By path, because the fuzz target includes this file by path, and its formatter looks for the tests then too.
#[cfg(test)]
#[path = "record/tests.rs"]
mod tests;
