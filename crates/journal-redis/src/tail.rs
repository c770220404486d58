//! Reading back what really stands: the answer to every doubt.

use redis::Value;
use streamweld_journal::rules::{LOOKED_AT, has_its_place};
use streamweld_journal::{Digest, Epoch, Seq, StreamId, Tail, Unreachable};

use crate::journal::Inner;
use crate::record;
use crate::script;

/// How a log ends.
struct End {
    /// The id of its last record with entries.
    at: String,
    epoch: Epoch,
    last: Seq,
    digest: Digest,
    /// That record.
    record: Vec<u8>,
    /// It has no place behind what comes before it, or something close before it has none.
    is_stray: bool,
    connection: u64,
}

impl End {
    fn is_terminal(&self) -> bool {
        self.at == LAST_ID
    }
}

impl Inner {
    /// What stands, read on the connection that appends go by, so behind everything sent before. What is not at the
    /// level stands only once it is.
    ///
    /// The last records may have been appended when what they were to follow was lost already: nobody is shown them.
    /// Whoever meets them takes them back, for their writer may be gone; one that is not appends them again, behind what
    /// does stand.
    pub(crate) async fn tail(&self, id: StreamId) -> Result<Tail, Unreachable> {
        let keys = self.config.prefix.keys(id);
        for _ in 0..MOST_TAKEN_BACK {
            let Some(end) = self.end(id, &keys.log).await? else {
                // All there was are marks of changes of the writer: what they stood behind is gone.
                let was_ours = self.table().forget(id).is_some();
                if was_ours {
                    self.drop_request(id).await;
                }
                return Ok(Tail::None);
            };
            if end.is_stray {
                self.take_back(id, &keys.log, &end).await?;
                continue;
            }
            let route = self.nodes.appends(id);
            if !self.is_sure(route, end.connection, &keys).await {
                return Err(Unreachable);
            }
            let (epoch, terminal) = (end.epoch, end.is_terminal());
            self.saw(id, epoch, end.last, terminal, end.connection)
                .await;
            return Ok(Tail::Last {
                epoch,
                last: end.last,
                terminal,
                digest: end.digest,
            });
        }
        Err(Unreachable)
    }

    /// The last record that has entries, if there is one.
    async fn end(&self, id: StreamId, key: &str) -> Result<Option<End>, Unreachable> {
        let mut before = "+".to_owned();
        let mut newest = None;
        let mut end: Option<End> = None;
        // How many were looked at, and the epoch and the first entry of the one behind, if it has entries.
        let (mut looked_at, mut behind) = (0, None::<(Epoch, Seq)>);
        loop {
            let mut command = redis::cmd("XREVRANGE");
            command
                .arg(key)
                .arg(&before)
                .arg("-")
                .arg("COUNT")
                .arg(PAGE);
            let answer = self.nodes.appends(id).call(&command, 0).await;
            let answer = answer.map_err(|_| Unreachable)?;
            let entries = stream_entries(answer.value).ok_or(Unreachable)?;
            let (is_last, oldest) = (entries.len() < PAGE, entries.last().map(|it| it.0.clone()));
            for (at, bytes) in entries {
                let record = record::decode(&bytes).map_err(|bad| self.unreadable(id, bad))?;
                let (by, first) = (record.epoch, record.first);
                let epoch = *newest.get_or_insert(by);
                let has_entries = record.last().is_some();
                if let (Some(end), Some((epoch_behind, first_behind))) = (&mut end, behind) {
                    // Where this one ends, also when it is a mark.
                    let marked = || Seq::new(first.get() - 1);
                    let last = record.last().map_or_else(marked, |(last, _)| last);
                    end.is_stray |= !has_its_place(by, last, epoch_behind, first_behind);
                }
                behind = has_entries.then_some((by, first));
                if let (None, Some((last, digest))) = (&end, record.last()) {
                    end = Some(End {
                        at,
                        epoch,
                        last,
                        digest,
                        record: bytes,
                        is_stray: false,
                        connection: answer.connection,
                    });
                }
                looked_at += usize::from(end.is_some());
                // Behind a terminal nothing can be under way, and it is not taken back.
                let enough = match end.as_ref().is_some_and(End::is_terminal) {
                    true => 2,
                    false => LOOKED_AT,
                };
                if looked_at >= enough {
                    return Ok(end);
                }
            }
            if is_last {
                return Ok(end);
            }
            if let Some(oldest) = oldest {
                before = format!("({oldest}");
            }
        }
    }

    async fn take_back(&self, id: StreamId, key: &str, end: &End) -> Result<(), Unreachable> {
        if end.is_terminal() {
            tracing::error!(stream_id = %id, "what stands in Redis has a gap");
            return Err(Unreachable);
        }
        tracing::warn!(stream_id = %id, "a record that has no place is taken back");
        let args: [&[u8]; 2] = [end.at.as_bytes(), &end.record];
        let route = self.nodes.appends(id);
        let said = script::TAKE_BACK.run(route, &[key], &args).await;
        said.map(|_| ()).map_err(|_| Unreachable)
    }

    async fn saw(&self, id: StreamId, epoch: Epoch, last: Seq, terminal: bool, connection: u64) {
        {
            let mut table = self.table();
            let Some(live) = table.live.get(&id) else {
                return;
            };
            if epoch != live.epoch {
                // Another process writes it now. A lower one does when the adoption of this process was lost.
                table.fenced(id);
                self.is_fenced();
                return;
            }
            if !terminal {
                table.stands(id, epoch, last, connection);
            }
        }
        if terminal {
            let keys = self.config.prefix.keys(id);
            self.announce_end(id, connection, &keys, &record::stand(epoch, last));
            self.ended(id).await;
        } else {
            self.tell_readers(id);
        }
    }

    pub(crate) fn unreadable(&self, id: StreamId, bad: record::BadRecord) -> Unreachable {
        tracing::error!(stream_id = %id, error = %bad, "what stands in Redis cannot be read");
        Unreachable
    }
}

/// What stands under one id of a log.
pub(crate) struct Stored {
    pub(crate) at: String,
    pub(crate) record: Vec<u8>,
    /// What its writer has kept beside it.
    pub(crate) beside: Option<Vec<u8>>,
}

impl Stored {
    /// Fields that are not known here are those of a later version, which adds what readers need not know.
    fn read(entry: Value) -> Option<Self> {
        let Value::Array(entry) = entry else {
            return None;
        };
        let [Value::BulkString(at), Value::Array(fields)] = <[Value; 2]>::try_from(entry).ok()?
        else {
            return None;
        };
        let (mut record, mut beside) = (None, None);
        let mut fields = fields.into_iter();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            let (Value::BulkString(name), Value::BulkString(value)) = (name, value) else {
                return None;
            };
            match &name[..] {
                b"r" => record = Some(value),
                b"t" => beside = Some(value),
                _ => {}
            }
        }
        Some(Self {
            at: String::from_utf8(at).ok()?,
            record: record?,
            beside,
        })
    }
}

/// What an answer to XRANGE or XREVRANGE holds.
pub(crate) fn stored(value: Value) -> Option<Vec<Stored>> {
    let Value::Array(entries) = value else {
        return None;
    };
    entries.into_iter().map(Stored::read).collect()
}

/// The same for who reads the records alone: id and record.
pub(crate) fn stream_entries(value: Value) -> Option<Vec<(String, Vec<u8>)>> {
    let stored = stored(value)?.into_iter();
    Some(stored.map(|stored| (stored.at, stored.record)).collect())
}

/// The id of the record with the terminal: the greatest there is.
pub(crate) const LAST_ID: &str = "18446744073709551615-18446744073709551615";

/// Mostly there are no marks among them.
const PAGE: usize = LOOKED_AT;
/// More than there are of those that are looked at come from somebody who writes what this crate does not.
const MOST_TAKEN_BACK: usize = 2 * LOOKED_AT;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fields: &[&str]) -> Value {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let fields = fields.iter().map(|field| text(field)).collect();
        Value::Array(vec![Value::Array(vec![text("1-7"), Value::Array(fields)])])
    }

    #[test]
    fn a_record_is_taken_from_wherever_it_stands() {
        for (fields, beside) in [
            (&["r", "record"][..], None),
            (&["r", "record", "t", "beside"], Some("beside")),
            (&["t", "beside", "r", "record"], Some("beside")),
            (&["x", "of a later version", "r", "record"], None),
        ] {
            let all = stored(entry(fields)).unwrap();
            let [stored] = &all[..] else { panic!("one") };
            assert_eq!((&*stored.at, &stored.record[..]), ("1-7", &b"record"[..]));
            assert_eq!(stored.beside.as_deref(), beside.map(str::as_bytes));
            let entries = stream_entries(entry(fields));
            assert_eq!(entries, Some(vec![("1-7".to_owned(), b"record".to_vec())]));
        }
        for fields in [&[][..], &["r"], &["t", "beside"]] {
            assert!(stored(entry(fields)).is_none(), "{fields:?}");
        }
    }
}
