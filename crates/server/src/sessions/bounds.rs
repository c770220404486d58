//! How far a session goes: what it may still be given, entry by entry.
//!
//! Pure, and the same for every form: an entry is offered, and it is given, or the session is over for a reason. So a
//! session that is cut anywhere and goes on with what was left is given the same entries as one that was not.

use std::time::SystemTime;

use streamweld_journal::Left;

/// The bounds of a session as they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) left: Left,
    /// Entries from here on are not given.
    pub(super) until: Option<SystemTime>,
}

/// Which bound ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Count,
    Bytes,
    Until,
}

impl Bounds {
    /// Takes an entry into account that would be given next, or says why it is not given.
    pub(super) fn take(&mut self, time: SystemTime, bytes: usize) -> Result<(), Bound> {
        let bytes = bytes as u64;
        if self.until.is_some_and(|until| time >= until) {
            return Err(Bound::Until);
        }
        let count = match self.left.count {
            Some(count) => Some(count.checked_sub(1).ok_or(Bound::Count)?),
            None => None,
        };
        let bytes = match self.left.bytes {
            Some(left) => Some(left.checked_sub(bytes).ok_or(Bound::Bytes)?),
            None => None,
        };
        self.left = Left { count, bytes };
        Ok(())
    }

    /// The bound that was come to exactly, so that nothing has to be waited for.
    pub(super) fn spent(&self) -> Option<Bound> {
        match self.left {
            Left { count: Some(0), .. } => Some(Bound::Count),
            Left { bytes: Some(0), .. } => Some(Bound::Bytes),
            Left { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(second)
    }

    /// How many of these are given, and why no more.
    fn give(bounds: &mut Bounds, entries: &[(u64, usize)]) -> (usize, Option<Bound>) {
        for (given, &(second, bytes)) in entries.iter().enumerate() {
            if let Some(bound) = bounds.spent() {
                return (given, Some(bound));
            }
            if let Err(bound) = bounds.take(at(second), bytes) {
                return (given, Some(bound));
            }
        }
        (entries.len(), bounds.spent())
    }

    #[test]
    fn each_bound_ends_it() {
        let entries = [(1, 10), (2, 10), (3, 10)];
        let left = |count, bytes| Left { count, bytes };
        for (left, until, expected) in [
            (left(None, None), None, (3, None)),
            (left(Some(2), None), None, (2, Some(Bound::Count))),
            (left(Some(3), None), None, (3, Some(Bound::Count))),
            (left(None, Some(20)), None, (2, Some(Bound::Bytes))),
            (left(None, Some(29)), None, (2, Some(Bound::Bytes))),
            (left(None, Some(9)), None, (0, Some(Bound::Bytes))),
            (left(None, None), Some(at(3)), (2, Some(Bound::Until))),
            (
                left(Some(2), Some(10)),
                Some(at(9)),
                (1, Some(Bound::Bytes)),
            ),
        ] {
            let mut bounds = Bounds { left, until };
            assert_eq!(give(&mut bounds, &entries), expected, "{left:?} {until:?}");
        }
    }

    proptest! {
        #[test]
        fn the_sum_of_the_parts_is_the_whole(
            entries in proptest::collection::vec((0..50_u64, 1..40_usize), 0..60),
            count in proptest::option::of(1..70_u64),
            bytes in proptest::option::of(1..900_u64),
            until in proptest::option::of(0..60_u64),
            cuts in proptest::collection::vec(0..20_usize, 0..8),
        ) {
            let whole = Bounds { left: Left { count, bytes }, until: until.map(at) };
            let mut once = whole;
            let expected = give(&mut once, &entries);
            // What is carried from one part to the next is what a cursor carries.
            let (mut given, mut left, mut ended) = (0, whole.left, None);
            for cut in cuts.into_iter().chain([entries.len()]) {
                let part = &entries[given..(given + cut).min(entries.len())];
                let mut bounds = Bounds { left, until: whole.until };
                let (more, why) = give(&mut bounds, part);
                given += more;
                left = bounds.left;
                if why.is_some() {
                    ended = why;
                    break;
                }
            }
            prop_assert_eq!((given, ended), expected);
            prop_assert_eq!(left, once.left);
        }
    }
}
