//! Reading back what really stands: the answer to every doubt.

use redis::Value;
use streamweld_journal::{Epoch, Outcome, Refusal, Seq, StreamId, Tail, Unreachable};

use crate::journal::Inner;
use crate::record;

impl Inner {
    /// What stands, read on the connection that appends go by, so behind everything sent before. What is not at the
    /// level stands only once it is.
    pub(crate) async fn tail(&self, id: StreamId) -> Result<Tail, Unreachable> {
        let keys = self.config.prefix.keys(id);
        let mut before = "+".to_owned();
        let mut newest = None;
        loop {
            let mut command = redis::cmd("XREVRANGE");
            command
                .arg(&keys.log)
                .arg(&before)
                .arg("-")
                .arg("COUNT")
                .arg(2);
            let answer = self.nodes.appends(id).call(&command, 0).await;
            let answer = answer.map_err(|_| Unreachable)?;
            let entries = stream_entries(answer.value).ok_or(Unreachable)?;
            let Some((oldest, _)) = entries.last() else {
                // All there was are marks of changes of the writer: what they stood behind is gone.
                self.table().forget(id);
                return Ok(Tail::None);
            };
            before = format!("({oldest}");
            for (at, record) in &entries {
                let record = record::decode(record).map_err(|bad| self.unreadable(id, bad))?;
                let terminal = at == LAST_ID;
                let connection = answer.connection;
                if record.last().is_some()
                    && !self
                        .is_sure(self.nodes.appends(id), connection, &keys)
                        .await
                {
                    return Err(Unreachable);
                }
                let epoch = *newest.get_or_insert(record.epoch);
                if let Some((last, digest)) = record.last() {
                    let tail = Tail::Last {
                        epoch,
                        last,
                        terminal,
                        digest,
                    };
                    self.saw(id, epoch, last, terminal, answer.connection).await;
                    return Ok(tail);
                }
            }
        }
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
