//! Filling a window with what stands in Redis.
//!
//! A window that is filled begins with the record that holds the cursor it was asked for with, and not with the log:
//! what lies before is read in pages by whoever needs it.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use redis::Value;
use streamweld_journal::{
    Access, Epoch, Found, Level, MirrorError, Seq, StreamId, Unreachable, Window, WindowConfig,
};

use crate::journal::Inner;
use crate::keys::Keys;
use crate::link::Answer;
use crate::pages::Entries;
use crate::record;
use crate::slot::Slot;
use crate::tail::LAST_ID;

/// What the meta hash of a log says.
pub(crate) struct Meta {
    pub(crate) access: Access,
    created: SystemTime,
    label: Bytes,
    pub(crate) ended: bool,
    /// Its end is at the level.
    pub(crate) sure: bool,
}

impl Meta {
    /// A window for what the log holds.
    pub(crate) fn window(self, id: StreamId, config: WindowConfig) -> Arc<Window> {
        let window = Window::new(id, Epoch::FIRST, self.created, config);
        window.set_label(self.label);
        window
    }
}

impl Inner {
    /// Looks a log up for a reader that stands at `after`.
    pub(crate) async fn find(
        self: &Arc<Self>,
        id: StreamId,
        after: Seq,
    ) -> Result<Found, Unreachable> {
        if let Some(found) = self.find_here(id) {
            return Ok(found);
        }
        if let Some(part) = self.followers.join(id) {
            return part.found().await;
        }
        let keys = self.config.prefix.keys(id);
        let (meta, gone) = self.meta(id, &keys).await?;
        // Of many who ask at once, the others may have it by now.
        if let Some(found) = self.find_here(id) {
            return Ok(found);
        }
        match (meta, gone) {
            (Some(meta), _) => self.follow(id, keys, meta, after).found().await,
            (None, Some(access)) => Ok(Found::Expired { access }),
            (None, None) => Ok(Found::Unknown),
        }
    }

    fn find_here(&self, id: StreamId) -> Option<Found> {
        let (window, access) = self.table().window(id)?;
        Some(Found::Here {
            window,
            access,
            follow: None,
        })
    }

    /// Meta hash and tombstone. A hash without its first fields is none: it was made by a late label.
    async fn meta(
        &self,
        id: StreamId,
        keys: &Keys,
    ) -> Result<(Option<Meta>, Option<Access>), Unreachable> {
        let mut commands = redis::pipe();
        commands
            .cmd("HMGET")
            .arg(&keys.meta)
            .arg(&["access", "created", "label", "ended", "sure"]);
        commands.cmd("GET").arg(&keys.gone);
        commands.cmd("EXISTS").arg(&keys.log);
        let answers = self.nodes.reads(id).call_all(&commands, 0).await;
        let answers = answers.map_err(|_| Unreachable)?.value;
        let [Ok(fields), Ok(gone), Ok(Value::Int(logs))] =
            <[_; 3]>::try_from(answers).map_err(|_| Unreachable)?
        else {
            return Err(Unreachable);
        };
        let meta = if logs > 0 { meta(fields) } else { None };
        let gone = match gone {
            Value::BulkString(access) => Access::try_from(access).ok(),
            _ => None,
        };
        Ok((meta, gone))
    }

    /// Whether there is such a log still.
    pub(crate) async fn stands(&self, id: StreamId, keys: &Keys) -> Result<bool, Unreachable> {
        let mut exists = redis::cmd("EXISTS");
        exists.arg(&keys.log);
        let said = self.nodes.reads(id).call(&exists, 0).await;
        Ok(said.map_err(|_| Unreachable)?.value != Value::Int(0))
    }

    /// Reads everything behind `place` into the window.
    pub(crate) async fn fill(
        &self,
        window: &Window,
        keys: &Keys,
        place: &mut Place,
    ) -> Result<Shown, Unreachable> {
        loop {
            let read = match &place.next {
                Next::Holding(seq) => self.begin(keys, *seq).await?,
                Next::Behind(id) => self.range(keys, &format!("({id}"), PAGE).await?,
            };
            let (mut entries, connection) = (read.value, read.connection);
            // Behind the greatest id there is nothing to ask for.
            let is_last = entries.len() < PAGE || entries.iter().any(|(id, _)| id == LAST_ID);
            let doubtful = self.take_doubtful(&mut entries, is_last, place, (keys, connection));
            let doubtful = doubtful.await;
            for (_, record) in &entries {
                match place.show(window, record) {
                    Shown::Yes => {}
                    other => return Ok(other),
                }
            }
            if let Some((newest, _)) = entries.last() {
                place.next = Next::Behind(newest.clone());
            }
            if is_last {
                // Of a log that has its end, a part is no answer, nor is nothing of one that has begun.
                let is_needed = |at: &str| at == LAST_ID || window.received() == Seq::ZERO;
                return match doubtful {
                    Some(at) if is_needed(&at) => Err(Unreachable),
                    Some(_) | None => Ok(Shown::Yes),
                };
            }
        }
    }

    /// Where a window begins that is asked for with the cursor `seq`. A client can ask with anything: with what does not
    /// stand yet, it begins with the end of the log.
    async fn begin(&self, keys: &Keys, seq: Seq) -> Result<Answer<Entries>, Unreachable> {
        let read = self.holding(keys, seq, PAGE).await?;
        if read.value.is_empty() && seq > Seq::FIRST {
            return self.newest(keys).await;
        }
        Ok(read)
    }

    /// Takes the newest record out if it may not be at the level yet, and gives its id. All before it are: a writer
    /// appends behind nothing else.
    async fn take_doubtful(
        &self,
        entries: &mut Entries,
        is_last: bool,
        place: &Place,
        (keys, connection): (&Keys, u64),
    ) -> Option<String> {
        if place.sure || self.level() == Level::Async || entries.is_empty() {
            return None;
        }
        // Of a full page the last comes again with the next one.
        if is_last
            && self
                .is_sure(self.nodes.reads(Slot::of(&keys.log)), connection, keys)
                .await
        {
            return None;
        }
        entries.pop().map(|(at, _)| at)
    }
}

/// How far a window has been filled.
pub(crate) struct Place {
    next: Next,
    /// The epoch of the last record.
    epoch: Epoch,
    /// All of the log is known to be at the level.
    sure: bool,
}

/// Where in the stream to read on.
enum Next {
    /// With the record that holds this entry. Nothing was read yet.
    Holding(Seq),
    /// Behind this id.
    Behind(String),
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It is in the window, perhaps since long.
    Yes,
    /// What comes before it is not.
    Gap,
    /// It cannot be: it is no record, or does not continue what was shown.
    Broken,
}

impl Place {
    /// The beginning of a window for readers at `after`.
    pub(crate) fn at(after: Seq, sure: bool) -> Self {
        Self {
            next: Next::Holding(after),
            epoch: Epoch::FIRST,
            sure,
        }
    }

    /// Shows a record to the readers of a window. An empty window begins with the first one it is shown.
    pub(crate) fn show(&mut self, window: &Window, bytes: &[u8]) -> Shown {
        let Ok(record) = record::decode(bytes) else {
            tracing::error!(stream_id = %window.id(), "what stands in Redis cannot be read");
            return Shown::Broken;
        };
        if window.received() == Seq::ZERO && record.first > Seq::FIRST {
            window.begin_after(Seq::new(record.first.get() - 1));
        }
        let received = window.received();
        // A later writer goes on from what stood. If that is behind what was shown, Redis has lost some of it, and
        // what comes would be other events under the same sequences.
        if record.epoch > self.epoch && record.first <= received {
            return Shown::Broken;
        }
        if record.first > received.next() {
            return Shown::Gap;
        }
        let last = match record.show(window) {
            Ok(last) => last,
            Err(MirrorError::Gap { .. }) => return Shown::Gap,
            Err(MirrorError::Foreign | MirrorError::Malformed) => return Shown::Broken,
        };
        self.epoch = self.epoch.max(record.epoch);
        if record
            .last()
            .is_some_and(|(of_record, _)| of_record == last)
        {
            self.next = Next::Behind(match record.terminal {
                Some(_) => LAST_ID.to_owned(),
                None => format!("{}-{last}", record.epoch),
            });
        }
        Shown::Yes
    }
}

fn meta(fields: Value) -> Option<Meta> {
    let Value::Array(fields) = fields else {
        return None;
    };
    let [
        Value::BulkString(access),
        Value::BulkString(created),
        label,
        ended,
        sure,
    ] = <[Value; 5]>::try_from(fields).ok()?
    else {
        return None;
    };
    let label = match label {
        Value::BulkString(label) => Bytes::from(label),
        _ => Bytes::new(),
    };
    let created = std::str::from_utf8(&created).ok()?.parse().ok()?;
    Some(Meta {
        access: Access::try_from(access).ok()?,
        created: record::time(created)?,
        label,
        ended: ended != Value::Nil,
        sure: sure != Value::Nil,
    })
}

/// Records in one answer: bounded, so that nothing else waits long behind it.
const PAGE: usize = 32;
