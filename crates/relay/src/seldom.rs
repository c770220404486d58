//! Peers that were told of in the log, so that one that tries again and again does not fill it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Those that were told of within the last minute.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<HashMap<String, Instant>>);

impl Seldom {
    /// Whether `peer` is to be told of now.
    pub(crate) fn is_news(&self, peer: &str, now: Instant) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now.duration_since(*at) < EVERY);
        // Anybody may knock, from as many addresses as there are.
        if told.len() >= MOST || told.contains_key(peer) {
            return false;
        }
        told.insert(peer.to_owned(), now);
        true
    }
}

/// How long one is not told of again.
const EVERY: Duration = Duration::from_secs(60);
/// Peers in that time.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_is_told_of_once_a_minute() {
        let (seldom, now) = (Seldom::default(), Instant::now());
        assert!(seldom.is_news("a", now));
        assert!(!seldom.is_news("a", now));
        assert!(seldom.is_news("b", now));
        assert!(seldom.is_news("a", now + EVERY));
    }

    #[test]
    fn many_peers_are_not_all_told_of() {
        let (seldom, now) = (Seldom::default(), Instant::now());
        let told = (0..1000).filter(|peer: &u32| seldom.is_news(&peer.to_string(), now));
        assert_eq!(told.count(), MOST);
        assert!(seldom.is_news("1000", now + EVERY));
    }
}
