//! What a writer keeps beside its entries: a second field of their records, which readers pass over.
//!
//! It is appended with its entries in one step and lost with them, so whoever continues a log is given what belongs to
//! exactly the entries that stand. It is not published to followers.

use bytes::Bytes;
use streamweld_journal::{Epoch, Seq, StreamId, Unreachable};

use crate::journal::Inner;
use crate::record::{self, Record};
use crate::tail::LAST_ID;

impl Inner {
    /// What was staged beside the entries up to and with `through`, one piece for each record that has any.
    pub(crate) async fn beside(
        &self,
        id: StreamId,
        through: Seq,
    ) -> Result<Vec<Bytes>, Unreachable> {
        let keys = self.config.prefix.keys(id);
        let (mut walk, mut from) = (Walk::default(), "-".to_owned());
        loop {
            let stored = self.stored(&keys, &from, PAGE).await?.value;
            let mut is_last = stored.len() < PAGE;
            for stored in stored {
                let record = record::decode(&stored.record);
                let record = record.map_err(|bad| self.unreadable(id, bad))?;
                if !walk.goes_on(&record, through, stored.beside) {
                    is_last = true;
                    break;
                }
                // Behind the greatest id there is nothing to ask for.
                is_last |= stored.at == LAST_ID;
                from = format!("({}", stored.at);
            }
            if is_last {
                return Ok(walk.pieces());
            }
        }
    }
}

/// What was walked over.
#[derive(Default)]
struct Walk {
    /// The first entry of each record, and what is beside it.
    records: Vec<(Seq, Option<Vec<u8>>)>,
    last: Seq,
    epoch: Option<Epoch>,
}

impl Walk {
    /// The next record, unless it reaches beyond `through`, or leaves a gap: behind that is nothing that anybody is shown.
    fn goes_on(&mut self, record: &Record<'_>, through: Seq, beside: Option<Vec<u8>>) -> bool {
        let last = record.last().map_or(self.last, |(last, _)| last);
        if last > through {
            return false;
        }
        if record.first <= self.last && self.epoch == Some(record.epoch) {
            // One came late, after the tail was read, and its entries were appended again with those behind them. Both
            // begin with the same.
            while self
                .records
                .last()
                .is_some_and(|(first, _)| *first > record.first)
            {
                self.records.pop();
            }
            match self.records.pop() {
                Some((first, _)) if first == record.first => {}
                Some(_) | None => return false,
            }
        } else if record.first != self.last.next() {
            return false;
        }
        self.records.push((record.first, beside));
        (self.last, self.epoch) = (last, Some(record.epoch));
        true
    }

    fn pieces(self) -> Vec<Bytes> {
        let pieces = self.records.into_iter().filter_map(|(_, beside)| beside);
        pieces.map(Bytes::from).collect()
    }
}

/// Records in one answer: some 100 KiB of an answer that comes token by token.
const PAGE: usize = 256;

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use streamweld_journal::{Entry, Kind};

    use super::*;

    /// Records of an epoch, from one entry to another; a mark, where they are the wrong way round. Each has its place beside it.
    #[track_caller]
    fn check(records: &[(u64, u64, u64)], through: u64, expected: &[u8]) {
        let mut walk = Walk::default();
        for (place, (epoch, first, last)) in (0..).zip(records) {
            let entries = (*first..=*last).map(|seq| Entry {
                seq: Seq::new(seq),
                kind: Kind::Event,
                len: 0,
                time: UNIX_EPOCH,
            });
            let record = Record {
                epoch: Epoch::new(*epoch).unwrap(),
                first: Seq::new(*first),
                entries: entries.collect(),
                bytes: &[],
                terminal: None,
                follows: None,
            };
            if !walk.goes_on(&record, Seq::new(through), Some(vec![place])) {
                break;
            }
        }
        assert_eq!(walk.pieces().concat(), expected, "{records:?}");
    }

    #[test]
    fn records_follow_each_other() {
        let log = [
            (1, 1, 1),
            (1, 2, 4),
            (2, 5, 4),
            (2, 5, 9),
            (3, 10, 9),
            (3, 10, 10),
        ];
        check(&log, 10, &[0, 1, 2, 3, 4, 5]);
        check(&log, 99, &[0, 1, 2, 3, 4, 5]);
        check(&log, 9, &[0, 1, 2, 3, 4]);
        check(&log, 8, &[0, 1, 2]);
        check(&log, 0, &[]);
    }

    #[test]
    fn nothing_is_behind_a_gap() {
        check(&[(1, 1, 1), (1, 3, 4), (1, 5, 6)], 6, &[0]);
        check(&[(1, 2, 4)], 6, &[]);
        // What another writer has lost.
        check(&[(1, 1, 4), (2, 3, 2), (2, 3, 5)], 5, &[0]);
    }

    #[test]
    fn what_was_appended_again_counts_once() {
        check(&[(1, 1, 1), (1, 2, 4), (1, 2, 6), (1, 7, 8)], 8, &[0, 2, 3]);
        check(&[(1, 1, 1), (1, 2, 4), (1, 5, 5), (1, 2, 6)], 6, &[0, 3]);
        check(&[(1, 1, 1), (1, 2, 4), (1, 2, 6)], 4, &[0, 1]);
        // In another way than that nobody appends.
        check(&[(1, 1, 1), (1, 2, 4), (1, 3, 6)], 6, &[0]);
    }
}
