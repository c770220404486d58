//! Filling a window with what stands in Redis.
//!
//! A window that is filled begins with the record that holds the cursor it was asked for with, and not with the log:
//! what lies before is read in pages by whoever needs it.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use redis::Value;
use streamweld_journal::rules::{self, Continues, continues};
use streamweld_journal::{
    Access, Admits, Epoch, Found, Level, MirrorError, Replica, Seq, StreamId, Unreachable, Window,
    WindowConfig,
};

use crate::journal::Inner;
use crate::keys::Keys;
use crate::link::Answer;
use crate::orders::parse_replica;
use crate::pages::Entries;
use crate::record;
use crate::relay::{About, Told};
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
    /// Who wrote it when this was read.
    pub(crate) owner: Option<Replica>,
    /// The first that its window may have.
    epoch: Epoch,
}

impl Meta {
    /// A window for what the log holds.
    pub(crate) fn window(self, id: StreamId, config: WindowConfig) -> Arc<Window> {
        let window = Window::new(id, self.epoch, self.created, config);
        window.set_label(self.label);
        window
    }

    /// What its writer has told of it.
    pub(crate) fn told(about: About, owner: Replica) -> Self {
        Self {
            access: about.access,
            created: about.created,
            label: about.label,
            ended: false,
            sure: false,
            owner: Some(owner),
            epoch: about.epoch,
        }
    }
}

impl Inner {
    /// Looks a log up for a reader that stands at `after`. For one that is refused, what is known here is as if it were
    /// not: it costs the same look at Redis as what never was.
    pub(crate) async fn find(
        self: &Arc<Self>,
        id: StreamId,
        after: Seq,
        admits: &Admits<'_>,
    ) -> Result<Found, Unreachable> {
        if let Some(found) = self.find_here(id, admits) {
            return Ok(found);
        }
        if let Some(part) = self.followers.join(id, admits) {
            return part.found().await;
        }
        let keys = self.config.prefix.keys(id);
        let Ok((meta, gone)) = self.meta(id, &keys).await else {
            let found = self.find_by_relay(id).await;
            // A stranger is told what is told of an unknown one while Redis is away.
            let found = found.filter(|(meta, _)| admits(&meta.access));
            let (meta, told) = found.ok_or(Unreachable)?;
            let part = self.follow(id, keys, meta, Seq::ZERO, Some(told));
            return part.found().await;
        };
        // Of many who ask at once, the others may have it by now.
        if let Some(found) = self.find_here(id, admits) {
            return Ok(found);
        }
        match (meta, gone) {
            (Some(meta), _) if admits(&meta.access) => {
                self.follow(id, keys, meta, after, None).found().await
            }
            (None, Some(access)) if admits(&access) => Ok(Found::Expired { access }),
            (Some(_) | None, _) => Ok(Found::Unknown),
        }
    }

    fn find_here(&self, id: StreamId, admits: &Admits<'_>) -> Option<Found> {
        let (window, access) = self.table().window(id).filter(|(_, it)| admits(it))?;
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
            .arg(&["access", "created", "label", "ended", "sure", "owner"]);
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
    /// The epoch of the latest writer.
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
    /// It takes the place of what was foreseen: that will not stand.
    Replaced,
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
        // What was foreseen is not shown yet, as far as the log is concerned.
        let committed = window.committed();
        let shown = rules::Shown {
            received: committed,
            entry: window.epoch_of(committed).unwrap_or(window.epoch()),
            // What comes before the first record nobody has asked for.
            writer: match self.next {
                Next::Holding(_) => record.epoch,
                Next::Behind(_) => self.epoch,
            },
        };
        match continues(shown, record.epoch, record.first, record.brings()) {
            Continues::Yes => {}
            Continues::Gap => return Shown::Gap,
            Continues::Not => return Shown::Broken,
        }
        if record.epoch > shown.writer && window.received() > committed {
            return Shown::Replaced;
        }
        let last = match record.show(window) {
            Ok(last) => last,
            Err(MirrorError::Gap { .. }) => return Shown::Gap,
            Err(MirrorError::Replaced) => return Shown::Replaced,
            Err(MirrorError::Foreign | MirrorError::Malformed) => return Shown::Broken,
        };
        if record.terminal.is_some() && window.terminal().is_none() {
            // It lies within what was shown: Redis has lost the rest, and an earlier writer has ended what was left.
            return Shown::Broken;
        }
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

    /// Whether a record that was heard is one that reading never comes to: it is not among what was read, and has a lower
    /// epoch than what was shown, and has been lost.
    pub(crate) fn has_passed(&mut self, window: &Window, bytes: &[u8]) -> bool {
        self.show(window, bytes) == Shown::Gap
            && record::decode(bytes).is_ok_and(|record| record.epoch < self.epoch)
    }

    /// Shows what the writer itself has told, which has committed everything through `committed` and may not have
    /// committed the record. Where reading goes on does not change with that, but for what stands.
    pub(crate) fn hear(&mut self, window: &Window, told: &Told) -> Shown {
        let by = record::decode(&told.record).map(|record| record.epoch);
        // What was foreseen is of this writer, and may stand by now.
        if by == Ok(self.epoch) {
            self.stands(window, told.committed);
        }
        let shown = if told.stands {
            self.show(window, &told.record)
        } else {
            self.foresee(window, &told.record)
        };
        if shown == Shown::Yes {
            self.stands(window, told.committed);
        }
        shown
    }

    /// The writer has committed everything through there.
    fn stands(&mut self, window: &Window, committed: Seq) {
        let through = committed.min(window.received());
        if through > window.committed() {
            window.commit(through);
            self.next = Next::Behind(match window.terminal() {
                Some(_) => LAST_ID.to_owned(),
                None => format!("{}-{through}", self.epoch),
            });
        }
    }

    /// Only of the writer that was heard of last.
    fn foresee(&self, window: &Window, bytes: &[u8]) -> Shown {
        let Ok(record) = record::decode(bytes) else {
            return Shown::Broken;
        };
        if record.epoch != self.epoch {
            return Shown::Broken;
        }
        match record.foresee(window) {
            Ok(_) => Shown::Yes,
            Err(MirrorError::Gap { .. }) => Shown::Gap,
            Err(MirrorError::Replaced | MirrorError::Foreign | MirrorError::Malformed) => {
                Shown::Broken
            }
        }
    }

    /// The epoch of the writer that was heard of last.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
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
        owner,
    ] = <[Value; 6]>::try_from(fields).ok()?
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
        owner: match owner {
            Value::BulkString(name) => parse_replica(std::str::from_utf8(&name).ok()?),
            _ => None,
        },
        epoch: Epoch::FIRST,
    })
}

/// Records in one answer: bounded, so that nothing else waits long behind it.
const PAGE: usize = 32;

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use streamweld_journal::{Adoption, Kind, TerminalParts};

    use super::*;

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).expect("it is none but 0")
    }

    fn window(id: StreamId, by: u64) -> Arc<Window> {
        Window::new(id, epoch(by), UNIX_EPOCH, WindowConfig::default())
    }

    /// What a writer of this epoch appends behind `after`: so many entries, and perhaps an end.
    fn record(id: StreamId, by: u64, after: u64, entries: u64, ends: bool) -> Vec<u8> {
        let writer = window(id, by);
        writer.begin_after(Seq::new(after));
        for place in 0..entries {
            let kind = if after + place == 0 {
                Kind::Open
            } else {
                Kind::Event
            };
            let mut staging = writer.stage(UNIX_EPOCH);
            staging.push(kind, |out| out.extend_from_slice(b"data: {}\n"));
        }
        if ends {
            let terminal = TerminalParts {
                kind: Kind::Done,
                code: None,
                lines: b"event: streamweld.done\ndata: {}\n".to_vec(),
                ending: Vec::new(),
                id_at: None,
            };
            writer.stage_terminal(UNIX_EPOCH, terminal);
        }
        record::encode(&writer.staged(Seq::new(after)), epoch(by))
    }

    /// Shows these to a follower, one after the other; what became of the last.
    #[track_caller]
    fn check(id: StreamId, records: &[Vec<u8>], expected: Shown) {
        let (shown, mut place) = (window(id, 1), Place::at(Seq::ZERO, true));
        let (last, before) = records.split_last().expect("there is one");
        for record in before {
            assert_eq!(place.show(&shown, record), Shown::Yes);
        }
        assert_eq!(place.show(&shown, last), expected);
    }

    #[test]
    fn a_later_writer_begins_with_its_mark() {
        let id = StreamId::generate(UNIX_EPOCH);
        let (first, mark) = (
            record(id, 1, 0, 2, false),
            record::change(Adoption::new(epoch(1), Seq::new(2), epoch(2))),
        );
        let later = record(id, 2, 2, 1, false);
        check(id, &[first.clone(), mark, later.clone()], Shown::Yes);
        // It was not heard, or is lost, and what stands before is another's.
        check(id, &[first, later], Shown::Gap);
    }

    #[test]
    fn a_follower_may_begin_with_any_writer() {
        let id = StreamId::generate(UNIX_EPOCH);
        check(id, &[record(id, 7, 4, 2, false)], Shown::Yes);
    }

    /// The takeover was lost, with what it had written. The writer from before has come as far, and is taken over in its
    /// turn, whichever of the two epochs is the higher.
    #[test]
    fn a_change_that_follows_what_was_not_shown_is_none_that_continues() {
        let id = StreamId::generate(UNIX_EPOCH);
        let change = |of, last, by| {
            let adoption = Adoption::new(epoch(of), Seq::new(last), epoch(by));
            record::change(adoption)
        };
        let shown = [
            record(id, 1, 0, 2, false),
            change(1, 2, 5),
            record(id, 5, 2, 2, false),
        ];
        let with = |more: &[Vec<u8>]| [&shown[..], more].concat();
        check(id, &with(&[change(1, 4, 7)]), Shown::Gap);
        check(id, &with(&[change(5, 4, 7)]), Shown::Yes);
        let lower = [change(1, 4, 3), record(id, 3, 4, 1, false)];
        check(id, &with(&lower), Shown::Gap);
        let within = [change(1, 2, 3), record(id, 3, 2, 3, false)];
        check(id, &with(&within), Shown::Gap);
        // Of a takeover that was lost, only its mark was heard: the writer from before goes on, or is taken over anew.
        let heard = &shown[..2];
        let with = |more: &[Vec<u8>]| [heard, more].concat();
        check(id, &with(&[record(id, 1, 2, 1, false)]), Shown::Yes);
        check(id, &with(&[change(1, 2, 7)]), Shown::Yes);
        check(id, &with(&[record(id, 3, 2, 1, false)]), Shown::Gap);
    }

    /// Where the log stands is published as well.
    #[test]
    fn a_stand_behind_a_change_that_was_not_heard_is_a_gap() {
        let id = StreamId::generate(UNIX_EPOCH);
        let first = record(id, 1, 0, 2, false);
        let stand = |by, last| record::stand(epoch(by), Seq::new(last));
        check(id, &[first.clone(), stand(1, 2)], Shown::Yes);
        check(id, &[first.clone(), stand(1, 3)], Shown::Gap);
        check(id, &[first, stand(5, 2)], Shown::Gap);
    }

    /// The takeover was lost, with what it had written, and the writer from before has ended what was left.
    #[test]
    fn an_end_within_what_was_shown_ends_something_else() {
        let id = StreamId::generate(UNIX_EPOCH);
        let (first, mark) = (
            record(id, 1, 0, 2, false),
            record::change(Adoption::new(epoch(1), Seq::new(2), epoch(2))),
        );
        let lost = record(id, 2, 2, 2, false);
        let end = record(id, 1, 2, 1, true);
        check(id, &[first, mark, lost, end], Shown::Broken);
    }
}
