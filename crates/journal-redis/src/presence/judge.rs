//! Who is dead. Pure.

use std::collections::HashMap;
use std::time::Duration;

use streamweld_journal::Replica;
use tokio::time::Instant;

/// Decides it from what one replica sees.
pub(super) struct Judge {
    lease: Duration,
    /// Since when each was seen to be silent, without a break.
    silent: HashMap<Replica, Instant>,
    /// The last look, and the connection it went over.
    contact: Option<(Instant, u64)>,
}

impl Judge {
    pub(super) fn new(lease: Duration) -> Self {
        Self {
            lease,
            silent: HashMap::new(),
            contact: None,
        }
    }

    /// A look came to nothing.
    pub(super) fn lost_contact(&mut self) {
        self.silent.clear();
        self.contact = None;
    }

    /// These are silent now. Gives those that have been for a whole lease.
    pub(super) fn saw(
        &mut self,
        now: Instant,
        connection: u64,
        silent: &[Replica],
    ) -> Vec<Replica> {
        // Another connection may lead to another server, and a look that comes late may have missed a sign of life.
        let unbroken = self.contact.is_some_and(|(last, same)| {
            same == connection && now.duration_since(last) < self.lease / 2
        });
        if !unbroken {
            self.silent.clear();
        }
        self.contact = Some((now, connection));
        self.silent.retain(|replica, _| silent.contains(replica));
        let mut dead = Vec::new();
        for replica in silent {
            let since = *self.silent.entry(*replica).or_insert(now);
            if now.duration_since(since) >= self.lease {
                dead.push(*replica);
            }
        }
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(6);
    const OTHER: Replica = Replica(7);

    /// Looks at these times, over these connections, with the other silent or not; without a connection, none came
    /// about. Gives when it was judged dead.
    fn judged(looks: impl IntoIterator<Item = (u64, Option<u64>, bool)>) -> Option<u64> {
        let (begun, mut judge) = (Instant::now(), Judge::new(LEASE));
        looks.into_iter().find_map(|(at, connection, silent)| {
            let Some(connection) = connection else {
                judge.lost_contact();
                return None;
            };
            let silent: &[Replica] = if silent { &[OTHER] } else { &[] };
            let dead = judge.saw(begun + Duration::from_secs(at), connection, silent);
            (dead == [OTHER]).then_some(at)
        })
    }

    /// One each second.
    fn looks(connections: &[Option<u64>], silent: &[bool]) -> Option<u64> {
        let each = connections.iter().zip(silent);
        judged((0..).zip(each).map(|(at, (on, silent))| (at, *on, *silent)))
    }

    #[test]
    fn silent_for_a_whole_lease_is_dead() {
        assert_eq!(looks(&[Some(1); 9], &[true; 9]), Some(6));
    }

    #[test]
    fn a_sign_of_life_begins_the_wait_anew() {
        let mut silent = [true; 20];
        silent[5] = false;
        assert_eq!(looks(&[Some(1); 20], &silent), Some(12));
    }

    #[test]
    fn so_does_another_connection() {
        let mut connections = [Some(2); 20];
        connections[..4].fill(Some(1));
        assert_eq!(looks(&connections, &[true; 20]), Some(10));
    }

    #[test]
    fn so_does_a_look_that_comes_to_nothing() {
        let mut connections = [Some(1); 20];
        connections[3] = None;
        assert_eq!(looks(&connections, &[true; 20]), Some(10));
    }

    /// A judge that was stopped itself has seen nothing.
    #[test]
    fn so_does_a_look_that_comes_late() {
        let times = [0, 1, 2, 3, 60, 61, 62, 63, 64, 65, 66];
        let looks = times.map(|at| (at, Some(1), true));
        assert_eq!(judged(looks), Some(66));
    }
}
