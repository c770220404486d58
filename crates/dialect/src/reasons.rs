//! The parts of an answer that end each for itself, by index: choices, candidates.

use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::value::RawValue;

use crate::mark::MAX_PARTS;

/// The parts that were started, and the success reason of each that has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reasons {
    known: BTreeMap<u32, Option<&'static str>>,
    /// How many of them have none, and for ever one for each event of a part above the bound.
    open: usize,
}

impl Reasons {
    /// A part was shown, and this is its reason from now on.
    pub(crate) fn set(&mut self, index: u32, reason: Option<&'static str>) {
        let full = self.known.len() >= MAX_PARTS;
        let open = usize::from(reason.is_none());
        match self.known.entry(index) {
            Entry::Occupied(mut known) => {
                self.open -= usize::from(known.get().is_none());
                self.open += open;
                known.insert(reason);
            }
            Entry::Vacant(_) if full => self.open += 1,
            Entry::Vacant(unknown) => {
                self.open += open;
                unknown.insert(reason);
            }
        }
    }

    /// The same, but one that has finished stays finished.
    pub(crate) fn show(&mut self, index: u32, reason: Option<&'static str>) {
        if reason.is_some() || !self.known.contains_key(&index) {
            self.set(index, reason);
        }
    }

    /// Everything that was started has its reason.
    pub(crate) fn is_complete(&self) -> bool {
        self.open == 0 && !self.known.is_empty()
    }

    /// Part `index` was started and has no reason.
    pub(crate) fn is_open(&self, index: u32) -> bool {
        self.known.get(&index).is_some_and(Option::is_none)
    }

    /// How many were started, as far as they are told apart.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The reasons, in order of their parts.
    pub(crate) fn list(&self) -> Vec<String> {
        let reasons = self.known.values().flatten();
        reasons.map(|&reason| reason.to_owned()).collect()
    }
}

/// A finish reason as it stands in an event, if there is one. What is not a string is shown as it is written.
pub(crate) fn written(reason: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let raw = reason?.get();
    let reason = serde_json::from_str::<String>(raw).map_or(Cow::Borrowed(raw), Cow::Owned);
    (!reason.is_empty()).then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_parts_than_are_told_apart_are_never_complete() {
        let most = u32::try_from(MAX_PARTS).unwrap();
        let mut reasons = Reasons::default();
        for index in 0..most {
            reasons.show(index, Some("stop"));
        }
        assert!(reasons.is_complete());
        reasons.show(most, Some("stop"));
        reasons.show(0, Some("stop"));
        assert!(!reasons.is_complete());
        assert_eq!(reasons.list().len(), MAX_PARTS);
    }

    #[test]
    fn what_is_shown_stays_finished_and_what_is_set_does_not() {
        let mut reasons = Reasons::default();
        reasons.show(0, Some("stop"));
        reasons.show(0, None);
        assert!(reasons.is_complete() && !reasons.is_open(0));
        reasons.set(0, None);
        assert!(!reasons.is_complete() && reasons.is_open(0));
        reasons.set(0, Some("stop"));
        assert!(reasons.is_complete());
    }
}
