//! A stream: records under ids that only grow.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;

use super::reply::Reply;

/// The id of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Id(u64, u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl Id {
    const GREATEST: Self = Self(u64::MAX, u64::MAX);

    /// Reads `ms-seq`; a `seq` that is not there is this one.
    fn read(text: &[u8], missing: u64) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        match text.split_once('-') {
            Some((first, second)) => Some(Self(first.parse().ok()?, second.parse().ok()?)),
            None => Some(Self(text.parse().ok()?, missing)),
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stream {
    records: BTreeMap<Id, Vec<Bytes>>,
    last: Id,
}

impl Stream {
    /// Adds a record. In order, its id has to be greater than all others.
    pub(super) fn add(&mut self, id: &[u8], fields: &[Bytes], in_order: bool) -> Reply {
        let Some(id) = Id::read(id, 0) else {
            return invalid();
        };
        if id == Id::default() {
            return Reply::error("ERR The ID specified in XADD must be greater than 0-0");
        }
        if self.last == Id::GREATEST {
            return Reply::error(
                "ERR The stream has exhausted the last possible ID, unable to add more items",
            );
        }
        if id <= self.last && in_order {
            return Reply::error(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item",
            );
        }
        self.last = self.last.max(id);
        self.records.insert(id, fields.to_vec());
        Reply::text(id.to_string())
    }

    /// Those between two ids, in their order or the other way round.
    pub(super) fn range(&self, low: &[u8], high: &[u8], is_reverse: bool, count: usize) -> Reply {
        let (Some(low), Some(high)) = (bound(low, 0), bound(high, u64::MAX)) else {
            return invalid();
        };
        let is_empty = match (low, high) {
            (Bound::Excluded(low), Bound::Excluded(high) | Bound::Included(high))
            | (Bound::Included(low), Bound::Excluded(high)) => low >= high,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            _ => false,
        };
        if is_empty {
            return Reply::Array(Vec::new());
        }
        let found = self.records.range((low, high));
        let show = |(id, fields): (&Id, &Vec<Bytes>)| {
            let fields = fields.iter().cloned().map(Reply::Bulk).collect();
            Reply::Array(vec![Reply::text(id.to_string()), Reply::Array(fields)])
        };
        Reply::Array(if is_reverse {
            found.rev().take(count).map(show).collect()
        } else {
            found.take(count).map(show).collect()
        })
    }
}

fn bound(text: &[u8], missing: u64) -> Option<Bound<Id>> {
    match text {
        b"-" => Some(Bound::Included(Id::default())),
        b"+" => Some(Bound::Included(Id::GREATEST)),
        _ => match text.strip_prefix(b"(") {
            Some(text) => Id::read(text, missing).map(Bound::Excluded),
            None => Id::read(text, missing).map(Bound::Included),
        },
    }
}

fn invalid() -> Reply {
    Reply::error("ERR Invalid stream ID specified as stream command argument")
}
