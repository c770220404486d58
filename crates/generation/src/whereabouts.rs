//! At which backend a generation is, and why it has left those where it was.
//!
//! Both change together, so that whoever finds it elsewhere knows why.

use std::sync::Arc;

/// Why a generation has left a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The backend is drained.
    Drained,
    /// It failed, or an operator has moved this one.
    Otherwise,
}

#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    at: Arc<str>,
    /// The last leave of each backend. No more than attempts and migrations allow.
    left: Vec<(Arc<str>, Leave)>,
}

impl Whereabouts {
    /// Empty as long as there is none.
    pub(crate) fn at(&self) -> Arc<str> {
        Arc::clone(&self.at)
    }

    pub(crate) fn go(&mut self, to: &str, why: Leave) {
        if *self.at == *to {
            return;
        }
        let from = std::mem::replace(&mut self.at, Arc::from(to));
        self.left.retain(|(other, _)| *other != from);
        self.left.push((from, why));
    }

    /// Why it has left this backend. `None` while it is there.
    pub(crate) fn left(&self, backend: &str) -> Option<Leave> {
        let mut left = self.left.iter();
        let found = left.find(|(other, _)| **other == *backend);
        found.filter(|_| *self.at != *backend).map(|(_, why)| *why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_why_each_was_left_as_long_as_it_is_not_back() {
        let mut whereabouts = Whereabouts::default();
        whereabouts.go("a", Leave::Otherwise);
        assert_eq!(whereabouts.left("a"), None);
        whereabouts.go("b", Leave::Drained);
        whereabouts.go("c", Leave::Otherwise);
        assert_eq!(
            ["a", "b", "c"].map(|backend| whereabouts.left(backend)),
            [Some(Leave::Drained), Some(Leave::Otherwise), None]
        );
        whereabouts.go("a", Leave::Otherwise);
        assert_eq!((&*whereabouts.at(), whereabouts.left("a")), ("a", None));
        // Asked once more, it is where it was.
        whereabouts.go("a", Leave::Drained);
        whereabouts.go("b", Leave::Otherwise);
        assert_eq!(whereabouts.left("a"), Some(Leave::Otherwise));
    }
}
