//! What goes over a relay.
//!
//! ```text
//! GET /v1/generations/<stream id>?after=<seq>&epoch=<epoch>      a generation of which everything to there is known
//! GET /v1/generations/<stream id>?after=<seq>                    one of which nothing is known
//!
//! 404   it is not written here, or not under that epoch, or what comes next is not here
//! 200   frames, until nothing more comes
//!
//! length  u32     of what follows, all numbers big-endian
//! kind    u8      1: entries that stand; 2: entries that may not; 3: what it is about
//! 1, 2            committed u64, and a record (journal-redis: record)
//! 3               access 32 bytes, created u64 (nanoseconds since 1970), epoch u64, label
//! ```
//!
//! The first frame is 3 where nothing is known. The next is a mark: a record without entries, which says where they begin.
//! A kind that is not known is passed over, so that replicas of two versions get on with each other.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::Uri;
use streamweld_journal::{Epoch, Seq, StreamId};
use streamweld_journal_redis::relay::{About, Ask, Told};

/// One frame, read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Told(Told),
    About(About),
}

/// Bytes that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a frame of a relay")]
pub(crate) struct BadFrame;

/// Where an answer to this is.
pub(crate) fn target(ask: &Ask) -> String {
    let Ask { id, after, writer } = ask;
    let epoch = writer.map_or_else(String::new, |epoch| format!("&epoch={epoch}"));
    format!("{PATH}{id}?after={after}{epoch}")
}

/// The other way round; `None` for everything else.
pub(crate) fn asked(target: &Uri) -> Option<Ask> {
    let id = StreamId::parse(target.path().strip_prefix(PATH)?).ok()?;
    let (mut after, mut writer) = (None, None);
    for part in target.query()?.split('&') {
        match part.split_once('=')? {
            ("after", seq) => after = Some(Seq::new(seq.parse().ok()?)),
            ("epoch", epoch) => writer = Some(Epoch::new(epoch.parse().ok()?)?),
            // Of a later version.
            _ => {}
        }
    }
    let after = after?;
    Some(Ask { id, after, writer })
}

pub(crate) fn encode_told(told: &Told) -> Bytes {
    let mut out = begin(1 + 8 + told.record.len());
    out.put_u8(if told.stands { STANDS } else { MAY_NOT });
    out.put_u64(told.committed.get());
    out.put_slice(&told.record);
    out.freeze()
}

pub(crate) fn encode_about(about: &About) -> Bytes {
    let mut out = begin(1 + about.access.len() + 8 + 8 + about.label.len());
    out.put_u8(ABOUT);
    out.put_slice(&about.access);
    let since = about.created.duration_since(UNIX_EPOCH).unwrap_or_default();
    out.put_u64(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    out.put_u64(about.epoch.get());
    out.put_slice(&about.label);
    out.freeze()
}

fn begin(len: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(4 + len);
    out.put_u32(u32::try_from(len).expect("windows are smaller than 4 GiB"));
    out
}

/// The next frame, as soon as it is whole.
pub(crate) fn decode(buf: &mut BytesMut) -> Result<Option<Frame>, BadFrame> {
    loop {
        let Some(len) = buf.first_chunk() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*len) as usize;
        if len == 0 || len > LONGEST {
            return Err(BadFrame);
        }
        if buf.len() < 4 + len {
            return Ok(None);
        }
        buf.advance(4);
        let frame = buf.split_to(len).freeze();
        if let Some(frame) = read(frame)? {
            return Ok(Some(frame));
        }
    }
}

fn read(mut frame: Bytes) -> Result<Option<Frame>, BadFrame> {
    match frame.get_u8() {
        kind @ (STANDS | MAY_NOT) => {
            let committed = frame.try_get_u64().map_err(|_| BadFrame)?;
            Ok(Some(Frame::Told(Told {
                stands: kind == STANDS,
                committed: Seq::new(committed),
                record: frame,
            })))
        }
        ABOUT => {
            let mut access = [0; 32];
            frame.try_copy_to_slice(&mut access).map_err(|_| BadFrame)?;
            let created = Duration::from_nanos(frame.try_get_u64().map_err(|_| BadFrame)?);
            let created: SystemTime = UNIX_EPOCH.checked_add(created).ok_or(BadFrame)?;
            let epoch = frame.try_get_u64().map_err(|_| BadFrame)?;
            Ok(Some(Frame::About(About {
                access,
                created,
                epoch: Epoch::new(epoch).ok_or(BadFrame)?,
                label: frame,
            })))
        }
        _ => Ok(None),
    }
}

const PATH: &str = "/v1/generations/";
const STANDS: u8 = 1;
const MAY_NOT: u8 = 2;
const ABOUT: u8 = 3;
/// More than one event can be, with what comes in one piece with it.
const LONGEST: usize = 64 << 20;

#[cfg(test)]
mod tests;
