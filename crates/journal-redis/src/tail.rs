//! Reading back what really stands: the answer to every doubt.

use redis::Value;
use streamweld_journal::{Digest, Epoch, Outcome, Refusal, Seq, StreamId, Tail, Unreachable};

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
    /// Entries are missing before that record.
    leaves_gap: bool,
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
    /// The last record may have been appended when what it was to follow was lost already: it leaves a gap, which
    /// nobody is shown. If it is ours it is taken back, and appended again behind what does stand.
    pub(crate) async fn tail(&self, id: StreamId) -> Result<Tail, Unreachable> {
        let keys = self.config.prefix.keys(id);
        for _ in 0..MOST_TAKEN_BACK {
            let Some(end) = self.end(id, &keys.log).await? else {
                // All there was are marks of changes of the writer: what they stood behind is gone.
                self.table().forget(id);
                return Ok(Tail::None);
            };
            if end.leaves_gap {
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
        let mut end: Option<(End, Seq)> = None;
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
            for (at, record) in &entries {
                let record = record::decode(record).map_err(|bad| self.unreadable(id, bad))?;
                let epoch = *newest.get_or_insert(record.epoch);
                if let Some((mut end, first)) = end {
                    // Where this one ends, also when it is a mark.
                    let next = record.last().map_or(record.first, |(last, _)| last.next());
                    end.leaves_gap = first > next;
                    return Ok(Some(end));
                }
                if let Some((last, digest)) = record.last() {
                    let found = End {
                        at: at.clone(),
                        epoch,
                        last,
                        digest,
                        leaves_gap: false,
                        connection: answer.connection,
                    };
                    end = Some((found, record.first));
                }
            }
            if entries.len() < PAGE {
                return Ok(end.map(|(end, _)| end));
            }
            if let Some((oldest, _)) = entries.last() {
                before = format!("({oldest}");
            }
        }
    }

    async fn take_back(&self, id: StreamId, key: &str, end: &End) -> Result<(), Unreachable> {
        let live = self.table().live.get(&id).map(|live| live.epoch);
        if live != Some(end.epoch) || end.is_terminal() {
            tracing::error!(stream_id = %id, "what stands in Redis has a gap");
            return Err(Unreachable);
        }
        tracing::warn!(stream_id = %id, "a record behind a gap is taken back");
        let said = script::TAKE_BACK
            .run(self.nodes.appends(id), &[key], &[end.at.as_bytes()])
            .await;
        said.map(|_| ()).map_err(|_| Unreachable)
    }

    async fn saw(&self, id: StreamId, epoch: Epoch, last: Seq, terminal: bool, connection: u64) {
        {
            let mut table = self.table();
            let Some(live) = table.live.get(&id) else {
                return;
            };
            if epoch > live.epoch {
                // Another process writes it now.
                table.forget(id);
                self.is_fenced();
                return;
            }
            if !terminal {
                table.stands(id, epoch, last, connection);
            }
        }
        if terminal {
            let keys = self.config.prefix.keys(id);
            self.announce_end(id, connection, &keys, &record::mark(epoch, last));
            self.ended(id).await;
        } else {
            self.tell_readers(id);
        }
    }

    fn unreadable(&self, id: StreamId, bad: record::BadRecord) -> Unreachable {
        tracing::error!(stream_id = %id, error = %bad, "what stands in Redis cannot be read");
        Unreachable
    }
}

/// What an append of a log that this process does not write is answered.
pub(crate) fn judge(tail: Tail, by: Epoch, expected: Seq) -> Outcome<Refusal> {
    Outcome::No(match tail {
        Tail::None => Refusal::Vanished,
        Tail::Last { terminal: true, .. } => Refusal::Ended,
        Tail::Last { epoch, .. } if by < epoch => Refusal::Fenced { epoch },
        Tail::Last { last, .. } if last != expected => Refusal::Unexpected { last },
        // It was opened or adopted by nobody here, whatever the caller thinks.
        Tail::Last { epoch, .. } => Refusal::Fenced { epoch },
    })
}

/// The entries of an answer to XRANGE or XREVRANGE: id and record.
pub(crate) fn stream_entries(value: Value) -> Option<Vec<(String, Vec<u8>)>> {
    let Value::Array(entries) = value else {
        return None;
    };
    let entry = |entry: Value| {
        let Value::Array(entry) = entry else {
            return None;
        };
        let [Value::BulkString(id), Value::Array(fields)] = <[Value; 2]>::try_from(entry).ok()?
        else {
            return None;
        };
        let [_, Value::BulkString(record)] = <[Value; 2]>::try_from(fields).ok()? else {
            return None;
        };
        Some((String::from_utf8(id).ok()?, record))
    };
    entries.into_iter().map(entry).collect()
}

/// The id of the record with the terminal: the greatest there is.
pub(crate) const LAST_ID: &str = "18446744073709551615-18446744073709551615";

/// A record and the one before it.
const PAGE: usize = 2;
/// There is one at a time; more than a few come from somebody who writes what this crate does not.
const MOST_TAKEN_BACK: usize = 4;
