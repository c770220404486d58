//! Bytes that are kept elsewhere on behalf of generations: requests that may have to be made again.
//!
//! They count against the cap of a journal as long as they are kept, so that one number bounds what a process holds. At most
//! [half of it](Keeping::add) may go for them: requests must not leave the answers without a place.

use std::sync::Arc;

use crate::window::Meter;

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub struct Kept {
    bytes: usize,
    keeping: Keeping,
}

/// A backend's count of them.
#[derive(Clone, Debug)]
pub struct Keeping {
    all: Arc<Meter>,
    kept: Arc<Meter>,
}

impl Keeping {
    /// None so far. `all` counts what the backend holds itself, too.
    #[must_use]
    pub fn new(all: Arc<Meter>) -> Self {
        Self {
            all,
            kept: Arc::default(),
        }
    }

    /// Counts so many more. `None`, and nothing is counted, where they would be more than half of `total`. Whether there is
    /// room besides is the backend's to see.
    #[must_use]
    pub fn add(&self, bytes: usize, total: u64) -> Option<Kept> {
        // First counted, then looked at: of two at once none is overlooked.
        let kept = Kept::count(bytes, self.clone());
        (self.kept.bytes() as u64 <= total / 2).then_some(kept)
    }
}

impl Kept {
    fn count(bytes: usize, keeping: Keeping) -> Self {
        keeping.all.add(bytes);
        keeping.kept.add(bytes);
        Self { bytes, keeping }
    }

    /// How many there are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes these in, of the same journal.
    pub fn join(&mut self, mut more: Self) {
        self.bytes += std::mem::take(&mut more.bytes);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.keeping.all.sub(self.bytes);
        self.keeping.kept.sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_is_kept_and_counts_until_it_is_dropped() {
        let all = Arc::new(Meter::default());
        all.add(7);
        let keeping = Keeping::new(Arc::clone(&all));
        let mut one = keeping.add(30, 100).expect("less than half");
        one.join(keeping.add(20, 100).expect("half"));
        assert_eq!((one.bytes(), all.bytes()), (50, 57));
        assert!(keeping.add(1, 100).is_none());
        assert_eq!(all.bytes(), 57);
        drop(one);
        assert_eq!(all.bytes(), 7);
        assert!(keeping.add(50, 100).is_some());
    }
}
