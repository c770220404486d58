//! Which replicas follow a log, as its writer knows it.

use std::collections::BTreeMap;
use std::time::Duration;

use streamweld_journal::Replica;
use tokio::time::Instant;

/// Each with the time until which it is believed.
#[derive(Debug, Default)]
pub(crate) struct Readers(BTreeMap<Replica, Instant>);

impl Readers {
    pub(crate) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// It follows from now on, or still does. True when that is news.
    pub(crate) fn came(&mut self, replica: Replica) -> bool {
        self.0.insert(replica, Instant::now() + LEASE).is_none()
    }

    /// True when it did follow.
    pub(crate) fn left(&mut self, replica: Replica) -> bool {
        self.0.remove(&replica).is_some()
    }

    /// All of them, of a log that nobody here writes any more.
    pub(crate) fn into_replicas(self) -> impl Iterator<Item = Replica> {
        self.0.into_keys()
    }

    /// Takes those out that have not been heard of for too long.
    pub(crate) fn lapsed(&mut self) -> Vec<Replica> {
        let now = Instant::now();
        let lapsed = self.0.iter().filter(|(_, until)| **until <= now);
        let lapsed: Vec<Replica> = lapsed.map(|(replica, _)| *replica).collect();
        for replica in &lapsed {
            self.0.remove(replica);
        }
        lapsed
    }
}

/// How long a follower is believed without a word from it, by its writer and by Redis.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// How often it gives one: two may be lost.
pub(crate) const RENEW: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_lapses_unless_it_is_heard_of() {
        let mut readers = Readers::default();
        assert!(readers.came(Replica(1)));
        assert!(readers.came(Replica(2)));
        tokio::time::advance(RENEW).await;
        assert!(!readers.came(Replica(2)));
        tokio::time::advance(LEASE - RENEW).await;
        assert_eq!(readers.lapsed(), [Replica(1)]);
        assert!(readers.any());
        assert!(readers.left(Replica(2)));
        assert!(!readers.left(Replica(2)));
        assert!(!readers.any());
    }
}
